"""The worklog page: variants in order, numbers as in the tables, missing data reported, HTML self-contained."""

import json
import math
import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from msgspec import structs
from worklog_pages import (
    CAMPAIGN,
    CAPTIONS,
    CLAIM,
    FAMILY,
    HOSTILE,
    PICTURES,
    RECORDED,
    SAFE,
    SHOWN,
    Page,
    hot_line,
    section,
    uncharted,
)

from warplog import worklog
from warplog.core.errors import WarplogError
from warplog.tables import view
from warplog.worklog.audit import audit
from warplog.worklog.html import _web, html


def shown(page, name):
    """The text of a variant on the page, on one line."""
    source = html(replace(page, sections=(section(page, name),)))
    return Page(source.split(f'id="rung-{name}">')[1].split("<h2>Not measured yet")[0]).text


def in_table(tables, name, variant, **values):
    """The tables with other values in the row of a variant in one of them."""
    table = getattr(tables, name).copy()
    for column, value in values.items():
        table[column] = table[column].astype(object)
        table.loc[table["variant"] == variant, column] = value
    return replace(tables, **{name: table})


def test_every_variant_stands_in_the_order_of_the_ladder(page, recorded):
    order = list(recorded.variants.sort_values("order")["variant"])
    assert [variant.name for variant in page.sections] == order
    text = Page(html(page)).text
    heads = [text.index(f"{place} {name}", text.index("How to read")) for place, name in enumerate(order, 1)]
    assert heads == sorted(heads)


def test_every_number_on_the_page_is_that_of_its_cell(page, tmp_path, capsys):
    (tmp_path / "worklog").mkdir()
    (tmp_path / "worklog" / "sgemm.html").write_text(html(page))
    (tmp_path / "tables").symlink_to(RECORDED / "tables")
    result = audit(tmp_path, sys.stdout)
    assert result.checked > 500
    assert result.passed, capsys.readouterr().out


@pytest.mark.parametrize(
    ("origins", "words"), [("data_sheet", "my source, not measured"), ("measured", "my source, measured")]
)
def test_a_page_names_the_source_of_the_peaks_and_whether_they_were_measured(recorded, origins, words):
    tables = replace(recorded, gpus=recorded.gpus.assign(origins=origins, source="my source"))
    assert f"Peaks {words}" in Page(html(uncharted(tables))).text


def test_a_step_says_in_one_sentence_what_it_brought_and_by_what(page):
    text = shown(page, "gmem_coalesced")
    assert (
        "11.5x as fast as naive (11.2x to 11.9x): sectors per global load 16.5 → 2.5, sectors per global store"
        " 32 → 4. 5.75 TFLOP/s at 4096, at rest 11.2 % of cublas"
    ) in text
    assert (
        text.index("neighbouring lanes")
        < text.index("11.5x")
        < text.index("Expected")
        < text.index("6.4 times naive")
    )
    assert text.index("Why it is faster") < text.index("gmem_coalesced.cu") < text.index("What bounds it")


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        (1, "1 block for 132 SMs;"),
        (66, "66 blocks for 132 SMs;"),
        (132, "132 blocks for 132 SMs, which hold more at a time;"),
    ],
)
def test_a_grid_of_less_than_a_wave_is_said_to_be_too_small(recorded, blocks, words):
    rows = recorded.bounds.copy()
    rows.loc[rows["variant"] == "vectorized", ["kind", "blocks", "sms"]] = "launch", blocks, 132
    text = shown(uncharted(replace(recorded, bounds=rows)), "vectorized")
    assert f"The grid does not fill the GPU: {words}" in text


