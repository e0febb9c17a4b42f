"""The worklog page: rungs in order, numbers as in the tables, missing data reported, HTML self-contained."""

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from msgspec import structs
from worklog_pages import (
    CAMPAIGN,
    CAPTIONS,
    CLAIM,
    FAMILY,
    PICTURES,
    RECORDED,
    SHOWN,
    Page,
    hot_line,
    rung,
    told,
)

from warplog import worklog
from warplog.core.errors import WarplogError
from warplog.tables import view
from warplog.worklog import asides
from warplog.worklog.html import _web, html


def test_every_rung_stands_in_the_order_of_the_ladder_in_every_form(page, recorded, tmp_path):
    order = list(recorded.variants.sort_values("order")["variant"])
    assert [one.name for one in page.rungs] == order
    seen = Page(html(page)).text
    heads = [seen.index(f"{place} {name} ", seen.index("How to read")) for place, name in enumerate(order, 1)]
    assert heads == sorted(heads)
    lines = worklog.markdown(page, tmp_path).splitlines()
    assert [line.split()[2] for line in lines if re.match(r"## \d+\. ", line)] == order
    for name in order:
        assert name.replace("_", r"\_") in worklog.latex(page, Path())


def test_numbers_are_those_of_the_tables(page, recorded):
    rows = recorded.ladder(recorded.case).set_index("variant")
    for one in page.rungs:
        speed = f"{rows.loc[one.name, 'gflops'] / 1e3:#.3g} TFLOP/s"
        assert (one.got if one.name == "cublas" else one.figures[0])[0] == one.speed == speed
        assert one.percent == pytest.approx(100 * rows.loc[one.name, "ratio_to_baseline"])
        assert f"{int(rows.loc[one.name, 'samples'])} launches" in one.noise
    step = rows.loc["vectorized", "median_us"] / rows.loc["warptile", "median_us"]
    assert rung(page, "warptile").got == (f"{step:.3g}x", "the speed of vectorized (4096, at rest)")
    assert (
        f"mean SM clock during a launch at 4096: {rows['sm_mhz'].min():.0f} to" in dict(page.facts)["Clocks"]
    )
    assert "recorded" not in dict(page.facts)["Campaign"]  # these tables were made by the live campaign
    assert "warptile with 44.4 TFLOP/s, 86.6 % of cublas" in page.lead[0]


def test_what_others_printed_stands_beside_ours_with_its_source(page):
    rows = rung(page, "warptile").printed.rows
    assert rows[0][:4] == ("this campaign", "NVIDIA H200", "4096", "44366")
    assert (
        "S. Boehm, How to optimize a CUDA matmul kernel",
        "RTX A6000",
        "not stated",
        "21779",
        "93.7",
    ) in rows


def test_published_figures_of_sizes_that_were_not_timed_are_shown_too(recorded):
    tables = replace(recorded, measurements=recorded.measurements[recorded.measurements["case"] == "4096"])
    cases = [row[2] for row in rung(told(tables), "cublas").printed.rows]
    assert cases == ["4096", "not stated", "4096", "1024", "2048", "8192"]


def test_limits_name_the_counters_behind_them(page):
    text = " ".join(rung(page, "vectorized").limits)
    assert "mainly through its 721 M shared-memory wavefronts" in text
    assert "Bank conflicts cause 40 % of its shared-memory wavefronts." in text
    assert "397 MB to and from device memory, 2.0 times the compulsory 201 MB." in text
    assert "Theoretical occupancy is 25 %, limited by registers; achieved occupancy is 25.4 %" in text
    assert "Theoretical occupancy is 100 %; achieved occupancy is 98.7 %." in " ".join(
        rung(page, "naive").limits
    )


def test_the_html_needs_nothing_else(page):
    source = html(page)
    seen = Page(source)
    assert {"script", "link", "iframe", "object", "base"}.isdisjoint(seen.tags)
    assert all(address.startswith("data:image/png;base64,") for address in seen.addresses)
    assert all(link.startswith(("#", "https://")) for link in seen.links)
    loading = re.sub(r'<a href="https://[^"]*" rel="noopener">', "", source)
    assert not re.search(r"@import|url\(|fetch\(|https?:", loading)
    assert len(source) < 2 << 20  # the longest address that a browser opens, see --report
    assert seen.tags.count("img") == len(SHOWN) == 8
    assert source.count('<div class="listing') == len(page.rungs)
    for tag in ("table", "section", "figure", "ul"):
        assert source.count(f"<{tag}") == source.count(f"</{tag}>")


