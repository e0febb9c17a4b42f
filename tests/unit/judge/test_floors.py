"""Floors of campaigns: which runs count as the same code, and what comparisons make of them."""

from dataclasses import replace

import numpy as np
import pytest
from process_drift import CASES, CONDITIONS, aa_rounds, campaign, measured

from warplog.judge.comparison import compare
from warplog.judge.floors import measure_floors, table_rows, with_times
from warplog.judge.samples import Campaign, Samples

CLAIMS = ("FASTER", "SLOWER")
KEY = next(iter(CASES))


def share(comparison, *wanted):
    """Returns the share of rows of a comparison with these verdicts."""
    return sum(row.word in wanted for row in comparison.rows) / len(comparison.rows)


def simple(*medians):
    """Returns runs of one case with these medians."""
    return [Campaign("made up", {("f", "v", "c"): measured(Samples((m,) * 20))}) for m in medians]


def test_three_processes_on_either_side_hardly_ever_differ_and_show_three_percent():
    random = np.random.default_rng(14)
    pairs = [(campaign(random, processes=3), campaign(random, 1.03, processes=3)) for _ in range(6)]
    assert np.mean([share(compare(a, b), "SLOWER") for a, b in pairs]) > 0.9
    same = [compare(pairs[n][0], pairs[n - 1][0]) for n in range(6)]
    assert np.mean([share(comparison, *CLAIMS) for comparison in same]) <= 0.01


def test_single_processes_without_rounds_have_an_assumed_spread():
    random = np.random.default_rng(3)
    comparison = compare(campaign(random), campaign(random))
    assert share(comparison, *CLAIMS) <= 0.01
    assert "assumed" in comparison.summary()
    assert comparison.rows[-1].verdict.floor == pytest.approx(0.0132 * 2**0.5, rel=0.1)


def test_rounds_of_the_reference_lower_the_gap_that_counts():
    random = np.random.default_rng(6)
    a, b, rounds = campaign(random), campaign(random), aa_rounds(random)
    floors = measure_floors(rounds)
    alone, together = (
        compare(with_times(replace(a, rounds=more)), with_times(b, floors)).rows[0].verdict.floor
        for more in ((), rounds)
    )
    assert together < 0.9 * alone


@pytest.mark.parametrize(
    "other", [{"source": "edited"}, {"conditions": CONDITIONS | {"driver": "1"}}], ids=str
)
def test_rounds_of_other_code_or_under_other_conditions_are_no_further_processes(other):
    random = np.random.default_rng(7)
    rounds = aa_rounds(random)
    changed = campaign(random)
    changed = replace(changed, cases={k: replace(m, **other) for k, m in changed.cases.items()})
    assert measure_floors((*rounds, changed)) is None
    with_rounds = with_times(replace(changed, rounds=rounds))
    assert {key: m.times["rest"].us for key, m in with_rounds.cases.items()} == {
        key: m.processes[0].median_us for key, m in changed.cases.items()
    }


def test_gaps_are_those_of_all_pairs_of_runs():
    floors = measure_floors(simple(100.0, 101.0, 102.0))
    assert floors.gaps["f", "v", "c", "rest"] == pytest.approx((0.01, 0.02, 102 / 101 - 1))
    assert floors.processes == 3
    assert measure_floors(simple(100.0)) is None


def test_more_samples_of_a_process_are_no_evidence_between_processes():
    """Two campaigns 1 % apart in every process differ beyond doubt by their samples, but their code shows such gaps."""
    random = np.random.default_rng(15)

    def campaign_of(*medians):
        samples = (Samples(tuple(m * (1 + 0.001 * random.standard_normal(1000)))) for m in medians)
        return with_times(Campaign("made up", {("f", "v", "c"): measured(*samples)}))

    row = compare(campaign_of(100.0, 101.0, 99.0), campaign_of(101.0, 102.0, 100.0)).rows[0]
    assert row.word == "AMBIGUOUS"
    assert row.verdict.p > 0.1


def test_sustained_times_have_rows_and_floors_of_their_own():
    random = np.random.default_rng(17)
    options = {"processes": 3, "sustained": 1.2}
    a, b = campaign(random, **options), campaign(random, **options)
    slower = {
        k: replace(m, sustained_us=tuple(1.03 * us for us in m.sustained_us)) for k, m in b.cases.items()
    }
    comparison = compare(a, with_times(replace(b, cases=slower)))
    assert [row.regime for row in comparison.rows] == ["rest"] * len(CASES) + ["sustained"] * len(CASES)
    rest, sustained = (
        replace(comparison, rows=tuple(row for row in comparison.rows if row.regime == r))
        for r in ("rest", "sustained")
    )
    assert share(rest, *CLAIMS) == 0
    assert share(sustained, "SLOWER") > 0.9
    assert comparison.alarms == []
    assert {row.clock for row in sustained.rows} == {""}


def test_a_sustained_time_of_one_side_only_is_refused():
    random = np.random.default_rng(18)
    rows = compare(campaign(random, processes=3), campaign(random, processes=3, sustained=1.2)).rows
    assert {(row.word, row.reason) for row in rows if row.regime == "sustained"} == {
        ("REFUSED", "not measured in A")
    }
    assert "REFUSED" not in {row.word for row in rows if row.regime == "rest"}


def test_a_floor_of_another_driver_does_not_serve():
    random = np.random.default_rng(9)
    floors, bare = measure_floors(aa_rounds(random)), campaign(random)
    other = replace(floors, conditions={**CONDITIONS, "driver": "1"})
    times = [with_times(bare, given).cases[KEY].times["rest"].noise for given in (None, other, floors)]
    assert times[0] == times[1] != times[2]


def test_the_processes_of_a_campaign_decide_before_other_rounds_do():
    random = np.random.default_rng(21)
    floors, one = measure_floors(aa_rounds(random)), campaign(random, processes=3)
    noise = [
        with_times(one, *more).cases[KEY].times["rest"].noise for more in ((), (floors,), (floors, False))
    ]
    assert noise[0] == noise[1] != noise[2]


def test_the_table_holds_the_noise_that_comparisons_use():
    measured = campaign(np.random.default_rng(19), processes=5)
    for row in table_rows(measured):
        noise = measured.cases[row["family"], row["variant"], row["case"]].times["rest"].noise
        assert (row["deviation"], row["freedom"], row["groups"]) == (
            noise.deviation,
            noise.freedom,
            noise.groups,
        )
        assert row["floor"] > 0.013
    alone = list(table_rows(campaign(np.random.default_rng(20))))
    assert {(row["processes"], row["floor"], row["deviation"]) for row in alone} == {(1, None, None)}