def test_what_bounds_a_kernel_names_unit_stall_occupancy_traffic_and_conflicts(page):
    text = shown(page, "vectorized").partition("What bounds it")[2]
    for words in (
        "Most of what L1/TEX does is shared memory: 721 M wavefronts.",
        "The largest stall is waiting for data from shared memory (short_scoreboard, 21.2 % of warp cycles).",
        "(25 % in theory, limited by registers)",
        "Device memory moves 399 MB, 1.98x the compulsory 201 MB.",
        "Bank conflicts are 39.5 % of its shared-memory wavefronts.",
    ):
        assert words in text


def test_causes_and_costs_stand_in_a_small_table_and_the_rest_is_folded_away(page):
    step = section(page, "smem_tiled").step
    assert {change.role for change in step.argument} == {"cause", "cost"}
    assert {change.role for change in step.details} <= {"effect", "detail"}
    open_part, folded = shown(page, "smem_tiled").split("Full breakdown", 1)
    assert (
        "Why it is faster gmem_coalesced smem_tiled factor or time saved instructions 11.8 G 6.6 G"
        in open_part
    )
    assert "remainder" in folded


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"word": "SAME", "low": 0.99, "high": 1.02},
            "As fast as vectorized within noise (0.990x to 1.02x).",
        ),
        (
            {"word": "AMBIGUOUS", "reason": "two_groups"},
            "too close to call: its processes fall into two groups.",
        ),
        ({"word": "SLOWER", "speedup": 0.8}, "0.800x the speed of vectorized"),
    ],
)
def test_a_step_that_is_no_faster_says_so_in_the_words_of_its_verdict(recorded, values, words):
    assert words in shown(uncharted(in_table(recorded, "verdicts", "warptile", **values)), "warptile")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"explained": "within_runs"}, "Profiled and timed launches differ by more than this"),
        ({"explained": "no_cause"}, "Counters show no cause."),
        ({"explained": "other_kernels"}, "its longest kernel takes"),
        ({"explained": "", "gap": "no_counters"}, "Counters were not captured, so there is no explanation."),
        (
            {"ancestor": "naive", "ancestor_speedup": 90.0},
            "Compared with naive, an ancestor that is faster than its parent, it is 90.0x as fast.",
        ),
    ],
)
def test_a_step_that_counters_do_not_explain_says_why(recorded, values, words):
    text = shown(uncharted(in_table(recorded, "steps", "warptile", **values)), "warptile")
    assert words in text
    assert ("Why it is faster" in text) == ("ancestor" in values)


def test_a_variant_with_the_kernel_of_its_parent_has_neither_causes_nor_a_bound(recorded):
    variant = section(uncharted(in_table(recorded, "places", "warptile", kernel_of="vectorized")), "warptile")
    assert (variant.same_kernel, variant.step, variant.bound, variant.lines) == ("vectorized", None, None, ())
    page = uncharted(in_table(recorded, "places", "warptile", kernel_of="vectorized"))
    assert "At 4096, it launches the same kernel as vectorized." in shown(page, "warptile")


def test_a_step_that_turns_at_other_cases_names_the_largest_difference(page):
    text = shown(page, "blocktile_2d")
    match = re.search(
        r"It is slower than blocktile_1d at (\d) of (\d) cases: (0\.\d+)x its speed at (\d+)", text
    )
    assert match
    assert (match[1], match[4]) == ("4", "128")


def test_a_tied_step_says_where_it_is_faster_and_where_it_is_slower(recorded):
    verdicts = recorded.verdicts.copy()
    verdicts.loc[(verdicts["variant"] == "blocktile_1d") & (verdicts["case"] == recorded.case), "word"] = (
        "SAME"
    )
    text = shown(uncharted(replace(recorded, verdicts=verdicts)), "blocktile_1d")
    for word in ("faster", "slower"):
        assert re.search(rf"It is {word} than smem_tiled at \d of \d cases: [\d.]+x its speed at \d+", text)


