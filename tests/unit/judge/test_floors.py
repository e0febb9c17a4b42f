"""Drift of the same code between processes: its estimation, and its effect on the verdicts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from process_drift import CASES, CONDITIONS, OFFSET, aa_rounds, campaign, measured, process

from warplog.judge import verdicts
from warplog.judge.comparison import compare
from warplog.judge.floors import ASSUMED, Spread, measure_floors, median_variance
from warplog.judge.samples import Campaign
from warplog.judge.verdicts import Noise, Samples

CLAIMS = ("FASTER", "SLOWER")
FEW = dict(list(CASES.items())[:8])


def words(random, factor, floors, rounds=(), times=12, **options):
    """Returns the verdicts of `times` comparisons: times multiplied by `factor`, against a campaign with `rounds`."""
    found = []
    for _ in range(times):
        a, b = campaign(random, rounds=rounds, **options), campaign(random, factor, **options)
        found += [row.word for row in compare(a, b, floors).rows]
    return found


def share(found, *wanted):
    return sum(word in wanted for word in found) / len(found)


def simple(*medians):
    """Returns runs of one case with these medians."""
    key = ("f", "v", "c")
    return [Campaign("made up", {key: measured(Samples((m,) * 20))}) for m in medians]


def test_drift_between_processes_deceives_verdicts_that_do_not_know_it():
    """The reason for the floor: with 0.5 % only, a drift of 0.25 % passes in one comparison out of six."""
    random = np.random.default_rng(1)
    pairs = [((process(random, us),), (process(random, us),)) for us in CASES.values() for _ in range(8)]
    found = [v.word for v in verdicts.judge(pairs, [Noise(0.0)] * len(pairs))]
    assert share(found, *CLAIMS) > 0.08


def test_with_the_floor_known_the_same_code_is_hardly_ever_faster_or_slower():
    random = np.random.default_rng(2)
    found = []
    for _ in range(16):
        found += words(random, 1.0, measure_floors(aa_rounds(random)), times=2)
    assert len(found) > 700
    assert share(found, *CLAIMS) <= 0.01


def test_without_an_aa_run_the_assumed_drift_serves():
    random = np.random.default_rng(3)
    found = words(random, 1.0, None, times=6)
    assert share(found, *CLAIMS) <= 0.01
    assert ASSUMED.noise().gap() == pytest.approx(0.0132, abs=1e-4)
    assert "assumed" in compare(campaign(random), campaign(random)).summary()


def test_two_percent_are_found_where_the_reference_has_its_rounds():
    random = np.random.default_rng(4)
    slower, faster = [], []
    for _ in range(3):
        rounds = aa_rounds(random)
        floors = measure_floors(rounds)
        slower += words(random, 1.02, floors, rounds, times=1)
        faster += words(random, 0.98, floors, rounds, times=1)
    assert share(slower, "SLOWER") > 0.95
    assert share(faster, "FASTER") > 0.95
    assert "FASTER" not in slower


def test_a_fifth_of_a_percent_is_not_claimed():
    random = np.random.default_rng(5)
    found = []
    for _ in range(6):
        rounds = aa_rounds(random)
        found += words(random, 1.002, measure_floors(rounds), rounds, times=1)
    assert share(found, *CLAIMS) <= 0.02


def test_rounds_of_the_reference_lower_the_gap_that_counts():
    random = np.random.default_rng(6)
    rounds = aa_rounds(random)
    floors, key = measure_floors(rounds), next(iter(CASES))
    alone = compare(campaign(random), campaign(random), floors).rows[0].verdict
    together = compare(campaign(random, rounds=rounds), campaign(random), floors).rows[0].verdict
    assert together.least == pytest.approx(floors.gap(key, first=(1, 1, 1, 1)))
    assert together.least < 0.85 * alone.least


def test_rounds_of_other_code_are_no_further_processes():
    random = np.random.default_rng(7)
    rounds = aa_rounds(random)
    changed = campaign(random)
    changed = replace(changed, cases={k: replace(m, source="edited") for k, m in changed.cases.items()})
    floors = measure_floors((changed, *rounds))
    assert floors.processes == 3
    found = compare(replace(changed, rounds=rounds), campaign(random), floors).rows[0].verdict
    assert found.least == pytest.approx(floors.gap(next(iter(CASES))))


def test_cases_lend_each_other_strength_as_far_as_they_are_alike():
    random = np.random.default_rng(8)
    alike = measure_floors(aa_rounds(random))
    assert math.sqrt(alike.typical["rest"].variance) == pytest.approx(OFFSET, rel=0.4)
    assert all(spread.freedom > 4 for spread in alike.spreads.values())
    wild = {key: 1 + 0.05 * random.standard_normal(3) * (i % 2) for i, key in enumerate(CASES)}
    runs = [
        Campaign("made up", {k: measured(process(random, us * wild[k][n])) for k, us in CASES.items()})
        for n in range(3)
    ]
    apart = measure_floors(runs)
    quiet, loud = (np.median([apart.gap(key) for key in list(CASES)[i::2]]) for i in (0, 1))
    assert loud > 2 * quiet
    assert max(spread.freedom for spread in apart.spreads.values()) < 8


def test_a_single_case_has_nothing_to_lean_on():
    floors = measure_floors(simple(100.0, 101.0, 102.0))
    spread = floors.spreads["f", "v", "c", "rest"]
    assert spread.freedom == 2
    assert spread.variance == pytest.approx(np.var(np.log([100, 101, 102]), ddof=1))
    assert floors.gaps["f", "v", "c", "rest"] == pytest.approx((0.01, 0.02, 102 / 101 - 1))
    assert measure_floors(simple(100.0)) is None


def test_equal_medians_leave_the_least_gap():
    floors = measure_floors(simple(100.0, 100.0, 100.0))
    assert floors.gap(("f", "v", "c")) == pytest.approx(verdicts.LEAST_EFFECT)


def test_the_gap_is_that_of_students_t():
    """By hand: t(0.999, 4 degrees) = 7.1732; variance of the median of 3: 0.4487, of 4: 0.2982."""
    assert Spread(1e-6, 4).noise().gap() == pytest.approx(math.expm1(7.1732 * math.sqrt(2) * 1e-3), rel=1e-4)
    spread = Spread(1e-6, 4)
    pooled = math.expm1(7.1732 * math.sqrt(0.2982 + 1) * 1e-3)
    assert spread.noise((1, 1, 1, 1)).gap() == pytest.approx(pooled, rel=1e-4)
    of_three = math.expm1(7.1732 * math.sqrt(2 * 0.4487) * 1e-3)
    assert spread.noise((3,), (3,)).gap() == pytest.approx(of_three, rel=1e-4)
    assert spread.noise().p(1 + pooled) < spread.noise().p(1 + of_three) < 0.05
    assert spread.noise().p(1 + spread.noise().gap()) == pytest.approx(0.002)


def test_the_variance_of_a_median_is_that_of_drawn_medians():
    random = np.random.default_rng(12)
    for count, deviation in ((1, 0.02), (2, 0.02), (3, 0.02), (4, 0.02), (5, 0.02), (12, 0.02), (25, 0.05)):
        drawn = np.median(random.standard_normal((100_000, count)), axis=1)
        assert median_variance(count) == pytest.approx(drawn.var(), rel=deviation)


def test_the_processes_of_a_campaign_give_its_floor_without_rounds():
    random = np.random.default_rng(13)
    floors = measure_floors([campaign(random, processes=3)])
    assert floors.processes == 3
    assert math.sqrt(floors.typical["rest"].variance) == pytest.approx(OFFSET, rel=0.4)
    assert floors.typical["rest"].drift == 0


def test_three_processes_on_either_side_hardly_ever_differ_and_show_one_percent():
    random = np.random.default_rng(14)
    same, slower = [], []
    for _ in range(6):
        floors = measure_floors([campaign(random, processes=3)])
        same += words(random, 1.0, floors, times=2, processes=3)
        slower += words(random, 1.015, floors, times=1, processes=3)
    assert share(same, *CLAIMS) <= 0.01
    assert share(slower, "SLOWER") > 0.9


def test_more_samples_of_a_process_are_no_evidence_between_processes():
    """Two processes 1 % apart differ beyond doubt, but their code shows such gaps."""
    random = np.random.default_rng(15)

    def times(median_us):
        return Samples(tuple(median_us * (1 + 0.001 * random.standard_normal(1000))))

    key = ("f", "v", "c")
    a, b = (
        Campaign("made up", {key: measured(*map(times, medians))})
        for medians in ((100.0, 101.0, 99.0), (101.0, 102.0, 100.0))
    )
    verdict = compare(a, b, measure_floors([a])).rows[0].verdict
    assert verdict.p_samples < 1e-9
    assert verdict.p > 0.1
    assert verdict.word not in CLAIMS
    assert verdict.before_us == pytest.approx(100, rel=1e-3)


def test_what_the_processes_of_a_campaign_have_in_common_is_not_averaged():
    """Every case of every campaign has an offset of its own, and its processes hardly differ."""
    random = np.random.default_rng(16)

    def drifting():
        cases = {key: us * math.exp(random.normal(0, 0.005)) for key, us in FEW.items()}
        return campaign(random, cases=cases, processes=3)

    floors = measure_floors([drifting() for _ in range(4)])
    assert 0.003 < math.sqrt(floors.typical["rest"].drift) < 0.008
    alone = measure_floors([drifting()])
    key = next(iter(CASES))
    assert floors.gap(key, first=(3,), second=(3,)) > 2 * alone.gap(key, first=(3,), second=(3,))
    found = [row.word for _ in range(10) for row in compare(drifting(), drifting(), floors).rows]
    assert share(found, *CLAIMS) <= 0.015


def test_a_drift_between_campaigns_does_not_grow_with_the_spread_between_processes():
    """Half of the cases hardly differ between 3 processes, the others by 3 % between 15; all drift by 0.3 %."""
    random = np.random.default_rng(18)
    quiet, noisy = ([(f"f{i % 5}", f"{name}{i}", "c") for i in range(20)] for name in ("quiet", "noisy"))

    def run():
        cases = {}
        for key in (*quiet, *noisy):
            processes, deviation = (3, 0.001) if key in quiet else (15, 0.03)
            us = 100 * math.exp(random.normal(0, 0.003))
            times = us * np.exp(random.normal(0, deviation, processes))
            cases[key] = measured(*(Samples((float(t),) * 20) for t in times))
        return Campaign("made up", cases)

    floors = measure_floors([run() for _ in range(3)])
    of_noisy = np.median([floors.gap(key, first=(15,), second=(15,)) for key in noisy])
    of_quiet = np.median([floors.gap(key, first=(3,), second=(3,)) for key in quiet])
    # By hand, at 3.3 to 4.5 deviations: sqrt(2 * (0.105 * 0.03^2 + 0.003^2)) and sqrt(2) * 0.003.
    assert 0.040 < of_noisy < 0.066
    assert 0.011 < of_quiet < 0.022
    found = [row.word for _ in range(20) for row in compare(run(), run(), floors).rows]
    assert share(found, *CLAIMS) <= 0.01


def test_sustained_times_have_rows_and_floors_of_their_own():
    random = np.random.default_rng(17)
    options = {"processes": 3, "sustained": 1.2}
    floors = measure_floors([campaign(random, **options)])
    assert set(floors.typical) == {"rest", "sustained"}
    a, b = campaign(random, **options), campaign(random, **options)
    slower = {
        key: replace(m, sustained_us=tuple(1.02 * us for us in m.sustained_us)) for key, m in b.cases.items()
    }
    found = compare(a, replace(b, cases=slower), floors)
    assert [row.regime for row in found.rows] == ["rest"] * len(CASES) + ["sustained"] * len(CASES)
    assert share([row.word for row in found.rows if row.regime == "rest"], *CLAIMS) == 0
    sustained = [row for row in found.rows if row.regime == "sustained"]
    assert share([row.word for row in sustained], "SLOWER") > 0.9
    assert found.confirmed == 0
    assert "part of the result" in next(row.reason for row in sustained if row.word == "SLOWER")
    before = {key: float(np.median(m.sustained_us)) for key, m in a.cases.items()}
    assert [row.verdict.before_us for row in sustained] == pytest.approx(list(before.values()))


def test_a_sustained_time_of_one_side_only_is_refused():
    random = np.random.default_rng(18)
    a, b = campaign(random, processes=3), campaign(random, processes=3, sustained=1.2)
    rows = compare(a, b).rows
    assert {(row.word, row.reason) for row in rows if row.regime == "sustained"} == {
        ("REFUSED", "not measured in A")
    }
    assert "REFUSED" not in {row.word for row in rows if row.regime == "rest"}


def test_a_floor_of_another_driver_does_not_serve():
    random = np.random.default_rng(9)
    floors = measure_floors(aa_rounds(random))
    a, b = campaign(random), campaign(random)
    other = replace(floors, conditions={**CONDITIONS, "driver": "1"})
    assert compare(a, b, other).rows[0].verdict.least == pytest.approx(ASSUMED.noise().gap())


def test_a_drift_that_all_cases_share_was_seen_once_a_round():
    random = np.random.default_rng(10)
    shared = [campaign(random, math.exp(random.normal(0, 0.01))) for _ in range(3)]
    freedom = [spread.freedom for spread in measure_floors(shared).spreads.values()]
    assert max(freedom) < 3
    apart = [spread.freedom for spread in measure_floors(aa_rounds(random)).spreads.values()]
    assert min(apart) > 4


def test_a_shared_drift_is_not_called_a_difference_either():
    random = np.random.default_rng(11)

    def drifting(rounds=()):
        return campaign(random, math.exp(random.normal(0, 0.0025)), rounds)

    found = []
    for _ in range(30):
        floors = measure_floors(tuple(drifting() for _ in range(3)))
        found += [row.word for row in compare(drifting(), drifting(), floors).rows]
    assert share(found, *CLAIMS) <= 0.01