def test_web_addresses_of_sources_are_links(page):
    seen = Page(html(page))
    assert "https://siboehm.com/articles/22/CUDA-MMM" in seen.links
    assert "S. Boehm, siboehm.com/articles/22/CUDA-MMM, kernel 1" in seen.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://a-b.org/x_y?z=1&w=2.", "https://a-b.org/x_y?z=1&amp;w=2"),
        ("(http://example.com), 4", "http://example.com"),
        ("nvidia.github.io/cccl/cub", "https://nvidia.github.io/cccl/cub"),
        ("cp.async.commit_group in naive.cu, me@example.com, javascript:alert(1)", None),
        ('"https://example.com"><script>', "https://example.com"),
    ],
)
def test_only_web_addresses_become_links(text, shown):
    made = str(_web(text))
    assert re.findall(r'<a href="([^"]*)" rel="noopener">', made) == ([shown] if shown else [])
    assert "<script" not in made


def test_a_name_in_the_summary_of_a_family_is_shown_as_code(recorded, tmp_path):
    page = told(recorded, structs.replace(FAMILY, summary="`rounds` multiply-adds <per> element"))
    assert '<p class="summary"><code>rounds</code> multiply-adds &lt;per&gt; element</p>' in html(page)
    assert worklog.markdown(page, tmp_path).splitlines()[2].startswith("`rounds` multiply-adds")


def test_the_same_input_gives_the_same_bytes(page, recorded, tmp_path):
    again = worklog.gather(FAMILY, recorded, CAMPAIGN, PICTURES, CAPTIONS)
    assert again == page
    assert html(again) == html(page)
    assert worklog.markdown(again, tmp_path) == worklog.markdown(page, tmp_path)
    assert worklog.latex(again, Path()) == worklog.latex(page, Path())


def test_the_figure_of_claims_is_left_to_the_tables(recorded):
    pictures = [*PICTURES, Path("new.png")]
    page = worklog.gather(FAMILY, recorded, CAMPAIGN, pictures, CAPTIONS)
    assert "claims" in {path.stem for path in PICTURES}
    assert "claims" not in {one.name for one in page.pictures}
    assert [one.name for one in page.pictures][-2:] == ["new", "swim_lanes"], "the unknown ones are last"
    assert page.ladder.name == "ladder"
    named = {one.name: one.title for one in page.pictures}
    assert named["throughput_vs_size"] == "Throughput by problem size"
    assert named["roofline"] == "Roofline"


def test_markdown_links_the_figures_from_where_it_lies(page):
    links = re.findall(r"!\[[^]]*\]\(<([^>]+)>\)", worklog.markdown(page, RECORDED / "worklog"))
    assert [(RECORDED / "worklog" / link).resolve() for link in links[:1]] == [
        next(path for path in PICTURES if path.stem == "ladder").resolve()
    ]
    assert len(links) == len(SHOWN)


def test_a_failed_rung_has_its_reason_and_no_numbers(recorded):
    rows = recorded.measurements.copy()
    hit = rows["variant"] == "vectorized"
    rows.loc[hit, ["status", "reason"]] = "wrong", "max error 3.1e+02 times the tolerance"
    rows.loc[hit, ["median_us", "gflops", "ratio_to_baseline"]] = math.nan
    page = told(replace(recorded, measurements=rows))
    failed = rung(page, "vectorized")
    assert (failed.badge, failed.gap) == ("wrong", "wrong: max error 3.1e+02 times the tolerance")
    assert (failed.figures, failed.story, failed.limits, failed.noise) == ((), (), (), "")
    assert failed.percent is None
    assert failed.excerpt is not None
    assert rung(page, "warptile").story == (
        "Not compared with vectorized because vectorized has no time (wrong).",
    )
    assert "Variants without a time: vectorized." in page.lead
    assert "max error 3.1e+02 times the tolerance" in Page(html(page)).text
    speeds = page.summaries[0].table
    assert [row[-2] for row in speeds.rows if row[0] == "vectorized"] == ["wrong"]