def test_the_lead_names_the_fastest_its_ties_and_the_main_path(page, recorded):
    lead = Page(re.search(r'<p class="lead">.*?</p>', html(page), re.DOTALL)[0]).text
    assert lead.startswith("At 4096, the fastest variant is warptile: 44.4 TFLOP/s, 86.7 % of cublas.")
    assert "The main path leads there from naive (0.498 TFLOP/s) in 6 steps: 89.1x as fast" in lead
    tied = uncharted(in_table(recorded, "places", "vectorized", fastest="tied"))
    assert "as fast within noise: vectorized." in Page(html(tied)).text


def test_predictions_stand_beside_what_was_expected_and_properties_of_the_code_are_folded(recorded):
    given = {
        "family": "sgemm", "variant": "warptile", "id": "", "against": "vectorized", "case": "4096", "regime": "rest",
        "said_of": "", "source": "", "low": 1.4, "high": 1.6, "unit": "x", "measured": 1.29, "measured_low": 1.27,
        "measured_high": 1.31, "reason": "", "reason_of": "",
    }  # fmt: skip
    rows = [
        given | {"kind": "predicts", "quantity": "speedup", "word": "missed", "off": 1.29 / 1.4 - 1},
        given | {"kind": "predicts", "quantity": "sm_mhz", "word": "not_measurable", "off": math.nan}
        | {"reason": "other_gpu", "reason_of": "RTX 4090", "high": math.inf},
        given | {"kind": "expects", "quantity": "sass_LDS.128", "word": "met", "against": "", "off": math.nan},
    ]  # fmt: skip
    text = shown(uncharted(replace(recorded, answers=pd.DataFrame(rows))), "warptile")
    assert "speed-up over vectorized at 4096 1.40x to 1.60x 1.29x missed by −7.86 %" in text
    assert "at least 1.40x 1.29x said of RTX 4090" in text
    assert "Compiled code as expected: 1 met" in text


def test_a_claim_stands_with_the_last_variant_that_its_formula_names(recorded):
    whole = CLAIM | {"id": "C2", "claim": "all of them", "measure": "1"}
    page = uncharted(recorded, claims=[CLAIM, whole])
    assert [claim.raw("id") for claim in section(page, "gmem_coalesced").claims] == ["C1"]
    assert [claim.raw("id") for claim in page.claims] == ["C2"]
    assert "Claims: 1 confirmed" in shown(page, "gmem_coalesced")
    assert "C1: coalescing brings 6x (kernel 1 = naive)" in shown(page, "gmem_coalesced")


def test_what_others_published_stands_beside_ours_with_its_source(page):
    text = shown(page, "warptile")
    assert (
        "S. Boehm, How to optimize a CUDA matmul kernel RTX A6000 not stated 21.8 TFLOP/s 93.7 % 44.4 TFLOP/s"
        in text
    )


def test_the_html_needs_nothing_else(page):
    source = html(page)
    seen = Page(source)
    assert {"script", "link", "iframe", "object", "base"}.isdisjoint(seen.tags)
    assert all(address.startswith("data:image/png;base64,") for address in seen.addresses)
    assert all(link.startswith(("#", "https://")) for link in seen.links)
    loading = re.sub(r'<a href="https://[^"]*" rel="noopener">', "", source)
    assert not re.search(r"@import|url\(|fetch\(|https?:", loading)
    assert len(source) < 3 << 20
    assert seen.tags.count("img") == len(SHOWN)


def test_every_link_within_the_page_leads_somewhere(page):
    source = html(page)
    ids = re.findall(r' id="([^"]*)"', source)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in Page(source).links if link.startswith("#")} <= set(ids)


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("see https://a-b.org/x_y?z=1&w=2.", "https://a-b.org/x_y?z=1&amp;w=2"),
        ("(http://example.com), 4", "http://example.com"),
        ("nvidia.github.io/cccl/cub", "https://nvidia.github.io/cccl/cub"),
        ("cp.async.commit_group in naive.cu, me@example.com, javascript:alert(1)", None),
        ('"https://example.com"><script>', "https://example.com"),
    ],
)
def test_only_web_addresses_become_links(text, link):
    made = str(_web(text))
    assert re.findall(r'<a href="([^"]*)" rel="noopener">', made) == ([link] if link else [])
    assert "<script" not in made


