"""Comparisons of recorded campaigns: planted changes, what is refused, counters, and the exit status."""

import json
import math
import shutil
from itertools import product
from pathlib import Path

import pytest

from one_variant import write_record
from small_campaign import FOLDER as RECORDED
from warplog.cli import main
from warplog.judge import comparison
from warplog.records.extract import Extract
from warplog.records.family_file import FamilyRecord
from warplog.records.stages import folder_of
from warplog.records.time import Time


def test_counters_are_judged_apart():
    before = {"instructions_executed": 1e9, "dram_bytes": 4e8, "registers_per_thread": 64.0}
    assert comparison.counted(before, before | {"dram_bytes": 4.1e8}) == ("SAME", ())
    word, changes = comparison.counted(before, before | {"registers_per_thread": 65.0, "dram_bytes": 3e8})
    assert word == "MIXED"
    assert [c.counter for c in changes] == ["dram_bytes", "registers_per_thread"]
    assert comparison.counted({"shared_wavefronts": 0.0}, {"shared_wavefronts": 5.0})[1][0].ratio == math.inf
    assert comparison.counted({}, before) == ("", ())


@pytest.fixture
def campaigns(tmp_path):
    """Returns a folder with campaigns A and B (same records of two variants), and a function that edits B."""
    for side, kind in product("AB", (Time, Extract)):
        place = Path(folder_of(kind), "h200", "sgemm.json")
        recorded = FamilyRecord.read(RECORDED / place, kind).variants
        target = tmp_path / side / place
        write_record(target, *(recorded[variant] for variant in ("warptile", "vectorized")))

    def edit(change, stage="time", side="B"):
        path = tmp_path / side / stage / "h200" / "sgemm.json"
        together = json.loads(path.read_text())
        change(together["variants"]["warptile"])
        path.write_text(json.dumps(together))

    return tmp_path, edit


def scaled(factor, clock=1.0, source="e" * 64):
    """Returns an edit: other sources, whose times and clocks are these factors of the recorded ones."""

    def change(record):
        record["source_sha256"] = source
        for case in record["cases"]:
            if cold := case["cold"]:  # not of a case beyond a limit of the variant
                cold["samples_us"] = [t * factor for t in cold["samples_us"]]
            for process in case["processes"]:
                process["set_mhz"] *= clock

    return change


def fail(case, status, reason):
    name = case["case"]
    case.clear()
    case.update(case=name, status=status, reason=reason)


def compared(folder, capsys, *more):
    status = main.main(["compare", str(folder / "A"), str(folder / "B"), "--json", *more])
    done = json.loads(capsys.readouterr().out)
    assert done["status"] == status
    return status, {(row["variant"], row["case"]): row for row in done["rows"]}


def test_a_campaign_against_itself_shows_nothing(campaigns, capsys):
    status, rows = compared(campaigns[0], capsys)
    assert status == 0
    assert {row["word"] for row in rows.values()} <= {"SAME", "AMBIGUOUS"}
    assert rows["warptile", "4096"]["counters"] == "SAME"


@pytest.mark.parametrize(("factor", "word", "status"), [(1.05, "SLOWER", 1), (0.95, "FASTER", 0)])
def test_a_planted_change_is_found_and_sets_the_exit_status(campaigns, capsys, factor, word, status):
    folder, edit = campaigns
    edit(scaled(factor))
    actual, rows = compared(folder, capsys)
    assert actual == status
    assert rows["warptile", "4096"]["word"] == word
    assert rows["warptile", "4096"]["verdict"]["ratio"] == pytest.approx(factor)
    assert rows["vectorized", "4096"]["word"] == "SAME"


def test_slower_at_a_lower_clock_only_passes(campaigns, capsys):
    folder, edit = campaigns
    edit(scaled(1.05, 1 / 1.05))
    assert compared(folder, capsys)[0] == 0


def source_of(folder):
    """Returns the fingerprint of warptile's sources as recorded."""
    path = folder / "A" / "time" / "h200" / "sgemm.json"
    return FamilyRecord.read(path, Time).variants["warptile"].source_sha256


def test_the_same_build_is_no_alarm_however_slow(campaigns, capsys):
    folder, edit = campaigns
    edit(scaled(1.05, source=source_of(folder)))
    status, rows = compared(folder, capsys)
    row = rows["warptile", "4096"]
    assert (status, row["word"], row["same_build"]) == (0, "SLOWER", True)


def test_another_run_of_the_same_code_raises_the_floor(campaigns, capsys):
    folder, edit = campaigns
    edit(scaled(1.05, source=source_of(folder)))
    shutil.copytree(folder / "B", folder / "again")
    edit(scaled(1.04 / 1.05))
    assert compared(folder, capsys)[0] == 1
    status, rows = compared(folder, capsys, "--again", str(folder / "again"))
    assert status == 0
    assert rows["warptile", "4096"]["verdict"]["floor"] > 0.05