def test_missing_counters_are_said(recorded):
    rows = recorded.metrics.copy()
    hit = (rows["variant"] == "vectorized") & (rows["tool"] == "ncu")
    rows.loc[hit, "value"], rows.loc[hit, "status"], rows.loc[hit, "reason"] = math.nan, "denied", "no rights"
    page = told(replace(recorded, metrics=rows))
    for name in ("vectorized", "warptile"):
        one = rung(page, name)
        assert "Not explained because vectorized lacks counters: n/a (denied)." in one.story
        assert (one.factors, one.states) == (None, None)
    assert rung(page, "vectorized").limits == ("What bounds it is unknown: n/a (denied).",)
    resources = {row[0]: row for row in page.summaries[2].table.rows}
    assert set(resources["vectorized"][1:4]) == {"n/a"}
    html(page)


def test_a_named_draft_is_called_one_and_the_others_wait(recorded):
    assert [row[0] for row in told(recorded).waiting.rows] == [v.name for v in FAMILY.variants if v.draft]
    printed = {row[0]: row[3] for row in told(recorded).waiting.rows}["double_buffered"]
    assert printed.startswith("20271 GFLOP/s, H200, at 4096 (Public kernels of S. Boehm")
    drafts = tuple(structs.replace(v, draft=v.name == "warptile") for v in FAMILY.variants)
    page = told(recorded, structs.replace(FAMILY, variants=drafts))
    assert rung(page, "warptile").badge == "draft"
    assert rung(page, "cublas").badge == "baseline"
    assert page.waiting is None
    assert rung(told(recorded, structs.replace(FAMILY, draft=True)), "cublas").badge == "baseline, draft"


def test_code_that_was_shown_is_named_and_not_repeated(recorded):
    twin = FAMILY.variant("blocktile_2d").file
    rungs = tuple(structs.replace(v, file=twin) if v.name == "vectorized" else v for v in FAMILY.variants)
    page = told(recorded, structs.replace(FAMILY, variants=rungs))
    assert rung(page, "blocktile_2d").excerpt.file == "blocktile_2d.cu"
    assert rung(page, "vectorized").excerpt is None
    assert "same source as blocktile_2d" in rung(page, "vectorized").origins
    assert Page(html(page)).tags.count("pre") == len(page.rungs) - 1


def test_options_of_the_compiler_stand_beside_the_parameters(recorded):
    variants = recorded.variants.copy()
    variants["compile"] = ""
    variants.loc[variants["variant"] == "warptile", "compile"] = "-std=c++20 -DX=3 -lcuda"
    page = told(replace(recorded, variants=variants))
    assert rung(page, "warptile").origins[-2] == "compiled with -std=c++20 -DX=3 -lcuda"
    assert not any("compiled" in text for text in rung(page, "naive").origins)


def test_remarks_of_the_tables_are_passed_on(recorded):
    rows = recorded.measurements.copy()
    hit = rows["variant"] == "warptile"
    rows.loc[hit, "remarks"] = '[{"code": "earlier_source"}]'
    rows.loc[hit, ["throttle_reasons", "set_mhz"]] = "sw_power_cap", math.nan
    variants = recorded.variants.copy()
    variants.loc[variants["variant"] == "warptile", "spill_bytes"] = 40
    shared = recorded.metrics[recorded.metrics["variant"] == "warptile"].head(1)
    built = [
        shared.assign(metric=f"spill_{kind}_bytes", kernel=kernel, case="", tool="ptxas", value=float(value))
        for kernel, kind, value in (
            ("other()", "store", 0), ("other()", "load", 0), ("k()", "store", 16), ("k()", "load", 24)
        )
    ]  # fmt: skip
    metrics = recorded.metrics[~recorded.metrics["metric"].str.startswith("spill_")]
    metrics = pd.concat([metrics, *built])
    page = told(replace(recorded, measurements=rows, variants=variants, metrics=metrics))
    (resources,) = (s.table for s in page.summaries if s.heading.startswith("Resources"))
    assert next(one for one in resources.rows if one[0] == "warptile")[4] == "16 / 24"
    assert rung(page, "warptile").remarks == (
        "recorded for an earlier source",
        "the GPU throttled during timing: software power cap",
        "spill stores 16 B, loads 24 B per thread",
    )
    assert rung(page, "smem_tiled").remarks == ()