def test_hostile_text_is_text(recorded):
    tables = recorded
    for name, columns in {
        "variants": ("idea", "note", "credit", "expected", "compile"),
        "steps": ("ancestor", "twin", "gap"),
        "changes": ("quantity", "of", "wait_line"),
        "bounds": ("stall", "wait_line", "ceiling", "limiters"),
        "places": ("limited_by",),
        "verdicts": ("against",),
    }.items():
        table = getattr(tables, name).copy()
        for column in columns:
            table.loc[table["variant"] == "warptile", column] = HOSTILE
        tables = replace(tables, **{name: table})
    claim = CLAIM | dict.fromkeys(
        ("claim", "kernels", "source", "published", "verdict", "reason", "condition"), HOSTILE
    )
    family = structs.replace(FAMILY, title=HOSTILE, summary=HOSTILE)
    line = hot_line(recorded, 3, 0.5) | {"text": HOSTILE, "stall": HOSTILE}
    source = html(uncharted(tables, family, claims=[claim], lines=[line]), "0;")
    seen = Page(source.partition("<script>")[0])
    assert "script" not in seen.tags
    assert seen.text.count("alert(1)") > 10
    assert SAFE in " ".join(unescape(seen.text).split())


def test_no_page_hides_a_character(recorded):
    source = html(uncharted(in_table(recorded, "variants", "naive", idea="up\u202edown\u200b")))
    assert r"up\u{202e}down\u{200b}" in source
    assert "\u202e" not in source


def test_the_same_input_gives_the_same_bytes(page, recorded):
    assert html(worklog.gather(FAMILY, recorded, CAMPAIGN, PICTURES, CAPTIONS)) == html(page)


def test_a_failed_variant_has_its_reason_and_no_numbers(recorded):
    rows = recorded.measurements.copy()
    hit = rows["variant"] == "cublas"
    rows.loc[hit, ["status", "reason"]] = "wrong", "max error 3.1e+02 times the tolerance"
    rows.loc[hit, ["median_us", "gflops", "ratio_to_baseline"]] = math.nan
    page = uncharted(replace(recorded, measurements=rows))
    failed = section(page, "cublas")
    assert (failed.badges, failed.gap) == (
        ("wrong", "baseline"),
        "wrong: max error 3.1e+02 times the tolerance",
    )
    assert (failed.measured, failed.step, failed.bound, failed.lines) == (None, None, None, ())
    assert "Wrong: max error 3.1e+02 times the tolerance." in Page(html(page)).text


def test_a_variant_that_needs_other_cases_than_the_headline_case_is_not_called_unsupported(recorded):
    rows = recorded.measurements.copy()
    hit = (rows["variant"] == "cublas") & (rows["case"] == recorded.case)
    rows.loc[hit, ["status", "reason"]] = "unsupported", "needs n < 4096"
    rows.loc[hit, ["median_us", "gflops", "ratio_to_baseline"]] = math.nan
    page = uncharted(replace(recorded, measurements=rows))
    assert section(page, "cublas").badges == ("other_cases", "baseline")
    assert f"At {recorded.case}, unsupported: needs n < 4096." in Page(html(page)).text
    rows.loc[rows["variant"] == "cublas", "status"] = "unsupported"
    page = uncharted(replace(recorded, measurements=rows))
    assert section(page, "cublas").badges == ("unsupported", "baseline")
    assert "Unsupported: needs n < 4096." in Page(html(page)).text


