"""A campaign as static pages whose links lead somewhere, and two campaigns side by side."""

import math
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

import pandas as pd
import pytest
from worklog_pages import CAMPAIGN, CLAIM, RECORDED

from warplog.core.text import Table
from warplog.worklog.site import index, speeds
from warplog.worklog.site.pages import Site, case_file
from warplog.worklog.site.two_campaigns import overview, side_by_side


class Links(HTMLParser):
    """Addresses and ids of a page."""

    def __init__(self, source):
        super().__init__()
        self.addresses, self.ids = [], set()
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src"):
                self.addresses.append(value)
            elif name == "id":
                self.ids.add(value)


@pytest.fixture(scope="module")
def site(page, recorded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    made = Site(folder, "window.vegaEmbed = () => 0;")
    made.add(page, recorded)
    made.finish(CAMPAIGN)
    return folder


def test_every_link_leads_to_a_file_of_the_site_and_to_a_place_in_it(site):
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > 10
    for path, seen in pages.items():
        for address in seen.addresses:
            if address.startswith("https://"):
                continue  # a source; nothing is loaded from it
            file, _, place = address.partition("#")
            assert not re.match(r"[a-z]+:|/", address), address
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file(), f"{path.name}: {address}"
            assert not place or place in pages[target].ids, f"{path.name}: {address}"


def test_each_step_and_each_case_has_an_address_that_stays(site, page, recorded):
    names = {path.name for path in (site / "sgemm").glob("*.html")}
    assert names == {
        "index.html",
        *(f"{section.name}.html" for section in page.sections),
        *(case_file(case) for case in recorded.measurements["case"].unique()),
    }


def test_the_page_of_a_case_shows_its_times(site, recorded):
    rows = recorded.measurements
    row = rows[(rows["variant"] == "naive") & (rows["case"] == "1024")].iloc[0]
    text = (site / "sgemm" / "at-1024.html").read_text()
    assert f">{row['median_us'] / 1e3:.3f} ms<" in text


def test_the_index_names_the_fastest_variant_of_each_family(site):
    text = (site / "index.html").read_text()
    assert '<a href="sgemm/index.html">sgemm</a>' in text
    words = " ".join(re.sub("<[^>]*>", " ", text.partition("<tbody>")[2]).split())
    assert words.startswith("sgemm fp32 GEMM without tensor cores 4096 warptile 44.4 TFLOP/s 86.7 % cublas 8")
    assert "at rest at the case named" in text


@pytest.mark.parametrize(("origin", "said"), [("live", False), ("recorded", True)])
def test_the_first_page_says_whether_its_numbers_were_recorded(recorded, origin, said):
    tables = replace(recorded, variants=recorded.variants.assign(origin=origin))
    text = index.page([tables], {tables.family: ""}, {}, CAMPAIGN, Table((), ()))
    assert (", recorded</h1>" in text) is said


def test_the_speed_on_the_first_page_is_a_link_to_the_figure_of_the_ladder(recorded):
    name = recorded.family
    text = index.page([recorded], {name: ""}, {name: ["ladder"]}, CAMPAIGN, Table((), ()))
    link = re.search(rf'<a href="figures/{name}/ladder.png">(.*?)</a>', text)[1]
    assert re.sub("<[^>]*>", "", link) == "44.4 TFLOP/s"


def test_a_hostile_case_is_a_file_name():
    assert case_file("../../x y") == "at-..-..-x-y.html"


NAMES = ("h200", "h100")


def other(tables, slower=2.0):
    """A campaign on a GPU with half the SMs and a quarter of the bandwidth, where each time is `slower` as long."""
    rows = tables.measurements.copy()
    for column in ("median_us", "q1_us", "q3_us"):
        rows[column] *= slower
    rows["gflops"] /= slower
    gpus = tables.gpus.assign(sms=tables.gpus["sms"] / 2)
    gpus["dram_gbytes_per_s_peak"] = tables.gpus["dram_gbytes_per_s_peak"] / 4
    return replace(tables, measurements=rows.assign(gpu="h100"), gpus=gpus)


def cells(table, name):
    return dict(zip(table.titles, next(row for row in table.rows if row[0] == name), strict=True))


def test_ratios_are_given_as_measured_and_relative_to_sms_and_bandwidth(recorded):
    row = cells(side_by_side(recorded, other(recorded), NAMES).speeds, "warptile")
    assert row["ratio"] == "0.500x"
    assert row["per SM and clock"] == "1.00x"
    assert row["per DRAM bandwidth"] == "2.00x"
    assert (row["TFLOP/s, h200"], row["TFLOP/s, h100"]) == ("44.4", "22.2")


def test_nothing_differs_where_all_variants_scale_alike(recorded):
    family = side_by_side(recorded, other(recorded), NAMES)
    assert family.facts == ("The fastest variant is warptile on both.",)
    assert family.steps is None
    assert family.claims is None
    assert all(row[-1].split(" → ")[0] == row[-1].split(" → ")[1] for row in family.speeds.rows)


def test_variants_that_change_places_steps_that_turn_and_claims_that_flip_are_said(recorded):
    theirs = other(recorded)
    rows = theirs.measurements
    hit = rows["variant"] == "warptile"
    rows.loc[hit, ["median_us", "q1_us", "q3_us"]] *= 3
    ours = replace(recorded, claims=pd.DataFrame([CLAIM]))
    theirs = replace(theirs, claims=pd.DataFrame([CLAIM | {"verdict": "refuted", "measured": 1.5}]))
    family = side_by_side(ours, theirs, NAMES)
    assert family.facts[0] == "The fastest variant is warptile on h200 and vectorized on h100."
    (step,) = family.steps.rows
    assert step[:2] == ("warptile", "vectorized")
    assert float(step[2][:-1]) > 1 > float(step[3][:-1])
    assert family.claims.rows == (("C1: coalescing brings 6x", "confirmed, 11.8", "refuted, 1.50"),)
    _, _, table = overview({"sgemm at 4096": family}, NAMES)
    assert table.rows == (("sgemm at 4096", "warptile", "vectorized", f"{family.ratio:.3f}x", "1", "1"),)
    assert family.ratio < 0.5
    before, after = cells(family.speeds, "warptile")["place"].split(" → ")
    assert int(before) < int(after)
    bare = replace(
        theirs, claims=pd.DataFrame([CLAIM | {"verdict": "refuted", "measured": 1.5, "unit": math.nan}])
    )
    assert side_by_side(ours, bare, NAMES).claims.rows[0][2] == "refuted, 1.50"
    unknown = replace(theirs, claims=pd.DataFrame([CLAIM | {"verdict": "not_measurable"}]))
    assert side_by_side(ours, unknown, NAMES).claims is None, (
        "a claim that was not judged has no other verdict"
    )


def test_a_family_without_times_in_both_campaigns_is_not_in_the_overview(recorded):
    nothing = replace(other(recorded), measurements=recorded.measurements.assign(status="crashed"))
    families = {
        "sgemm at 4096": side_by_side(recorded, nothing, NAMES),
        "again": side_by_side(recorded, other(recorded), NAMES),
    }
    assert [row[0] for row in overview(families, NAMES)[2].rows] == ["again"]


@pytest.mark.parametrize(("gpu", "written"), [("h100", True), ("h200", False)])
def test_the_site_has_a_page_for_a_campaign_of_another_gpu_only(page, recorded, tmp_path, gpu, written):
    tables = shutil.copytree(RECORDED / "tables", tmp_path / "second" / "tables")
    for path in tables.glob("*.parquet"):
        table = pd.read_parquet(path)
        if "gpu" in table:
            table.assign(gpu=gpu).to_parquet(path)
    site = Site(tmp_path / "site", "")
    site.add(page, recorded)
    site.add_side_by_side(tables)
    site.finish(CAMPAIGN)
    assert (tmp_path / "site" / "beside-second.html").is_file() == written
    assert ("beside-second.html" in (tmp_path / "site" / "index.html").read_text()) == written


def test_a_figure_over_several_orders_of_magnitude_has_plain_numbers_at_its_axes(recorded):
    figure = speeds.draw(speeds.data({"h200": recorded, "h100": other(recorded)}))
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_xscale() == "log"
        assert axes.get_xlabel().endswith("(log scale)")
        assert all(line.get_visible() for line in axes.get_xgridlines())
        labels = [label.get_text() for label in axes.get_xticklabels()]
        assert {"1", "10"} <= set(labels)
        assert all(re.fullmatch(r"[\d.\u2009]+", label) for label in labels)
