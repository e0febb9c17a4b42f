"""Interactive charts: their values are those of the tables, and a page with them needs nothing else."""

import json
import re
from dataclasses import replace

import altair as alt
import pandas as pd
import pytest
from jsonschema import ValidationError
from worklog_pages import HOSTILE, Page, charted

from warplog.figures.shared.highlight import of_family
from warplog.worklog.html import html
from warplog.worklog.pictures import charts


def values(page):
    spec = json.loads(page.chart)
    (points,) = spec["datasets"].values() if "datasets" in spec else (spec["data"]["values"],)
    return {(point["variant"], point["case"], point["regime"]): point for point in points}


def test_values_are_those_of_the_tables_at_rest_and_back_to_back(page, recorded):
    points = values(page)
    rows = recorded.measurements[recorded.measurements["status"] == "ok"]
    assert {(name, case) for name, case, _ in points} == set(zip(rows["variant"], rows["case"], strict=True))
    row = rows[(rows["variant"] == "warptile") & (rows["case"] == "4096")].iloc[0]
    cold = points["warptile", "4096", "at rest"]
    assert cold["speed"] == pytest.approx(row["gflops"] / 1e3)
    assert cold["percent"] == pytest.approx(100 * row["ratio_to_baseline"])
    hot = points["warptile", "4096", "back to back"]
    assert hot["speed"] * hot["time_us"] == pytest.approx(cold["speed"] * cold["time_us"])
    assert hot["time_us"] == row["sustained_us"]


def test_sustained_times_replace_hot_ones_where_a_campaign_has_them(recorded):
    rows = recorded.measurements.assign(sustained_us=recorded.measurements["median_us"] * 2, set_mhz=1980.0)
    points = values(charted(replace(recorded, measurements=rows)))
    assert {regime for _, _, regime in points} == {"at rest", "back to back"}
    assert points["naive", "128", "back to back"]["percent"] == points["naive", "128", "at rest"]["percent"]


def test_a_regime_with_one_case_says_so_and_keeps_the_axis_of_all_sizes(recorded):
    rows = recorded.measurements.assign(sustained_us=recorded.measurements["median_us"] * 2, set_mhz=1980.0)
    rows.loc[rows["case"] != "4096", "sustained_us"] = float("nan")
    page = charted(replace(recorded, measurements=rows))
    title = json.loads(page.chart)["vconcat"][1]["title"]["text"]["expr"]
    assert '{"back to back": " (measured at 4096 only)"}[in_regime]' in title
    low, high = json.loads(page.chart)["vconcat"][1]["encoding"]["x"]["scale"]["domain"]
    assert low < 4096 < high


def test_the_reader_chooses_case_unit_regime_order_and_variants(page, recorded):
    spec = json.loads(page.chart)
    named = {parameter["name"]: parameter for parameter in spec["params"]}
    assert {"in_case", "in_unit", "in_regime", "in_order", "chosen"} <= set(named)
    assert named["in_case"]["value"] == "4096"
    shown = [variant["variant"] for variant in named["chosen"]["value"]]
    assert shown == of_family(recorded), "at first those in colour in the figures"


def below(page):
    return json.loads(page.chart)["vconcat"][1]


def test_cases_of_the_same_size_stand_side_by_side_and_no_line_joins_them(page, recorded):
    assert (below(page)["encoding"]["x"]["field"], below(page)["mark"]["type"]) == ("size", "line")
    same = below(charted(replace(recorded, measurements=recorded.measurements.assign(size=4096.0))))
    assert (same["encoding"]["x"]["field"], same["mark"]["type"]) == ("case", "point")
    assert set(same["encoding"]["x"]["sort"]) == set(recorded.measurements["case"])


@pytest.mark.parametrize("sizes", ["different", "the same"])
def test_charts_fit_the_schema_of_vega_lite(page, recorded, sizes):
    alike = recorded.measurements.assign(size=4096.0)
    shown = page if sizes == "different" else charted(replace(recorded, measurements=alike))
    alt.VConcatChart.from_json(shown.chart, validate=True)
    with pytest.raises(ValidationError):
        alt.VConcatChart.from_json(shown.chart.replace('"type": "', '"type": "un'), validate=True)


def test_a_line_leaves_out_a_case_of_another_kind(recorded):
    rows = recorded.measurements
    other = rows[rows["case"] == "4096"].assign(case="4095x4097", size=4095)
    page = charted(replace(recorded, measurements=pd.concat([rows, other])))
    joined = {case: point["joined"] for (_, case, _), point in values(page).items()}
    assert [case for case, is_joined in joined.items() if not is_joined] == ["4095x4097"]
    assert "datum.joined" in json.dumps(below(page)["transform"])


def test_a_page_with_charts_is_one_file_that_asks_no_network(page):
    source = html(page, "window.vegaEmbed = () => 0;")
    seen = Page(source)
    assert seen.tags.count("script") == 2
    assert all(address.startswith("data:image/png;base64,") for address in seen.addresses)
    assert 'class="static"' in source


def test_no_name_ends_the_script(recorded):
    rows = recorded.measurements.assign(case=recorded.measurements["case"] + HOSTILE)
    variants = recorded.variants.assign(headline_case="4096" + HOSTILE)
    source = html(charted(replace(recorded, measurements=rows, variants=variants)), "0;")
    assert Page(source).tags.count("script") == 2
    script = re.search(r"const SPEC = (.*);\n", source)[1]
    assert "<" not in script
    assert any(HOSTILE in point["case"] for point in next(iter(json.loads(script)["datasets"].values())))


def test_the_library_comes_in_one_piece_that_ends_no_script():
    library = charts.library()
    assert "vegaEmbed" in library
    assert "</script" not in library
    assert len(library) < 2 << 20


def made_up(kinds, highlighted=()):
    """The charts of a ladder with a variant of each of these kinds in turn, as a specification."""
    values = [
        charts.Point(f"v{place}", place, kind, "64", 64.0, "at rest", 1.0, 1.0, 1.0)
        for place, kind in enumerate(kinds)
    ]
    return json.loads(charts.chart(values, "64", "cublas", "TFLOP/s", "matrix size n", highlighted))


def test_variants_that_are_shown_first_share_no_colour():
    first = ["v1", "v12", "v25", "v20", "v27", "v0"]
    spec = made_up(["main path"] * 28, first)["vconcat"][1]
    scale = spec["encoding"]["color"]["condition"]["scale"]
    colours = dict(zip(scale["domain"], scale["range"], strict=True))
    assert list(colours) == [f"v{place}" for place in range(28)], "in the order of the ladder"
    assert len({colours[name] for name in first}) == len(first)
    assert not {colours[name] for name in first} & {
        colours[name] for name in list(colours)[:12] if name not in first
    }


def test_the_legend_of_the_bars_names_only_kinds_that_there_are():
    def named(*kinds):
        scale = made_up(kinds)["vconcat"][0]["encoding"]["color"]["scale"]
        return dict(zip(scale["domain"], scale["range"], strict=True))

    assert list(named("baseline", "detour", "main path")) == ["main path", "detour", "baseline"]
    assert list(named("main path", "baseline")) == ["main path", "baseline"]
    assert named("main path", "baseline").items() <= named("baseline", "detour", "main path").items()
