"""Pages of variants that are tied, slower when sustained, or explained at another case than the headline."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from warplog.worklog.sentences import overlap_sentences, sentences
from worklog_pages import CAMPAIGN, CAPTIONS, FAMILY, rung, told

from warplog import worklog
from warplog.analysis import decomposition
from warplog.records import remarks
from warplog.tables.agreement import agreement
from warplog.worklog import explain
from warplog.worklog.html import html


def changed(recorded, variant, case="4096", **values):
    """The recorded tables with other values in a row of `measurements`."""
    rows = recorded.measurements.copy()
    for column, value in values.items():
        if column not in rows:
            rows[column] = "" if isinstance(value, str) else math.nan
        rows.loc[(rows["variant"] == variant) & (rows["case"] == case), column] = value
    return replace(recorded, measurements=rows)


def test_variants_whose_times_overlap_with_the_fastest_are_tied_with_it(recorded):
    best = recorded.ladder("4096").set_index("variant").loc["warptile"]
    rivals = changed(
        recorded, "vectorized", median_us=best["median_us"] * 1.001, process_min_us=best["process_min_us"]
    )
    lead = " ".join(told(rivals).lead)
    assert "warptile with 44.4 TFLOP/s, 86.6 % of cublas; tied with it within noise: vectorized." in lead
    first = "At 4096, the fastest variant besides the baseline is warptile with 44.4 TFLOP/s"
    assert told(recorded).lead[0].startswith(first)


def test_a_step_within_noise_is_tied_and_is_not_explained(recorded):
    best = recorded.ladder("4096").set_index("variant").loc["warptile"]
    page = told(
        changed(
            recorded, "vectorized", median_us=best["median_us"] * 1.001, process_min_us=best["process_min_us"]
        )
    )
    (offset,) = rung(page, "warptile").story
    assert re.match(r"Less time in short_scoreboard .* µs; more in issuing or ready: \d+ → \d+ µs\.$", offset)
    assert rung(page, "warptile").got == (
        "1.00x",
        "the speed of vectorized, tied within noise (4096, at rest)",
    )


def test_the_headline_shows_rest_and_sustained_where_they_differ(recorded):
    row = recorded.ladder("4096").set_index("variant").loc["warptile"]
    long = {"sustained_us": row["median_us"] * 1.25, "limited_by": "power", "set_mhz": 1980.0}
    power = {"sustained_sm_mhz": 1500.0, "sustained_power_w": 695.0}
    page = told(changed(recorded, "warptile", **long, **power))
    figures = rung(page, "warptile").figures
    rest, share, run = figures[:3]
    assert (rest, run) == (("44.4 TFLOP/s", "at 4096, at rest"), ("35.5 TFLOP/s", "sustained"))
    assert share == ("86.6 %", "of cublas"), "which is that at rest"
    assert rung(page, "vectorized").figures[0][1] == "at 4096"
    assert "Sustained, warptile reaches 35.5 TFLOP/s, limited by power." in page.lead
    assert rung(page, "warptile").limits[0] == (
        "Sustained, launches are limited by power: set SM clock 1980 → 1500 MHz at 695 W; 3.872 ms a launch, 1.25x"
        " the time at rest."
    )


def test_both_regimes_are_explained_once_before_the_first_number_of_a_step(recorded, tmp_path):
    long = {"sustained_us": 4000.0, "limited_by": "power", "set_mhz": 1980.0}
    page = told(changed(recorded, "warptile", **long))
    told_once = (
        "Times and speeds are at rest (single launches, each started after a pause, when the SM clock is back at its"
        " maximum) unless they are called sustained (without pauses, at a limit of the board, usually its power limit)."
    )
    assert page.regimes == told_once
    method = " ".join(page.method)
    assert "at rest" not in method.lower()
    assert "the set SM clock, which the driver has chosen, just before each launch" in method
    rows = recorded.measurements
    unknown = told(
        replace(recorded, measurements=rows.assign(set_mhz=math.nan, sustained_us=2 * rows["median_us"]))
    )
    assert "clocks" not in " ".join(unknown.method), "the set clock could not be measured"
    text = worklog.markdown(page, tmp_path)
    assert text.count(told_once) == 1
    assert text.index(told_once) < text.index("## 1. naive")
    seen = html(page)
    assert seen.count(told_once) == 1
    assert seen.index(told_once) < seen.index('id="rung-naive"')
    assert " ".join(worklog.latex(page, tmp_path).split()).count(told_once) == 1
    assert "with a cold L2 unless they are called back to back" in unknown.regimes


def test_the_times_of_profilers_are_told_in_the_words_of_the_page(recorded):
    told_apart = agreement([10.0], [9.0], 12.0, 11.0)
    apart = {"agreement": told_apart.code, "agreement_notes": remarks.cell(told_apart.notes)}
    words = (
        "the profilers' times differ: {} 10 us, ncu 12 us; in short bursts with a warm L2 9 us, nsys 11 us"
    )
    page = told(changed(recorded, "warptile", set_mhz=math.nan, **apart))
    assert words.format("with a cold L2") in rung(page, "warptile").remarks
    page = told(changed(recorded, "warptile", **apart))
    assert words.format("at rest") in rung(page, "warptile").remarks


@pytest.mark.parametrize(("slowdown", "first"), [(1.03, "vectorized"), (1.1, "blocktile_2d")])
def test_another_variant_may_be_the_fastest_when_sustained(recorded, slowdown, first):
    row = recorded.ladder("4096").set_index("variant").loc["warptile"]
    tables = changed(recorded, "warptile", sustained_us=row["median_us"] * 2, limited_by="power")
    rows = recorded.ladder("4096").set_index("variant")
    long_us = rows.loc["vectorized", "median_us"] * slowdown
    tables = changed(tables, "vectorized", sustained_us=long_us, limited_by="power")
    speed = rows.loc[first, "gflops"] / 1e3 / (slowdown if first == "vectorized" else 1)
    assert f"Sustained, the fastest variant is {first} with {speed:#.3g} TFLOP/s." in told(tables).lead


def test_several_processes_are_named_with_their_range(recorded):
    several = {"processes": 3, "process_min_us": 3080.0, "process_max_us": 3099.0, "set_mhz": 1980.0}
    page = told(changed(recorded, "warptile", **several))
    assert rung(page, "warptile").noise.startswith(
        "3.098 ms at rest: median of 3 processes (3.080 to 3.099 ms), "
    )
    assert any(
        "the median over 3 processes of the median of each process's launches" in text for text in page.method
    )
    assert any("differ by no more than their floor" in line for line in page.method)
    equal = several | {"process_min_us": 3098.1, "process_max_us": 3098.2}
    noise = rung(told(changed(recorded, "warptile", **equal)), "warptile").noise
    assert noise.startswith("3.098 ms at rest: median of 3 processes (3.098 ms each), ")


def test_bars_beyond_the_baseline_keep_their_lengths_and_mark_it(recorded):
    """100, 178 and 253 % look different: the longest bar is the widest, and a line marks 100 %."""
    page = told(
        changed(changed(recorded, "warptile", ratio_to_baseline=2.5), "vectorized", ratio_to_baseline=1.75)
    )
    source = html(page)
    widths = [float(width) for width in re.findall(r'class="gauge"><div style="width:([\d.]+)%"', source)]
    assert sorted(widths)[-3:] == [40.0, 70.0, 100.0]
    assert source.count('<i style="left:40.0%">') == len(widths)
    assert '<i style="left' not in html(told(recorded))


def test_a_smallest_gain_that_another_one_equals_after_rounding_is_not_named(recorded):
    times = recorded.ladder("4096").set_index("variant")["median_us"]
    ratio = times["blocktile_2d"] / times["vectorized"]
    page = told(changed(recorded, "warptile", median_us=times["vectorized"] / ratio))
    assert "the smallest" in told(recorded).lead[-1]
    assert "brings the largest speed-up" in page.lead[-1]
    assert "the smallest" not in page.lead[-1]


def test_the_name_of_the_headline_case_is_explained_once(recorded):
    assert told(recorded).method[0] == "Case 4096 is M = N = K = 4096."


def test_figures_of_one_family_alone_come_first(recorded):
    pictures = [Path("ladder.png"), Path("roofline.png"), Path("overlap.png")]
    page = worklog.gather(
        structs.replace(FAMILY, figures=("overlap",)), recorded, CAMPAIGN, pictures, CAPTIONS
    )
    assert [one.name for one in page.key] == ["overlap"]
    assert [one.name for one in page.pictures] == ["roofline"]
    text = worklog.markdown(page, Path())
    assert text.index("overlap.png") < text.index("ladder.png") < text.index("## 1. naive")


def test_a_remainder_that_is_larger_than_the_gain_is_all_that_is_said_about_the_counters():
    factor = decomposition.Factor(decomposition.Change("instructions_executed", 100.0, 97.0), 1.031)
    step = decomposition.Step("f", "b", "a", "1", 1.013, (factor,), (), 0.983)
    assert sentences(step) == (
        "1.01x as fast as a.",
        "The counters cannot explain the difference (1.3 %): it is smaller"
        " than that between the profiled and the timed launches (1.7 %).",
    )
    assert "Factors in its favour: instructions 100 → 97 (1.03x)." in sentences(
        replace(step, remainder=0.999)
    )
    assert sentences(replace(step, kernel_us=(75.0, 75.0), others_us=(25.0, 25.0)))[-1] == (
        "The counters cover only the longest kernel of a, 75 % of its time, of b, 75 % of its time."
    )


def test_a_step_that_was_profiled_at_another_case_names_it_and_keeps_the_headline_ratio(recorded):
    small = {"256": "4096", "4096": "256"}
    metrics = recorded.metrics.assign(case=recorded.metrics["case"].map(lambda case: "256" if case else ""))
    variants = recorded.variants.assign(profile_cases="256,4096")
    tables = replace(recorded, metrics=metrics, variants=variants)
    assert (tables.profiled_case, tables.case) == ("256", "4096")
    mine = rung(told(tables), "warptile")
    times = {case: tables.ladder(case).set_index("variant")["median_us"] for case in small}
    assert mine.got[0] == f"{times['4096']['vectorized'] / times['4096']['warptile']:.3g}x"
    ratio = next(s.ratio for s in explain.Explanation(tables).steps if s.variant == "warptile")
    assert ratio == pytest.approx(times["256"]["vectorized"] / times["256"]["warptile"])
    assert mine.story[0].startswith("At 256, where the counters were captured: ")


def test_the_method_is_true_of_copies_and_of_families_that_are_timed_on_the_host(recorded):
    exact = worklog.gather(
        structs.replace(FAMILY, work=structs.replace(FAMILY.work, flops=0)), recorded, CAMPAIGN, [], CAPTIONS
    )
    assert exact.method[1] == "Every variant had to give exactly the expected result before it was timed."
    on_host = structs.replace(FAMILY, measuring=structs.replace(FAMILY.measuring, timing="host"))
    method = " ".join(worklog.gather(on_host, recorded, CAMPAIGN, [], CAPTIONS).method)
    assert "includes the host's part of each launch" in method
    assert "cold L2" not in method
    assert "float64" in method


def test_a_family_about_power_begins_with_what_the_data_change(recorded):
    tables = replace(recorded, measurements=recorded.measurements.assign(size=1.0, sustained_us=math.nan))
    for case, long, energy in (("4096", 120.0, 2.0), ("2048", 100.0, 1.4), ("1024", 99.0, 1.5)):
        tables = changed(tables, "warptile", case, sustained_us=long, pj_per_flop=energy)
    kept = tables.measurements["case"].isin(["4096", "2048", "1024"])
    tables = replace(tables, measurements=tables.measurements[kept])
    page = told(tables, structs.replace(FAMILY, figures=("power_trace",)))
    assert page.lead[:1] == (
        "With the data of 2048 instead of 4096, warptile is 1.20x as fast and takes 1.40 instead of 2.00 pJ/FLOP.",
    )


def test_a_family_about_overlap_says_how_much_of_the_copies_is_hidden(recorded):
    values = {"wall_us": 100.0, "kernel_us": 91.0, "to_device_us": 80.0, "to_host_us": 70.0}
    values |= {"longest_engine_pct": 91.0, "copy_hidden_pct": 95.2}
    copy = recorded.metrics.iloc[0].to_dict() | {"case": "4096", "tool": "nsys", "kernel": ""}
    rows = [copy | {"variant": "warptile", "metric": name, "value": value} for name, value in values.items()]
    rows += [copy | {"variant": "vectorized", "metric": "copy_hidden_pct", "value": 61.0}]
    tables = replace(recorded, metrics=type(recorded.metrics)(rows))
    quiet = structs.replace(FAMILY.measuring, profilers=("nsys",))
    page = worklog.gather(
        structs.replace(FAMILY, figures=("overlap",), measuring=quiet), tables, CAMPAIGN, [], CAPTIONS
    )
    assert rung(page, "warptile").story == (
        "Traced back to back, a launch takes 100.0 µs, with copies in for 80.00 µs, kernels for 91.00 µs and copies out"
        " for 70.00 µs.",
        "95 % of the copy time is overlapped (61 % in vectorized).",
    )
    assert overlap_sentences(values | {"copy_hidden_pct": 0.0}, "a", {"copy_hidden_pct": 0.0})[1] == (
        "No copy time is overlapped."
    )