def test_a_reported_limit_is_no_remark_if_only_launches_at_the_full_clock_count(recorded):
    """The driver reports a limit for a while after it acted, also on the kernel before."""
    rows = recorded.measurements.copy()
    hit = rows["variant"] == "warptile"
    rows.loc[hit, "throttle_reasons"] = "sw_power_cap"
    rows["set_mhz"] = 1980.0
    page = told(replace(recorded, measurements=rows))
    assert not any("throttled" in remark for remark in rung(page, "warptile").remarks)


def test_claims_and_hot_lines_stand_with_the_rung_they_name(recorded):
    page = told(recorded, claims=[CLAIM], lines=[hot_line(recorded, 8, 0.02), hot_line(recorded, 9, 0.4)])
    cells = ("C1: coalescing brings 6x", "4096", "confirmed, exceeded", "11.8", ">= 5", "6x", "someone")
    assert rung(page, "gmem_coalesced").claims.rows == (cells,)
    assert [one.name for one in page.rungs if one.claims] == ["gmem_coalesced"]
    assert rung(page, "warptile").lines.titles == ("line", "code", "samples", "main warp state")
    assert rung(page, "warptile").lines.rows == (
        ("warptile.cu:9", "sum += a;", "40 %", "wait"),
        ("warptile.cu:8", "sum += a;", "2.0 %", "wait"),
        ("other lines", "", "58 %", ""),
    )
    assert any(note.startswith("Hottest lines: ") for note in page.notes)
    assert rung(page, "naive").lines is None


def test_hot_lines_are_in_the_order_of_their_samples_and_a_line_without_samples_has_no_state(recorded):
    many = {"instruction_share": 0.9, "stall": "mio_throttle"}
    lines = [hot_line(recorded, 7, 0.001) | many, hot_line(recorded, 8, 0.3), hot_line(recorded, 9, 0.6)]
    table = rung(told(recorded, lines=lines), "warptile").lines
    assert [row[0] for row in table.rows] == [
        "warptile.cu:9",
        "warptile.cu:8",
        "warptile.cu:7",
        "other lines",
    ]
    assert [row[-1] for row in table.rows] == ["wait", "wait", "", ""]


def test_states_with_short_names_are_explained_where_they_occur(recorded):
    notes = told(recorded, lines=[hot_line(recorded, 8, 0.4) | {"stall": "membar"}]).notes
    (meanings,) = (note for note in notes if note.startswith("Names of states: "))
    assert "membar: a memory fence" in meanings
    assert "gmma" not in meanings


def test_a_range_around_an_integer_count_is_shown_as_that_integer(recorded):
    claim = CLAIM | {"condition": "1.99 .. 2.01", "unit": "block", "measured": 2.0}
    (row,) = rung(told(recorded, claims=[claim]), "gmem_coalesced").claims.rows
    assert row[4] == "== 2"
    ratio = CLAIM | {"condition": "0.99 .. 1.01", "unit": "x"}
    (row,) = rung(told(recorded, claims=[ratio]), "gmem_coalesced").claims.rows
    assert row[4] == "0.99 .. 1.01x", "the tolerance of a ratio is part of the claim"


def test_the_lines_are_those_of_the_longest_of_several_launches_of_the_kernel(recorded):
    longest, other = (
        hot_line(recorded, 8, 0.6),
        hot_line(recorded, 9, 1.0) | {"launch": 1, "instructions": 10.0},
    )
    page = told(recorded, lines=[other, longest])
    assert rung(page, "warptile").lines.rows[0] == ("warptile.cu:8", "sum += a;", "60 %", "wait")


