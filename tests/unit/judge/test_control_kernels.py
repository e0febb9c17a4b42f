"""How boards of one model differ, by the oracle's kernels on each of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from fake_driver import DESCRIBED
from warplog.cli.checkup import gpu as checkup
from warplog.core import locks
from warplog.core.columns import BOARDS
from warplog.core.records import FamilyRecord
from warplog.judge import boards
from warplog.tables.files import write_table

LABELS = {"gpu": "h200", "gpu_name": "NVIDIA H200", "origin": "live", "campaign": "c"}


def timed(board: str, us: float, status: str = "ok") -> FamilyRecord:
    """Returns the record of a spin of that many microseconds, in three processes, on a board."""
    cold = {"median_us": us, "sm_mhz": 1980.0, "set_mhz": 1980.0}
    times = {"cold": cold, "processes": [{"median_us": us * f} for f in (0.999, 1.0, 1.001)]}
    cases = [
        {"case": "spin", "status": status, "reason": "", **(times if status == "ok" else {})},
        {"case": "empty", "status": "ok", "reason": "", "cold": cold | {"median_us": 1.0}},
    ]
    record = {"family": "oracle", "provenance": {"gpu_uuid": board}, "cases": cases}
    return FamilyRecord(Path("unused"), {"probes": record})


def test_each_board_is_compared_with_the_median_board() -> None:
    rows = boards.rows([timed("GPU-a", 100.0), timed("GPU-b", 101.0), timed("GPU-c", 104.0)])
    ratios = {row["board"]: row["ratio_to_median"] for row in rows if row["case"] == "spin"}
    assert ratios == pytest.approx({"GPU-a": 100 / 101, "GPU-b": 1.0, "GPU-c": 104 / 101})
    assert rows[0]["process_spread"] == pytest.approx(0.002, rel=1e-2)
    assert boards.summary(rows) == "3 boards; 2 control kernels differ by at most 4.00 % (spin)"


def test_a_kernel_that_failed_on_a_board_is_a_row_and_not_compared() -> None:
    rows = boards.rows([timed("GPU-a", 100.0), timed("GPU-b", 0.0, "timeout")])
    assert [row["status"] for row in rows if row["case"] == "spin"] == ["ok", "timeout"]
    assert boards.summary(rows) == "2 boards; 1 control kernels differ by at most 0.00 % (empty)"
    assert boards.summary(boards.rows([timed("GPU-a", 100.0)])) == "one board; nothing to compare"


def test_doctor_names_the_boards_and_how_they_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "is_held", lambda uuid: uuid == "GPU-bbbb")
    found = [DESCRIBED, replace(DESCRIBED, uuid="GPU-bbbb"), replace(DESCRIBED, slug="h100", uuid="GPU-c")]
    before = checkup.boards(found, tmp_path)
    assert before.text == "2 x h200, 1 x h100; a campaign measures on GPU-bbbb"
    assert "gpu=all" in before.remedy
    rows = boards.rows([timed("GPU-aaaa", 100.0), timed("GPU-bbbb", 101.0), timed("GPU-x", 0, "timeout")])
    write_table([{**row, **LABELS} for row in rows], BOARDS, tmp_path / "boards")
    assert (
        "3 boards; 2 control kernels differ by at most 1.00 % (spin)" in checkup.boards(found, tmp_path).text
    )
