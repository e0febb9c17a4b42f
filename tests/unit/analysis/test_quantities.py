"""Numbers looked up by name in the recorded campaign's tables: the right row, the right kernel, or the reason."""

import math

import pandas as pd
import pytest

from small_campaign import WHOLE
from warplog.analysis.quantities import Number, Quantities
from warplog.analysis.verdicts import between
from warplog.core.errors import WarplogError
from warplog.records import remarks
from warplog.tables.files import read_table

TABLES = WHOLE / "tables"


@pytest.fixture(scope="module")
def recorded():
    return Quantities(*(read_table(TABLES, name) for name in ("measurements", "metrics", "floors")))


@pytest.fixture(scope="module")
def rows():
    table = pd.read_parquet(TABLES / "metrics.parquet")
    table = table[(table["family"] == "reduction") & (table["variant"] == "cub")]
    return table[(table["case"] == "64Mi") & (table["tool"] == "ncu")]


def values(rows, metric):
    return list(rows.loc[rows["metric"] == metric].sort_values("launch")["value"])


def test_a_column_of_the_measurements_comes_with_its_unit(recorded):
    table = pd.read_csv(TABLES / "measurements.csv", dtype={"case": str})
    row = table[(table["variant"] == "warptile") & (table["case"] == "4096")].iloc[0]
    quantity = recorded.find("sgemm", "warptile", "4096", "median_us")
    assert quantity == Number(row["median_us"], "us", noise=quantity.noise)
    rate, ratio = (recorded.find("sgemm", "warptile", "4096", n) for n in ("gflops", "ratio_to_baseline"))
    assert rate.noise == quantity.noise
    baseline = recorded.find("sgemm", "cublas", "4096", "median_us").noise
    assert ratio.noise == between(quantity.noise, baseline)
    assert recorded.find("sgemm", "warptile", "4096", "sustained_us").noise != quantity.noise


def test_of_several_kernels_the_longest_or_the_sum(recorded, rows):
    times, instructions = values(rows, "duration_us"), values(rows, "instructions_executed")
    assert len(set(times)) == 2
    longest = instructions[times.index(max(times))]
    quantity = recorded.find("reduction", "cub", "64Mi", "instructions_executed")
    assert quantity.value == longest
    total = recorded.find("reduction", "cub", "64Mi", "total_instructions_executed")
    assert total.value == sum(instructions)


def test_what_the_compiler_says_holds_for_all_cases(recorded):
    sizes = [
        recorded.find("sgemm", "warptile", case, "static_shared_bytes").value for case in ("128", "4096")
    ]
    assert sizes[0] == sizes[1] > 0


def test_what_is_not_there_has_a_reason_and_no_value(recorded):
    for variant, case, name, why in (
        ("warptile", "31", "median_us", "was not measured at 31"),
        ("warptile", "8192", "dram_bytes", "was not captured"),
        ("nobody", "4096", "median_us", "nobody was not measured"),
    ):
        quantity = recorded.find("sgemm", variant, case, name)
        assert math.isnan(quantity.value)
        assert why in quantity.reason


def test_a_failed_variant_and_a_missing_counter_say_why():
    measured = pd.DataFrame(
        [
            {"family": "f", "variant": "good", "case": "1", "status": "ok", "reason": ""},
            {"family": "f", "variant": "bad", "case": "1", "status": "wrong", "reason": "all zero"},
        ]
    )
    metrics = pd.DataFrame(
        [
            {"family": "f", "variant": "good", "case": "1", "metric": "ipc", "launch": 0, "tool": "ncu",
             "value": math.nan, "unit": "inst/cycle", "status": "denied", "reason": "no permission"},
        ]
    )  # fmt: skip
    table = Quantities(measured, metrics)
    assert table.find("f", "bad", "1", "ipc").reason == "bad at 1: wrong: all zero"
    assert table.find("f", "good", "1", "ipc").reason == "ipc: denied: no permission"
    assert math.isnan(table.find("f", "good", "1", "total_ipc").value)


def test_a_text_column_is_refused(recorded):
    with pytest.raises(WarplogError, match="agreement"):
        recorded.find("sgemm", "warptile", "4096", "agreement")


def test_durations_are_those_of_one_profiler(recorded, rows):
    assert recorded.find("reduction", "cub", "64Mi", "total_duration_us").value == pytest.approx(
        sum(values(rows, "duration_us"))
    )


def test_what_is_remarked_on_the_timing_is_of_no_concern_to_a_counter():
    row = {"family": "f", "variant": "v", "case": "1", "status": "ok", "median_us": 2.0}
    earlier = remarks.EarlierSource()
    measured = pd.DataFrame(
        [row | {"reason": "", "remarks": remarks.cell([remarks.FewSamples(samples=4), earlier])}]
    )
    metric = {"family": "f", "variant": "v", "case": "1", "metric": "ipc", "launch": 0, "tool": "ncu"}
    metrics = pd.DataFrame([metric | {"value": 1.5, "unit": "inst/cycle", "status": "ok", "reason": ""}])
    table = Quantities(measured, metrics)
    assert table.find("f", "v", "1", "median_us").remarks == (remarks.FewSamples(samples=4), earlier)
    assert table.find("f", "v", "1", "ipc").remarks == (earlier,)


def test_a_number_is_that_of_the_longest_kernel_and_without_a_capture_the_largest_of_all():
    """The second kernel is the longest; a third one was compiled and not launched."""
    about = {"family": "f", "variant": "v", "status": "ok", "reason": "", "unit": "u"}
    metrics = [
        about
        | {
            "case": "1",
            "tool": "ncu",
            "launch": launch,
            "kernel": f"{name}(int)",
            "metric": metric,
            "value": value,
        }
        for launch, name, us, executed in ((0, "a", 1.0, 10.0), (1, "b", 5.0, 20.0))
        for metric, value in (("duration_us", us), ("instructions_executed", executed))
    ]
    metrics += [
        about | {"case": "", "tool": "ptxas", "launch": 0, "kernel": f"ns::{name}(int)", "value": value,
                 "metric": "registers_per_thread"}
        for name, value in (("a", 64.0), ("b", 32.0), ("c", 99.0))
    ]  # fmt: skip
    measured = [{"family": "f", "variant": "v", "case": case, "status": "ok", "reason": ""} for case in "12"]
    table = Quantities(pd.DataFrame(measured), pd.DataFrame(metrics))
    assert table.find("f", "v", "1", "instructions_executed").value == 20
    assert table.find("f", "v", "1", "total_instructions_executed").value == 30
    assert table.find("f", "v", "1", "registers_per_thread").value == 32
    assert table.find("f", "v", "2", "registers_per_thread").value == 99
    assert table.find("f", "v", "", "registers_per_thread").value == 99


def test_a_counter_that_an_older_campaign_did_not_collect_is_told_from_a_case_without_a_capture():
    measured, metrics = (read_table(TABLES, name) for name in ("measurements", "metrics"))
    older = Quantities(measured, metrics[metrics["metric"] != "l2_bytes"])
    captured, other = (older.find("sgemm", "warptile", case, "l2_bytes") for case in ("4096", "8192"))
    assert (captured.code, other.code) == ("not_recorded", "not_captured")
    assert "did not record" in captured.reason
    assert math.isnan(captured.value)