def test_a_size_beyond_a_variants_own_limit_is_not_run_and_the_table_says_why(recorded):
    rows = recorded.measurements.copy()
    hit = (rows["variant"] == "naive") & (rows["case"] == "1024")
    rows.loc[hit, ["status", "own_limits"]] = "unsupported", json.dumps({"n": 512})
    text = Page(html(uncharted(replace(recorded, measurements=rows)))).text
    assert "not run" in text
    assert "Not run beyond n <= 512: naive." in text


def test_remarks_on_every_variant_are_said_once(recorded):
    rows = recorded.measurements.assign(remarks=json.dumps([{"code": "few_samples", "samples": 4}]))
    page = uncharted(replace(recorded, measurements=rows))
    assert Page(html(page)).text.lower().count("only 4 samples") == 1


def test_a_named_draft_is_called_one_and_the_others_wait(page):
    assert {draft.name for draft in page.drafts} == {v.name for v in FAMILY.variants if v.draft}
    assert "Not measured yet" in Page(html(page)).text


def test_nothing_is_said_of_counters_that_a_family_never_captures(recorded):
    measuring = structs.replace(FAMILY.measuring, profilers=("nsys",))
    nothing = {name: getattr(recorded, name).iloc[:0] for name in ("steps", "changes", "bounds")}
    page = uncharted(replace(recorded, **nothing), structs.replace(FAMILY, measuring=measuring))
    text = Page(html(page)).text
    assert "there are no counters, since copies have none" in text
    assert "What bounds it" not in text
    assert "Counters come from" not in text


def test_the_figure_of_claims_is_left_to_the_tables(recorded):
    page = worklog.gather(FAMILY, recorded, CAMPAIGN, [*PICTURES, Path("new.png")], CAPTIONS)
    assert page.ladder.name == "ladder"
    assert "claims" not in {picture.name for picture in page.pictures}


def test_a_figure_of_one_variant_stands_in_its_section_and_not_among_those_of_the_family(recorded):
    drawn = [PICTURES[0].with_name(f"{name}.png") for name in ("owners", "owners@naive", "owners@naive_too")]
    page = worklog.gather(FAMILY, recorded, CAMPAIGN, drawn, CAPTIONS)
    assert [(p.name, p.title) for p in page.pictures] == [("owners", "Who writes which element")]
    assert page.pictures[0].caption.startswith("Who writes which element of the result of sgemm")
    assert [(p.name, p.title, p.caption) for p in section(page, "naive").pictures] == [
        ("owners@naive", "Who writes which element", "")
    ]


def test_a_figure_that_is_gone_is_named(page, tmp_path):
    gone = replace(page, ladder=replace(page.ladder, path=tmp_path / "ladder.png"))
    with pytest.raises(WarplogError, match=r"ladder\.png: not a readable PNG"):
        html(gone)


def test_a_table_that_a_campaign_lacks_is_no_error_and_a_broken_one_is(tmp_path):
    with pytest.raises(WarplogError, match="measurements"):
        view.load(tmp_path, "sgemm")


def test_equal_factors_are_equal_lengths_and_a_step_begins_where_the_one_before_ends(page, recorded):
    fall = page.waterfall
    assert [step.place.raw("variant") for step in fall.steps] == [
        variant.name for variant in page.sections if variant.is_on_path
    ]
    us = recorded.ladder(recorded.case).set_index("variant")["median_us"]
    for before, step in zip(fall.steps, fall.steps[1:], strict=False):
        assert step.start == before.end
        names = (str(place.place.raw("variant")) for place in (before, step))
        length = math.log(us[next(names)] / us[next(names)])
        assert (step.end - step.start) / length == pytest.approx(
            (fall.steps[1].end - fall.steps[1].start) / math.log(us["naive"] / us["gmem_coalesced"])
        )
    assert 0 < fall.baseline <= 1


def test_a_step_has_the_charts_of_its_parent_and_its_own_folded_and_with_a_text(page):
    assert [chart.title for chart in section(page, "warptile").memory] == ["vectorized", "warptile"]
    assert 'aria-label="Memory chart of warptile: Kernel' in html(page)