def test_lines_of_a_kernel_that_was_not_sampled_are_told_by_instructions_and_conflicts(recorded):
    cold = {"sample_share": math.nan, "stall": ""}
    lines = [
        hot_line(recorded, 5, 0) | cold | {"instruction_share": 0.9},
        hot_line(recorded, 6, 0) | cold | {"instruction_share": 0.03, "shared_wavefronts_excess": 268e6},
        *(hot_line(recorded, n, 0) | cold | {"instruction_share": 0.01} for n in range(7, 14)),
        hot_line(recorded, 99, 0.9) | {"kernel": "another, shorter kernel"},
    ]
    found = rung(told(recorded, lines=lines), "warptile").lines
    assert found.titles == ("line", "code", "instructions", "excess wavefronts")
    assert found.rows[:2] == (
        ("warptile.cu:6", "sum += a;", "3.0 %", "268 M"),
        ("warptile.cu:5", "sum += a;", "90 %", ""),
    )
    assert len(found.rows) == 5 + 1
    assert found.rows[-1] == ("other lines", "", "4.0 %", "")
    nothing = [hot_line(recorded, 5, 0) | cold]
    assert rung(told(recorded, lines=nothing), "warptile").lines is None


@pytest.mark.parametrize(
    ("value", "unit", "told"),
    [
        (32.0, "register", "32 registers"),
        (1.0, "block", "1 block"),
        (2.5, "sector/request", "2.50 sectors/request"),
        (11.79, "x", "11.8 x"),
        (4.86, "us", "4.86 us"),
        (math.nan, "x", ""),
    ],
)
def test_what_a_claim_measured_is_told_as_it_is_read(value, unit, told):
    row = asides.claims_table([CLAIM | {"measured": value, "unit": unit}]).rows[0]
    assert row[3] == told


def test_a_claim_names_the_cases_behind_its_number_and_what_the_tables_note():
    table = asides.claims_table([CLAIM | {"cases": "8192", "reason": "note on naive: 4 samples"}])
    assert dict(zip(table.titles, table.rows[0], strict=True)) | {"note": ""} == {
        "claim": "C1: coalescing brings 6x",
        "case": "8192",
        "verdict": "confirmed, exceeded",
        "measured here": "11.8",
        "confirmed if": ">= 5",
        "published": "6x",
        "source": "someone",
        "note": "",
    }
    assert table.rows[0][-1] == "note on naive: 4 samples"
    assert asides.claims_table([CLAIM | {"cases": ""}]).rows[0][1] == "4096", "no number is known"


def test_what_was_got_stands_beside_what_was_expected_with_the_verdict_on_the_claims(recorded, tmp_path):
    rows = recorded.ladder("4096").set_index("variant")["median_us"]
    expects = recorded.variants.assign(expected="4 to 8 times faster, see `naive`")
    tables = replace(recorded, variants=expects)
    refuted = CLAIM | {"id": "C2", "verdict": "refuted", "margin": ""}
    unjudged = CLAIM | {"id": "C3", "verdict": "not_measurable", "about": "an A6000"}
    page = told(tables, claims=[CLAIM, refuted, unjudged])
    step = rung(page, "gmem_coalesced")
    ratio = f"{rows['naive'] / rows['gmem_coalesced']:.3g}x"
    assert step.got == (ratio, "the speed of naive (4096, at rest)")
    assert step.verdict == "1 claim confirmed, 1 refuted, 1 not judged"
    assert not [what for _, what in step.figures if what.startswith("the speed of")], "it stands once"
    seen = Page(html(page))
    shown = f"4 to 8 times faster, see naive Got {ratio} the speed of naive (4096, at rest); {step.verdict}"
    assert shown in seen.text
    assert "#claims-rung-gmem_coalesced" in seen.links
    assert 'id="claims-rung-gmem_coalesced"' in html(page)
    assert (
        f"Got: **{ratio}** the speed of naive (4096, at rest); {step.verdict}."
        in worklog.markdown(page, tmp_path).splitlines()
    )
    assert rung(page, "naive").got == ("1.0 %", "of cublas (4096, at rest)"), "a step without a parent"
    baseline = rung(page, "cublas")
    assert baseline.got == (recorded_speed := "51.2 TFLOP/s", "(4096, at rest)"), (
        "the baseline has a speed only"
    )
    assert not [value for value, _ in baseline.figures if value == recorded_speed], "it stands once"
    assert f"Got: **{recorded_speed}** (4096, at rest)." in worklog.markdown(page, tmp_path).splitlines()
    assert f"Got {recorded_speed} (4096, at rest) Measured {baseline.noise}" in seen.text
    assert f'<span class="brief">{recorded_speed}</span>' in html(page)
    unknown = replace(tables, measurements=tables.measurements.assign(set_mhz=math.nan))
    assert rung(told(unknown), "warptile").got[1] == "the speed of vectorized (4096)"
    unexpected = replace(recorded, variants=recorded.variants.assign(expected=""))
    assert rung(told(unexpected), "warptile").got is None, "nothing was expected"
    assert "vectorized (4096, at rest)." in worklog.markdown(page, tmp_path)
    assert "no claim" not in seen.text
    assert asides.claims_verdict([unjudged]) == "claim not judged"
    elsewhere = CLAIM | {"cases": "8192, 4096"}
    assert asides.claims_verdict([CLAIM], "4096") == "claim confirmed"
    assert asides.claims_verdict([refuted], "8192") == "claim refuted (at 4096)"
    assert asides.claims_verdict([elsewhere, CLAIM], "4096", ("8192", "4096")) == (
        "2 claims confirmed (at 8192 and 4096)"
    )