@pytest.mark.parametrize(
    ("name", "value"), [("gpu_name", "NVIDIA B200"), ("driver", "590.1"), ("clocks", "1500")]
)
def test_other_conditions_are_refused_with_both_values(campaigns, capsys, name, value):
    folder, edit = campaigns
    edit(lambda record: record["provenance"].update({name: value}))
    status, rows = compared(folder, capsys)
    assert status == 0
    assert {row["word"] for (variant, _), row in rows.items() if variant == "warptile"} == {"REFUSED"}
    assert value in rows["warptile", "4096"]["reason"]
    assert rows["vectorized", "4096"]["word"] == "SAME"


def test_a_failed_case_and_one_of_one_side_only_are_refused(campaigns, capsys):
    folder, edit = campaigns

    def change(record):
        first, second = record["cases"][:2]
        fail(first, "crashed", "illegal address")
        second["case"] = "other"
        record.update(status="crashed", reason="illegal address")

    edit(change)
    _, rows = compared(folder, capsys)
    assert rows["warptile", "128"]["reason"] == "B: crashed: illegal address"
    assert rows["warptile", "256"]["reason"] == "not measured in B"
    assert rows["warptile", "other"]["reason"] == "not measured in A"


def test_a_case_that_neither_side_supports_is_left_out(campaigns, capsys):
    folder, edit = campaigns

    def change(record):
        fail(record["cases"][0], "unsupported", "needs M to be at most 64")

    edit(change)
    _, rows = compared(folder, capsys)
    assert rows["warptile", "128"]["reason"] == "B: unsupported: needs M to be at most 64"
    edit(change, side="A")
    _, rows = compared(folder, capsys)
    assert ("warptile", "128") not in rows
    assert {"128", "256"} <= {case for _, case in rows}


def failed_check(status):
    def change(record):
        record.update(check=status)
        if status == "missing":
            del record["check"]

    return change


@pytest.mark.parametrize("status", ["wrong", "timeout", "missing"])
def test_a_record_with_times_and_without_a_passed_check_is_an_error(campaigns, capsys, status):
    folder, edit = campaigns
    edit(failed_check(status))
    assert main.main(["compare", str(folder / "A"), str(folder / "B")]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "check" in output.err or "cases.0.status" in output.err


def test_nothing_comparable_is_a_failure(campaigns, capsys):
    folder, edit = campaigns
    edit(lambda record: record["provenance"].update(driver="590.1"))
    for side in "AB":
        path = folder / side / "time" / "h200" / "sgemm.json"
        write_record(path, FamilyRecord.read(path, Time).variants["warptile"])
    assert compared(folder, capsys)[0] == 1


def test_more_instructions_are_reported_beside_the_time(campaigns, capsys):
    folder, edit = campaigns

    def change(record):
        for row in record["rows"]:
            if row["metric"] == "instructions_executed" and row["case"] == "4096":
                row["value"] *= 1.5

    edit(change, "extract")
    status, rows = compared(folder, capsys)
    row = rows["warptile", "4096"]
    assert (status, row["word"], row["counters"]) == (0, "SAME", "MORE")
    assert row["changes"][0]["ratio"] == pytest.approx(1.5)


def test_counters_of_several_kernels_are_sums_or_maxima_and_unknown_if_one_kernel_lacks_them(
    campaigns, capsys
):
    """In B, a second kernel executes as many instructions with as many registers; its traffic is not known."""
    folder, edit = campaigns

    def change(record):
        rows = {
            row["metric"]: row for row in record["rows"] if row["case"] == "4096" and row["tool"] == "ncu"
        }
        again = [rows[metric] | {"launch": 1} for metric in ("instructions_executed", "registers_per_thread")]
        lost = rows["dram_bytes"] | {"launch": 1, "value": None, "status": "missing", "reason": "lost"}
        rows["dram_bytes"]["value"] *= 1.5
        record["rows"] += [*again, lost]

    edit(change, "extract")
    (changed,) = compared(folder, capsys)[1]["warptile", "4096"]["changes"]
    assert (changed["counter"], changed["ratio"]) == ("instructions_executed", 2.0)


def test_the_table_for_people_and_a_name_that_is_no_campaign(campaigns, capsys, monkeypatch):
    folder, edit = campaigns
    monkeypatch.chdir(folder / "A")
    edit(scaled(1.05))
    assert main.main(["compare", str(folder / "A"), str(folder / "B")]) == 1
    printed = capsys.readouterr().out
    assert "certain to be SLOWER" in printed
    assert "+5.00 %" in printed
    assert main.main(["compare", str(folder / "A"), "../no such"]) == 1
    assert "no such folder or recorded campaign" in capsys.readouterr().err


def test_samples_that_are_no_times_are_an_error_of_one_line(campaigns, capsys):
    folder, edit = campaigns
    edit(lambda record: record["cases"][0]["cold"].update(samples_us=[1.0, 0.0]))
    assert main.main(["compare", str(folder / "A"), str(folder / "B")]) == 1
    assert "case 128" in capsys.readouterr().err
