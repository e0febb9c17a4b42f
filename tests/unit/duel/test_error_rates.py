"""How often a duel is wrong, and what it finds, if turns are as they were measured: simulated, with a fixed seed."""

from collections import Counter

import numpy as np
import pytest
from simulated_turns import BETWEEN, CELLS, duel, window_of

from warplog.analysis.verdicts import ALPHA, AMBIGUOUS, FASTER, SAME, SLOWER
from warplog.duel.evidence import REST, UNCONFIRMED, Rule
from warplog.records.requested.duel import Estimate, Window

DUELS = 500


@pytest.mark.parametrize("us", CELLS)
@pytest.mark.parametrize("between", [BETWEEN, 3 * BETWEEN], ids=["as measured", "three times as uneven"])
def test_the_same_code_is_called_the_same_after_three_processes(us: float, between: float) -> None:
    rng = np.random.default_rng([int(us), 1])
    found = Counter(duel(rng, us, 0.0, between) for _ in range(DUELS // 2))
    assert found[SAME, 3] >= 0.99 * DUELS / 2
    assert sum(count for (word, _), count in found.items() if word in (FASTER, SLOWER)) == 0, found


@pytest.mark.parametrize(("us", "effect"), [(3.0, 0.01), (10.0, 0.005), (100.0, 0.0025), (1000.0, 0.0025)])
def test_a_planted_change_is_found_by_99_of_100_duels(us: float, effect: float) -> None:
    rng = np.random.default_rng([int(us), 2])
    found = Counter(duel(rng, us, effect) for _ in range(100))
    assert found[SLOWER, 4] >= 99, found  # the fourth confirms what three have shown
    assert sum(count for (word, _), count in found.items() if word == FASTER) == 0


def said(log_ratio: float, number: int) -> Window:
    return window_of(Estimate(log_ratio=log_ratio, error=0.0), 1e6, number, 1)


def false_alarms(uneven: float, duels: int) -> float:
    """Returns the share of FASTER and SLOWER about the same code whose processes are so uneven, relative to the prior.

    The margin is too small for SAME: every duel that does not end with an alarm takes all its looks.
    """
    rng, rule, alarms = np.random.default_rng(4), Rule(REST, 1e-9, 3), 0
    for _ in range(duels):
        windows: list[Window] = []
        while not rule.is_over(windows):
            windows.append(said(uneven * REST.relative * rng.standard_normal(), len(windows) + 1))
        alarms += rule.judge(windows).word != AMBIGUOUS
    return alarms / duels


def test_all_looks_together_keep_the_probability_of_a_false_alarm() -> None:
    assert false_alarms(1.0, 1500) <= ALPHA
    assert false_alarms(3.0, 400) <= 0.01  # without a process that confirms, four times as many


def test_a_ratio_that_a_further_process_does_not_show_is_no_verdict() -> None:
    rule = Rule(REST, 0.005, 1)
    windows = [said(0.008, number) for number in (1, 2, 3)]
    assert not rule.is_over(windows)
    confirmed, denied = ([*windows, said(log_ratio, 4)] for log_ratio in (0.006, 0.003))
    assert rule.is_over(confirmed)
    assert rule.is_over(denied)
    assert rule.judge(confirmed).word == SLOWER
    verdict = rule.judge(denied)
    assert (verdict.word, verdict.reason) == (AMBIGUOUS, UNCONFIRMED)
    assert verdict.low <= 1 <= verdict.high


def test_a_verdict_that_is_not_confirmed_gets_another_look_if_there_is_time() -> None:
    rule = Rule(REST, 0.005, 2)
    windows = [said(log_ratio, number) for number, log_ratio in enumerate((0.008, 0.008, 0.008, 0.001), 1)]
    assert not rule.is_over(windows)
    windows += [said(0.008, number) for number in (5, 6)]
    assert not rule.is_over(windows)  # SLOWER again, to be confirmed by a seventh
    windows.append(said(0.008, 7))
    assert rule.is_over(windows)
    assert rule.judge(windows).word == SLOWER


def test_processes_that_disagree_do_not_decide() -> None:
    """An effect that two processes show and the third does not is no verdict."""
    rule = Rule(REST, 0.005, 3)
    assert rule.judge([said(one, 1) for one in (0.004, 0.004, -0.004)]).word == AMBIGUOUS
    assert rule.judge([said(one, 1) for one in (0.0019, 0.0020, 0.0019)]).word == SLOWER