def test_a_claim_within_noise_is_explained_where_one_occurs(recorded):
    noisy = CLAIM | {"verdict": "within_noise"}
    assert any("neither confirmed nor refuted" in note for note in told(recorded, claims=[noisy]).notes)
    assert not any("neither confirmed nor refuted" in note for note in told(recorded, claims=[CLAIM]).notes)


def test_a_detour_shows_its_gain_before_it_is_unfolded(recorded):
    rows = recorded.measurements.copy()
    rows.loc[rows["variant"] == "warptile", ["median_us", "q1_us", "q3_us"]] *= 2
    slower = replace(recorded, measurements=rows)
    for tables in (slower, replace(slower, variants=slower.variants.assign(expected="more"))):
        briefs = re.findall(r'class="brief">([^<]*)<', html(told(tables)))
        assert any(re.fullmatch(r"\S+ TFLOP/s · 0\.\d+x the speed of vectorized.*", one) for one in briefs)


def test_a_claim_about_another_gpu_says_so_instead_of_a_verdict():
    row = CLAIM | {"verdict": "not_measurable", "about": "an A6000", "margin": ""}
    cells = dict(zip(*(lambda t: (t.titles, t.rows[0]))(asides.claims_table([row])), strict=True))
    assert (cells["verdict"], cells["measured here"]) == ("not judged: about an A6000", "11.8")
    assert asides.claims_table([row | {"about": ""}]).rows[0][2] == "not judged"
    assert asides.claims_table([row | {"about": "", "measured": math.nan}]).rows[0][2] == "not measurable"


def test_a_size_beyond_a_variants_own_limit_is_not_run_and_the_table_says_why(recorded):
    rows = recorded.measurements[~recorded.measurements["case"].isin(["16384"])].copy()
    hit = (rows["variant"] == "vectorized") & (rows["case"] == "8192")
    rows.loc[hit, ["status", "reason"]] = "unsupported", "needs M to be at most 4096"
    rows.loc[hit, "own_limits"] = '{"M": 4096}'
    rows.loc[hit, ["median_us", "gflops"]] = math.nan
    page = told(replace(recorded, measurements=rows))
    speeds = page.summaries[0].table
    assert [row[-1] for row in speeds.rows if row[0] == "vectorized"] == ["not run"]
    note = "Not run: cases beyond the size to which a variant is limited: M at most 4096 ({})."
    assert speeds.notes == (note.format("naive, vectorized"),)
    assert note.format("naive, vectorized") in Page(html(page)).text
    rows.loc[hit, ["reason", "own_limits"]] = "needs sm_100a, this GPU is sm_90", ""
    speeds = told(replace(recorded, measurements=rows)).summaries[0].table
    assert [row[-1] for row in speeds.rows if row[0] == "vectorized"] == ["unsupported"]
    assert speeds.notes == (note.format("naive"),)


