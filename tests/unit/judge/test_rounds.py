"""A/A rounds: the share of false verdicts, and from which rounds a floor comes."""

from pathlib import Path

import pytest
from process_drift import measured

from warplog.judge import aa
from warplog.judge.samples import Campaign, Samples

QUIET, WILD = (0.999, 1.0, 1.001), (0.8, 1.0, 1.2)


def judged(monkeypatch: pytest.MonkeyPatch, *rounds: Campaign) -> aa.SelfCheck:
    monkeypatch.setattr(aa, "load_rounds", lambda *_: rounds)
    return aa.judge_rounds(Path(), "h200")


def round_of(*names: str, us: float = 100.0, processes: tuple[float, ...] = QUIET) -> Campaign:
    """Returns a round of cases in three processes that take `us` and a share less and more."""
    samples = [Samples((us * one,) * 20) for one in processes]
    return Campaign("made up", {("f", "v", name): measured(*samples) for name in names})


def test_the_false_share_is_that_of_the_cases_that_were_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third round is slower by a tenth, and only the first one has a second case, which nothing is compared to."""
    found = judged(monkeypatch, round_of("1", "2"), round_of("1"), round_of("1", us=110.0))
    words = {"SLOWER": 2, "FASTER": 0, "SAME": 1, "AMBIGUOUS": 0, "REFUSED": 2}
    assert found.counts(aa.OWN, "rest") == words
    assert found.false_share(aa.OWN, "rest") == pytest.approx(2 / 3)


def test_floors_of_the_others_are_those_of_the_rounds_that_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The third round is a hundred times as noisy: it decides about the other two, and they about it."""
    found = judged(monkeypatch, round_of("1"), round_of("1"), round_of("1", processes=WILD))
    of_wild, *of_quiet = (one.rows[0].verdict.floor for one in found.compared[aa.OTHERS])
    assert of_wild > 0.3
    assert max(of_quiet) < 0.02
    assert aa.OTHERS not in judged(monkeypatch, round_of("1"), round_of("1")).compared


def test_rounds_lower_the_floor_of_their_side_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds halve the variance that the processes of one share."""
    (row,) = judged(monkeypatch, round_of("1"), round_of("1")).floor_rows()
    assert (row.processes, row.median_us, row.median_gap) == (3, 100.0, 0.0)
    assert row.floor_with_rounds / row.floor == pytest.approx((1.5 / 2) ** 0.5, rel=0.02)
