"""The result of a run as typed rows, from made-up tables, and in words."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

import figure_tables
import made_up_records
from warplog.core.errors import WarplogError
from warplog.judge.summary import shown
from warplog.judge.summary.gather import gather
from warplog.judge.summary.rows import Move, Summary, Trouble
from warplog.judge.summary.stage_results import StageResults
from warplog.records import door
from warplog.records.remarks import cell
from warplog.tables.agreement import agreement

CAMPAIGN = made_up_records.campaign(campaign="mine")
NAMES = ("naive", "warptile", "cublas")
BROKEN = Trouble("sgemm", "naive", "compile_error", "build", "expected a ;", "results/compile.log")


def sgemm(slower: float = 1.0, **failed: str):
    """Returns the ladder with warptile's time multiplied by `slower`."""
    tables = figure_tables.sgemm(failed, names=NAMES)
    rows = tables.measurements
    times = rows["median_us"].where(rows["variant"] != "warptile", rows["median_us"] * slower)
    variants = tables.variants.assign(title="a product", status="ok", reason="")
    return replace(tables, variants=variants, measurements=rows.assign(median_us=times))


def summary(tables, troubles=(), former: Summary | None = None) -> Summary:
    return gather([tables], troubles, former, CAMPAIGN, "live")


def test_a_family_is_summarised_by_its_fastest_variant_besides_the_baseline() -> None:
    (family,) = summary(sgemm()).families
    assert (family.family, family.case, family.baseline, family.ok) == ("sgemm", "4096", "cublas", 3)
    assert [variant.variant for variant in family.variants] == list(NAMES)
    best = family.fastest
    assert best is not None
    assert best.variant == "warptile"
    assert best.rate == pytest.approx(36.267, rel=1e-3)
    assert family.rate_unit == "TFLOP/s"
    assert best.ratio_to_baseline == pytest.approx(36267 / 51200, rel=1e-3)
    words = " ".join(shown.lines(summary(sgemm()))[1].split())
    assert words == "sgemm 3 of 3 ok warptile 36.3 TFLOP/s 70.8 % of cublas at 4096"


def test_a_family_whose_other_variants_have_no_time_is_summarised_by_its_baseline() -> None:
    broken = {name: "wrong" for name in NAMES if name != "cublas"}
    words = " ".join(shown.lines(summary(sgemm(**broken)))[1].split())
    assert words == "sgemm 3 of 3 ok cublas 51.2 TFLOP/s the baseline at 4096"


def test_what_moved_is_what_differs_by_more_than_the_floor_on_the_same_board() -> None:
    former = summary(sgemm())
    assert summary(sgemm(1.004), former=former).families[0].moved == ()
    (move,) = summary(sgemm(1.25), former=former).families[0].moved
    assert move.variant == "warptile"
    assert move.speedup == pytest.approx(0.8)
    assert (
        "changed since the last run: warptile -20.00 %" in shown.lines(summary(sgemm(1.25), former=former))[1]
    )
    tables = sgemm(1.25)
    loud = replace(tables, measurements=tables.measurements.assign(deviation=0.1, freedom=50.0))
    assert summary(loud, former=former).families[0].moved == ()
    elsewhere = replace(tables, measurements=tables.measurements.assign(board="GPU-other"))
    assert summary(elsewhere, former=former).families[0].moved == ()
    assert summary(tables, former=structs.replace(former, gpu="h100")).families[0].moved == ()


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = summary(sgemm(1.25), [BROKEN], summary(sgemm()))
    assert written.families[0].moved
    door.write(tmp_path / "summary.json", written)
    assert door.read(tmp_path / "summary.json", Summary) == written
    (tmp_path / "summary.json").write_text('{"schema": 2, "rows": []}')
    with pytest.raises(WarplogError, match=r"summary\.json"):
        door.read(tmp_path / "summary.json", Summary)


def test_each_failure_has_its_reason_and_its_log_and_what_is_lacking_is_one_line() -> None:
    lacking = [
        Trouble(f, f"v{i}", "unsupported", "build", "needs sm_120") for f in ("scan", "dsmem") for i in (1, 2)
    ]
    wrong = Trouble("scan", "bad", "wrong", "check", "3 elements\x1b[2J differ", "results/check.log")
    lines = shown.trouble_lines([*lacking, wrong, BROKEN])
    assert lines == [
        "  compile error  sgemm/naive  expected a ;",
        "      results/compile.log",
        "  wrong  scan/bad  3 elements [2J differ",
        "      results/check.log",
        "  unsupported: 2 of dsmem, 2 of scan (needs sm_120)",
    ]


def test_many_failures_of_one_kind_do_not_fill_the_screen() -> None:
    lines = shown.trouble_lines(structs.replace(BROKEN, variant=f"v{i}", log="") for i in range(30))
    assert len(lines) == 9
    assert "22 more in summary.md" in lines[-1]


def test_a_variant_without_a_record_and_times_that_disagree_are_not_ok() -> None:
    tables = sgemm(naive="missing")
    rows = tables.measurements
    apart = agreement([1.0], [], 3.0, None)
    chosen = (rows["variant"] == "warptile") & (rows["case"] == "4096")
    tables = replace(
        tables,
        variants=tables.variants.assign(
            status=["missing" if name == "naive" else "ok" for name in tables.variants["variant"]], reason=""
        ),
        measurements=rows.assign(
            agreement=[apart.code if is_chosen else "ok" for is_chosen in chosen],
            agreement_notes=[cell(apart.notes) if is_chosen else "" for is_chosen in chosen],
        ),
    )
    troubles = summary(tables).troubles
    assert [(trouble.variant, trouble.code, trouble.case, trouble.reason) for trouble in troubles] == [
        ("naive", "missing", "", ""),
        ("warptile", "disagree", "4096", "rest 1 us, ncu 3 us"),
    ]
    assert not any(trouble.is_failure for trouble in troubles)


@pytest.mark.parametrize(
    ("code", "stage", "counts"),
    [
        *[(code, "check", True) for code in ("wrong", "crashed", "timeout", "out_of_memory", "error")],
        ("compile_error", "build", True),
        ("finding", "sanitize", True),
        ("crashed", "ncu", False),
        *[(code, "check", False) for code in ("unsupported", "skipped", "missing", "denied", "disagree")],
    ],
)
def test_strict_counts_what_is_the_fault_of_a_variant(code: str, stage: str, counts: bool) -> None:
    assert structs.replace(BROKEN, code=code, stage=stage).is_failure is counts


def test_the_markdown_page_has_a_row_for_every_variant_and_escapes_reasons() -> None:
    page = shown.markdown(summary(sgemm(), [structs.replace(BROKEN, reason="<b>|x|")]))
    assert all(f"| {name} " in page for name in NAMES)
    assert "&lt;b>\\|x\\|" in page
    assert "index.html" in page


def test_a_long_time_is_written_without_an_exponent() -> None:
    (row,) = (
        line for line in shown.markdown(summary(sgemm(1000))).splitlines() if line.startswith("| warptile ")
    )
    assert row.split()[5].isdigit()


def test_without_a_summary_the_end_says_how_far_each_stage_is() -> None:
    lines = shown.stage_result_lines(StageResults(4, {"build": 3, "check": 2}, (BROKEN,)))
    assert lines[0] == "of 4 variants: 3 compiled, 2 checked"
    assert lines[1].startswith("  compile error  sgemm/naive")


def test_a_speedup_is_the_former_time_over_the_new_one() -> None:
    assert Move("mine", 10.0, 8.0).speedup == 1.25