def test_a_claim_stands_once_with_the_last_rung_it_names(recorded):
    formulas = {
        "last": "ipc(smem_tiled) / ipc(naive)",
        "first": "ratio_to_baseline(naive), of cublas",
        "baseline": "kernels(cublas)",
        "ladder": "ipc(naive) > ipc(smem_tiled) > ipc(blocktile_1d) > ipc(warptile)",
        "absent": "median_us(untransposed_vectorized)",
    }
    page = told(recorded, claims=[CLAIM | {"id": name, "measure": f} for name, f in formulas.items()])
    placed = {one.name: [row[0].split(":")[0] for row in one.claims.rows] for one in page.rungs if one.claims}
    assert placed == {"smem_tiled": ["last"], "naive": ["first"], "cublas": ["baseline"]}
    assert page.summaries[-1].heading == "Claims about the whole ladder"
    assert [row[0].split(":")[0] for row in page.summaries[-1].table.rows] == ["ladder", "absent"]


def test_a_table_that_a_campaign_lacks_is_no_error_and_a_broken_one_is(tmp_path):
    tables = shutil.copytree(RECORDED / "tables", tmp_path / "tables")
    assert not list(tables.glob("claims.*"))
    assert view.load(tables, "sgemm").claims.empty
    claims = pd.DataFrame([{**CLAIM, "family": name, "gpu": "h200"} for name in ("sgemm", "scan")])
    claims.to_parquet(tables / "claims.parquet")
    assert list(view.load(tables, "sgemm").claims["family"]) == ["sgemm"]
    (tables / "claims.parquet").write_text("no table")
    with pytest.raises(WarplogError, match=r"claims\.parquet: not a readable table"):
        view.load(tables, "sgemm")


def test_a_figure_that_is_gone_is_named(page, tmp_path):
    lost = replace(page, ladder=replace(page.ladder, path=tmp_path / "none.png"))
    with pytest.raises(WarplogError, match=r"none\.png: not a readable PNG"):
        html(lost)


def test_a_remark_on_every_variant_is_said_once(recorded):
    rows = recorded.measurements.assign(remarks='[{"code": "earlier_source"}]')
    both = '[{"code": "earlier_source"}, {"code": "not_tuned", "gpu": "h200"}]'
    rows.loc[rows["variant"] == "warptile", "remarks"] = both
    page = told(replace(recorded, measurements=rows))
    assert ("All variants", "recorded for an earlier source") in page.facts
    assert rung(page, "naive").remarks == ()
    assert rung(page, "warptile").remarks == ("default parameters: not tuned on h200",)
    assert html(page).count("recorded for an earlier source") == 1


def test_sizes_stand_below_each_other_where_the_table_would_be_wider_than_a_page(recorded):
    few = recorded.measurements
    more = [few.assign(case=few["case"] + f"-long-name-{n}", size=few["size"] + n) for n in (1, 2)]
    narrow, wide = (
        told(replace(recorded, measurements=rows)).summaries[0].table
        for rows in (few, pd.concat([few, *more]))
    )
    assert narrow.titles[:2] == ("variant", "128")
    assert wide.titles[:2] == ("case", "naive")
    assert len(wide.rows) == 3 * len(narrow.titles[1:])
    assert wide.rows[0] == ("128", *(row[1] for row in narrow.rows))


def test_nothing_is_said_of_counters_that_a_family_never_captures(recorded):
    copies = structs.replace(FAMILY, measuring=structs.replace(FAMILY.measuring, profilers=("nsys",)))
    page = worklog.gather(copies, recorded, CAMPAIGN, PICTURES, CAPTIONS)
    assert not any("Nsight Compute" in text for text in page.method)
    assert page.notes == ()
    assert rung(page, "gmem_coalesced").story == ()
    assert not any("bounds" in text for text in rung(page, "naive").limits)
    assert not any(summary.heading.startswith("Resources") for summary in page.summaries)
