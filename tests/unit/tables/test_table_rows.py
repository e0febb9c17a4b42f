"""The rows of the tables: of several processes in two regimes, and of host-timed families."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import made_up_records
from host_family import make_family
from warplog.catalog.contract import Measuring
from warplog.catalog.family import load_family
from warplog.core.columns import TABLES
from warplog.machine import device
from warplog.records import remarks
from warplog.records.extract import HotLoop, LoopInstruction
from warplog.records.measured import Absent, Session
from warplog.records.profile import CapturedCase
from warplog.records.time import TimeCase, Trace
from warplog.tables import costs
from warplog.tables import rows as table_rows
from warplog.tables.files import as_frame
from warplog.tables.verified_records import FamilyRecords, Source, VariantRecords

MISSING = Absent(status="missing", reason="")
Rows = dict[str, list[dict[str, Any]]]
TRACE = Trace(
    time_s=(0.0, 0.1),
    sm_mhz=(1980.0, 1500.0),
    power_w=(600.0, 600.0),
    temperature_c=(50.0, 51.0),
    energy_j=(None, None),
    throttle_reasons=("", "sw_power_cap"),
)


def loop(case: str, offset: int, text: str, samples: int, kernel_samples: int) -> HotLoop:
    load = LoopInstruction(offset, text, 64, samples, "wait", samples // 2, "k.cu", 7)
    return HotLoop(
        case=case,
        kernel="k",
        launch=1,
        iterates=True,
        iterations=64,
        kernel_samples=kernel_samples,
        instructions=(load, LoopInstruction(offset + 16, "@P0 BRA 0x40", 64, 0, "", 0, "", 0)),
    )


LOOPS = (
    loop("64", 0x40, "@!P1 LDS.128 R4, [R2]", 30, 40),
    loop("64", 0x90, "FADD R1, R1, R2", 8, 40),
    loop("1000", 0x40, "FADD R1, R1, R2", 0, 0),
)


def measured(launch_host_us: float = 2.5) -> tuple[TimeCase, TimeCase]:
    """A case of three processes with a sustained time, and one of three processes without a hot time."""
    cold = made_up_records.cold([1400.0] * 12, discarded=12)
    runs = [
        made_up_records.process(
            i + 1, us, 4, hot_us=1333.0, sustained=made_up_records.run(mean, launches=200)
        )
        for i, (us, mean) in enumerate(((1400.0, 1500.0), (1386.0, 1530.0), (1425.0, 1490.0)))
    ]
    traced = made_up_records.sustained(1500.0, power_w=700.0, samples_us=(1500.0,) * 20, trace=TRACE)
    hot = made_up_records.hot([1333.0] * 125)
    several = ((1, 1400.0), (2, 1400.0), (4, 1500.0), (4, 1540.0))
    more = [made_up_records.process(i, us, 3) for i, us in several]
    return (
        made_up_records.time_case(
            "64", cold, runs, hot=hot, sustained=traced, seconds=2.5, launch_host_us=launch_host_us
        ),
        made_up_records.time_case("1000", cold, more, seconds=0.25),
    )


def source_in(folder: Path) -> Source:
    return Source(folder, "live", made_up_records.campaign())


@pytest.fixture
def rows_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rows]:
    """Builds the tables of the host family, with captures of both profilers."""
    family = make_family(tmp_path)
    timed = (("64", "a", 900.0), ("64", "b", 480.0), ("1000", "a", 900.0), ("1000", "b", None))
    ncu = [made_up_records.metric("duration_us", case, kernel, 0, value) for case, kernel, value in timed]
    nsys = made_up_records.metric("nsys_duration_us", "64", "", 0, 700.0, "nsys")

    def make(
        cases: Sequence[TimeCase],
        measuring: Measuring | None = None,
        traced_us: float | None = None,
        flops: str | int = 4000000000,
    ) -> Rows:
        traced = CapturedCase(case="64", status="ok", reason="", launches=10, traced_us=traced_us)
        records = VariantRecords(
            build=made_up_records.build(),
            check=made_up_records.check(0.25, 0.75, 0.5),
            time=made_up_records.time(*cases, session=Session(start_seconds=0.5)),
            extract=made_up_records.extract([nsys, *ncu], loops=LOOPS),
            captures={"ncu": MISSING, "nsys": made_up_records.profile(traced)},
        )
        monkeypatch.setattr(FamilyRecords, "records_of", lambda *_: records)
        changed = structs.replace(
            family, measuring=measuring or Measuring(), work=structs.replace(family.work, flops=flops)
        )
        peaks = device.peaks(made_up_records.gpu(), {})
        chosen = {"scale": changed.variants}
        return table_rows.make_rows(
            source_in(tmp_path), {"scale": changed}, {"scale": ("64", "1000")}, chosen, peaks
        )

    return make


def test_a_row_tells_the_spread_between_processes_and_both_clocks(rows_of: Callable[..., Rows]) -> None:
    first, second = rows_of(measured())["measurements"]
    assert (first["median_us"], first["processes"]) == (1400.0, 3)
    assert (first["process_min_us"], first["process_max_us"]) == (1386.0, 1425.0)
    assert first["process_spread"] == pytest.approx(0.0281, rel=1e-2)
    assert (first["sm_mhz"], first["set_mhz"], first["discarded"]) == (1630.0, 1980.0, 12)
    assert second["processes"] == 3, "one of them has two placements of the arrays"
    assert second["process_max_us"] == 1540.0


def test_work_that_each_sm_does_is_counted_for_all(rows_of: Callable[..., Rows]) -> None:
    one, all_sms = (rows_of(measured(), flops=flops) for flops in (4000000000, "4000000000*sms"))
    sms = made_up_records.gpu().sms
    assert sms > 1
    assert all_sms["variants"][0]["flops"] == sms * 4000000000
    for column in ("gflops", "sustained_gflops"):
        assert all_sms["measurements"][0][column] == pytest.approx(sms * one["measurements"][0][column])


def test_a_row_has_the_sustained_time_beside_that_at_rest(rows_of: Callable[..., Rows]) -> None:
    first, second = rows_of(measured())["measurements"]
    assert (first["sustained_us"], first["sustained_power_w"], first["limited_by"]) == (
        1500.0,
        700.0,
        "power",
    )
    assert first["energy_j"] == pytest.approx(1.05)
    assert "sustained_us" not in second


def test_a_row_names_the_readings_that_the_driver_does_not_report(rows_of: Callable[..., Rows]) -> None:
    whole, other = measured()
    assert whole.board is not None
    silent = structs.replace(whole, board=structs.replace(whole.board, power_w=None, temperature_c=None))
    first, second = rows_of((silent, other))["measurements"]
    assert remarks.read(first["remarks"]) == (remarks.NotReported(readings=("power_w", "temperature_c")),)
    assert first["power_w"] is None
    assert (first["status"], first["median_us"]) == ("ok", 1400.0)
    assert remarks.read(second["remarks"]) == ()


def test_ratios_span_the_processes_and_exist_in_both_regimes() -> None:
    def row(name: str, us: float, low: float, high: float, sustained: float | None) -> dict[str, Any]:
        spread = {"process_min_us": low, "process_max_us": high, "q1_us": 1.0, "q3_us": 1.0}
        common = {"variant": name, "case": "64", "processes": 3, "median_us": us, **spread}
        return common | ({"sustained_us": sustained} if sustained else {})

    base, other = row("base", 100.0, 99.0, 101.0, 150.0), row("other", 50.0, 40.0, 62.5, 100.0)
    only_rest = row("only_rest", 200.0, 200.0, 200.0, None)
    table_rows.add_ratios([base, other, only_rest], "base")
    assert (other["ratio_to_baseline"], other["ratio_q1"], other["ratio_q3"]) == (2.0, 1.6, 2.5)
    assert other["sustained_ratio_to_baseline"] == 1.5
    assert only_rest["ratio_to_baseline"] == 0.5
    assert "sustained_ratio_to_baseline" not in only_rest


def test_no_ratio_crosses_boards() -> None:
    spread = {"process_min_us": 99.0, "process_max_us": 101.0, "q1_us": 99.0, "q3_us": 101.0}
    base = {"variant": "base", "case": "64", "processes": 3, "median_us": 100.0, "reason": "", **spread}
    base |= {"sustained_us": 120.0, "board": "GPU-a"}
    same, other = base | {"variant": "same"}, base | {"variant": "other", "board": "GPU-b"}
    table_rows.add_ratios([base, same, other], "base")
    assert same["ratio_to_baseline"] == 1.0
    assert not {"ratio_to_baseline", "sustained_ratio_to_baseline"} & set(other)
    assert remarks.read(other["remarks"]) == (remarks.OtherBoard(),)


def test_the_ratio_of_a_single_process_spans_its_quartiles() -> None:
    base = {
        "variant": "base",
        "case": "64",
        "processes": 1,
        "median_us": 100.0,
        "q1_us": 99.0,
        "q3_us": 101.0,
    }
    other = base | {"variant": "other", "median_us": 50.0, "q1_us": 40.0, "q3_us": 62.5}
    table_rows.add_ratios([base, other], "base")
    assert (other["ratio_q1"], other["ratio_q3"]) == (1.6, 2.5)


def test_a_case_without_a_hot_time_is_not_compared_with_nsys(rows_of: Callable[..., Rows]) -> None:
    _, second = rows_of(measured())["measurements"]
    assert (second["median_us"], second["hot_us"], second["agreement"]) == (1400.0, None, "")


def test_the_duration_of_a_launch_is_the_sum_over_its_kernels(rows_of: Callable[..., Rows]) -> None:
    """The rows have two kernels for ncu, of 900 and 480 us, and one that it could not time in the other case."""
    first, second = rows_of(measured())["measurements"]
    assert (first["ncu_us"], second["ncu_us"]) == (1380.0, None)


def test_the_error_of_a_variant_is_the_largest_of_its_check(rows_of: Callable[..., Rows]) -> None:
    rows = rows_of(measured())["measurements"]
    assert [row["max_error_over_tolerance"] for row in rows] == [0.75, 0.75]


def test_the_error_of_a_case_is_that_of_its_results_after_timing(rows_of: Callable[..., Rows]) -> None:
    first, earlier = measured()
    rows = rows_of((structs.replace(first, max_error_over_scale=0.125), earlier))["measurements"]
    assert [row["max_error_over_scale"] for row in rows] == [0.125, None]


def test_where_the_time_goes_is_a_table(rows_of: Callable[..., Rows]) -> None:
    rows = rows_of(measured())["stages"]
    seconds = [(r["stage"], r.get("cases"), r["seconds"], r.get("start_seconds")) for r in rows]
    stages_of_gpu = [("check", 0, 0, None), ("time", 2, 2.75, 0.5), ("nsys", 0, 0, None)]
    assert seconds == [("build", None, 3.0, None), *stages_of_gpu]
    assert costs.summary(rows) == "3 s on the GPU (check 0, time 3, nsys 0); 3 s of compiler"


def test_instructions_of_hot_loops_are_a_table(rows_of: Callable[..., Rows]) -> None:
    instructions = rows_of(measured())["instructions"]
    assert [
        (row["case"], row["loop"], row["place"], row["offset"], row["sample_share"]) for row in instructions
    ] == [
        ("64", 0, 0, 0x40, 0.75),
        ("64", 0, 1, 0x50, 0.0),
        ("64", 1, 0, 0x90, 0.2),
        ("64", 1, 1, 0xA0, 0.0),
        ("1000", 0, 0, 0x40, None),
        ("1000", 0, 1, 0x50, None),
    ]
    first = instructions[0]
    assert (first["opcode"], first["text"]) == ("LDS.128", "@!P1 LDS.128 R4, [R2]")
    assert (first["kernel"], first["launch"], first["iterations"], first["executed"]) == ("k", 1, 64, 64)
    assert (first["stall"], first["stall_samples"], first["file"], first["line"]) == ("wait", 15, "k.cu", 7)
    assert len(as_frame(instructions, TABLES["instructions"], "instructions")) == len(instructions)


def test_a_trace_is_a_table(rows_of: Callable[..., Rows]) -> None:
    rows = rows_of(measured(), Measuring(hot_seconds=2))
    trace = rows["power_trace"]
    assert [(r["family"], r["variant"], r["case"], r["gpu"], r["time_s"], r["sm_mhz"]) for r in trace] == [
        ("scale", "right", "64", "h200", 0.0, 1980),
        ("scale", "right", "64", "h200", 0.1, 1500),
    ]
    frame = as_frame(trace, TABLES["power_trace"], "power_trace")
    assert frame["gflops"].iloc[0] == pytest.approx(4 / 1500e-6)
    assert len(as_frame(rows["measurements"], TABLES["measurements"], "measurements")) == 2


NOT_NCU = "(ncu not compared: 2 kernels per launch, each after a flush)"


@pytest.mark.parametrize(
    ("timing", "traced_us", "expected"),
    [
        ("stream", None, ("disagree", f"hot 1333 us, nsys 700 us {NOT_NCU}")),
        (
            "stream",
            700.0,
            (
                "ok",
                f"{NOT_NCU[:-1]}; tracing changes the time: hot 1333 us, nsys 700 us, events under nsys 700 us)",
            ),
        ),
        ("host", None, ("", "")),
    ],
)
def test_a_row_says_whether_the_profilers_agree_unless_its_times_include_the_host(
    rows_of: Callable[..., Rows], timing: str, traced_us: float | None, expected: tuple[str, str]
) -> None:
    first, _ = rows_of(measured(), Measuring(timing=timing), traced_us)["measurements"]
    notes = remarks.read_notes(first["agreement_notes"])
    assert (first["agreement"], remarks.agreement_words(notes)) == expected


def test_a_row_has_the_host_time_of_a_launch(rows_of: Callable[..., Rows]) -> None:
    rows = rows_of(measured(launch_host_us=31.5))["measurements"]
    assert [row["launch_host_us"] for row in rows] == [31.5, 2.5]


def test_the_language_of_a_variant_is_in_its_row(rows_of: Callable[..., Rows]) -> None:
    assert [row["language"] for row in rows_of(measured())["variants"]] == ["cuda"]


def test_variants_of_one_source_can_expect_different_things(tmp_path: Path) -> None:
    place = make_family(tmp_path).variants[0].file.parent
    (place / "right.cu").write_text(
        "// right: as it is.\n//\n// Idea         a\n// Expected     half the time.\n// Cost         b\n"
    )
    entry = "  - {name: twice, file: right.cu, idea: again, expected: the same time}\n"
    with (place / "family.yaml").open("a") as file:
        file.write(entry)
    family = load_family(place / "family.yaml")
    nothing = VariantRecords(MISSING, MISSING, MISSING, MISSING, {"ncu": MISSING, "nsys": MISSING})
    rows = [table_rows._variant(family, variant, family.variants, nothing, 1) for variant in family.variants]
    assert [row["expected"] for row in rows] == ["half the time.", "the same time"]


def test_resources_of_a_python_variant_are_those_that_cuobjdump_reads() -> None:
    counts = {
        "registers_per_thread": 24,
        "static_shared_bytes": 0,
        "dynamic_shared_bytes": 16,
        "stack_bytes": 0,
    }
    kernel = made_up_records.kernel(opcodes={"EXIT": 9}, sass_instructions=9, **counts)
    made = list(table_rows._facts(kernel, {"cuobjdump": "13.2.86", "triton": "3.6.0"}))
    assert {(row["tool"], row["tool_version"]) for row in made} == {("cuobjdump", "13.2.86")}
    values = {row["metric"]: row["value"] for row in made}
    assert values | counts == values
    compiled = list(table_rows._facts(kernel, {"cuobjdump": "13.2.86", "nvcc": "13.0.88"}))
    assert {row["tool"] for row in compiled if row["metric"] in counts} == {"ptxas"}
