"""Verdicts on two measurements: which differences are claimed, which are not, and which comparisons are refused."""

import json
import math
import shutil
from itertools import combinations, product

import numpy as np
import pytest
from warplog.judge.verdicts import Noise, Samples, judge

from one_variant import write_record
from small_campaign import FOLDER as RECORDED
from warplog.cli import main
from warplog.core.records import FamilyRecord
from warplog.judge import comparison, verdicts

CLOCK = 1980.0


def samples(random, median, count=20, spread=0.004, mhz=CLOCK):
    times = median * (1 + spread * random.standard_normal(count))
    return Samples(tuple(times), tuple(mhz + random.normal(0, 0.1, count)) if mhz else None)


def one(a, b, least=0.005):
    return together([(a, b)], least)[0]


def together(pairs, least=0.005):
    """Judges pairs of single processes that no drift separates."""
    return judge([((a,), (b,)) for a, b in pairs], [Noise(0.0)] * len(pairs), least)


@pytest.mark.parametrize("spread", [0.002, 0.02])
def test_the_same_code_is_hardly_ever_called_faster_or_slower(spread):
    """p < 0.002 alone, without a least gap and without confirmation in cycles, must keep its error rate."""
    random = np.random.default_rng(1)
    pairs = [(samples(random, 100.0, 20, spread), samples(random, 100.0, 20, spread)) for _ in range(400)]
    found = together(pairs, 0.0)
    p_values = np.array([verdict.time.p for verdict in found])
    assert (p_values < verdicts.ALPHA).sum() <= 4  # 0.8 are expected
    assert 0.02 <= (p_values < 0.05).mean() <= 0.08
    assert not [v for v in found if v.word in ("FASTER", "SLOWER")]


def test_quantised_times_of_the_same_code_give_no_verdict_either():
    """Event clocks have a resolution of 32 ns, so most samples of a short kernel are equal."""
    random = np.random.default_rng(2)

    def ticks():
        return Samples(tuple(8.0 + 0.032 * random.integers(0, 4, 15)))

    alone = [one(ticks(), ticks(), least=0.0).word for _ in range(200)]
    assert alone.count("FASTER") + alone.count("SLOWER") <= 2


@pytest.mark.parametrize("count", [10, 20, 200])
def test_two_percent_are_found_among_many_comparisons(count):
    random = np.random.default_rng(3)
    pairs = [(samples(random, 100.0, count), samples(random, 100.0, count)) for _ in range(55)]
    planted = [(samples(random, 100.0, count), samples(random, 102.0, count))]
    planted += [(samples(random, 100.0, count), samples(random, 98.0, count))]
    found = together(planted + pairs)
    assert [v.word for v in found[:2]] == ["SLOWER", "FASTER"]
    assert all(v.confirmed and v.cycles is not None for v in found[:2])
    assert found[0].time.low < 1.02 < found[0].time.high
    assert found[0].time.effect > 0.9
    assert {v.word for v in found[2:]} <= {"SAME", "AMBIGUOUS"}


def test_a_fifth_of_a_percent_is_not_claimed_however_sure():
    random = np.random.default_rng(4)
    tight = one(samples(random, 100.0, 200, 0.0005), samples(random, 100.2, 200, 0.0005))
    assert tight.p_samples < verdicts.ALPHA
    assert tight.word == "SAME"
    words = {one(samples(random, 100.0), samples(random, 100.2)).word for _ in range(50)}
    assert words <= {"SAME", "AMBIGUOUS"}


def test_a_lower_clock_is_no_regression():
    random = np.random.default_rng(6)
    verdict = one(samples(random, 100.0), samples(random, 103.0, mhz=CLOCK / 1.03))
    assert verdict.word == "AMBIGUOUS"
    assert "cycles" in verdict.reason


def test_without_clock_samples_a_verdict_is_not_confirmed():
    random = np.random.default_rng(7)
    verdict = one(samples(random, 100.0, mhz=None), samples(random, 110.0))
    assert (verdict.word, verdict.confirmed, verdict.cycles) == ("SLOWER", False, None)
    assert "not confirmed" in verdict.reason


def test_three_samples_show_nothing_and_it_is_said():
    random = np.random.default_rng(8)
    verdict = one(samples(random, 100.0, 3), samples(random, 150.0, 3))
    assert verdict.word == "AMBIGUOUS"
    assert "too few" in verdict.reason


def test_wide_samples_are_ambiguous_and_equal_ones_the_same():
    random = np.random.default_rng(9)
    a = samples(random, 100.0, 12, 0.05)
    assert one(a, samples(random, 100.0, 12, 0.05)).word == "AMBIGUOUS"
    b = samples(random, 100.0, 40, 0.001)
    assert one(b, b).word == "SAME"


@pytest.mark.parametrize("reverse", [False, True])
def test_nothing_is_claimed_where_the_interval_of_the_ratio_holds_1(reverse):
    """Two modes, one sample more in the lower one of A and in the upper one of B: the ranks differ beyond doubt,
    but a median falls into either mode, so that 100 may stand against 121 or 120 against 101."""
    a = Samples((100.0,) * 11 + (120.0,) * 9)
    b = Samples((101.0,) * 9 + (121.0,) * 11)
    verdict = one(b, a) if reverse else one(a, b)
    assert verdict.p_samples < 0.002
    assert sorted([1.0, verdict.time.low, verdict.time.high])[1] == 1.0
    assert abs(verdict.time.ratio - 1) > 0.1
    assert verdict.word == "AMBIGUOUS"
    assert "not clearly above the least gap" in verdict.reason


def test_the_same_samples_give_the_same_verdict():
    random = np.random.default_rng(10)
    a, b = samples(random, 100.0), samples(random, 101.0)
    assert one(a, b) == one(a, b)


@pytest.mark.parametrize("ties", [False, True])
def test_the_exact_p_value_is_that_of_all_arrangements(ties):
    from scipy.stats import rankdata

    random = np.random.default_rng(11)
    for _ in range(5):
        values = random.integers(0, 4, 9).astype(float) if ties else random.standard_normal(9)
        ranks = rankdata(values)
        sums = np.array([ranks[list(chosen)].sum() for chosen in combinations(range(9), 4)])
        far = np.abs(sums - sums.mean()) >= abs(ranks[:4].sum() - sums.mean()) - 1e-9
        p, effect = verdicts.rank_sum(values[:4], values[4:])
        signs = [np.sign(b - a) for a, b in product(values[:4], values[4:])]
        assert p == pytest.approx(far.mean())
        assert effect == pytest.approx(np.mean(signs))


@pytest.mark.parametrize("ties", [False, True])
def test_the_p_value_of_many_samples_is_that_of_scipy(ties):
    from scipy.stats import mannwhitneyu

    random = np.random.default_rng(13)
    for shift in (0.0, 0.02, 0.4, 3.0):
        a, b = random.normal(100, 1, 30), random.normal(100 + shift, 1, 45)
        a, b = (a.round(), b.round()) if ties else (a, b)
        expected = mannwhitneyu(a, b, alternative="two-sided", method="asymptotic")
        p, effect = verdicts.rank_sum(a, b)
        assert p == pytest.approx(expected.pvalue)
        assert effect == pytest.approx(1 - 2 * expected.statistic / (a.size * b.size))
    assert verdicts.rank_sum(np.full(30, 7.0), np.full(30, 7.0)) == (1.0, 0.0)


def test_the_interval_of_the_median_ratio_covers_it_as_often_as_it_says():
    random = np.random.default_rng(12)
    for count in (15, 40):
        pairs = [(random.normal(100, 1, count), random.normal(103, 1, count)) for _ in range(300)]
        found = [verdicts.contrast([a], [b]) for a, b in pairs]
        assert np.mean([c.low <= 1.03 <= c.high for c in found]) >= 0.97


def test_holm_by_hand():
    assert verdicts.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert verdicts.holm([]) == []


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
    for side, stage in product("AB", ("time", "extract")):
        recorded = FamilyRecord.read(RECORDED / stage / "h200" / "sgemm.json").variants
        target = tmp_path / side / stage / "h200" / "sgemm.json"
        write_record(target, *(recorded[variant] for variant in ("warptile", "vectorized")))

    def edit(change, stage="time", side="B"):
        path = tmp_path / side / stage / "h200" / "sgemm.json"
        together = json.loads(path.read_text())
        change(together["variants"]["warptile"])
        path.write_text(json.dumps(together))

    return tmp_path, edit


def scaled(factor, clock=1.0):
    def change(record):
        for case in record["cases"]:
            cold = case["cold"]
            cold["samples_us"] = [t * factor for t in cold["samples_us"]]
            for one in case["processes"]:
                one["set_mhz"] *= clock

    return change


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
    found, rows = compared(folder, capsys)
    assert found == status
    assert rows["warptile", "4096"]["word"] == word
    assert rows["warptile", "4096"]["verdict"]["time"]["ratio"] == pytest.approx(factor)
    assert rows["vectorized", "4096"]["word"] == "SAME"
    assert compared(folder, capsys, "--min-effect", "0.06")[0] == 0


def test_slower_at_a_lower_clock_only_passes(campaigns, capsys):
    folder, edit = campaigns
    edit(scaled(1.05, 1 / 1.05))
    assert compared(folder, capsys)[0] == 0


def test_another_run_of_the_same_code_raises_the_floor(campaigns, capsys):
    folder, edit = campaigns
    edit(scaled(1.05))
    shutil.copytree(folder / "B", folder / "again")
    edit(scaled(1.04 / 1.05))
    assert compared(folder, capsys)[0] == 1
    status, rows = compared(folder, capsys, "--again", str(folder / "again"))
    assert status == 0
    assert rows["warptile", "4096"]["verdict"]["least"] > 0.05


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
        first.update(status="crashed", reason="illegal address")
        del first["cold"], first["processes"]
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
        record["cases"][0].update(status="unsupported", reason="needs M to be at most 64")
        del record["cases"][0]["cold"], record["cases"][0]["processes"]

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
def test_times_without_a_passed_check_are_refused(campaigns, capsys, monkeypatch, status):
    """The schema takes no such record; this is what stands behind it."""
    folder, edit = campaigns
    edit(failed_check(status))
    monkeypatch.setattr("warplog.core.schema.check", lambda *_: None)
    _, rows = compared(folder, capsys)
    told = {(row["word"], row["reason"]) for (variant, _), row in rows.items() if variant == "warptile"}
    assert told == {("REFUSED", f"B: {status}: its answer was not shown to be correct")}
    assert rows["vectorized", "4096"]["word"] == "SAME"


@pytest.mark.parametrize("status", ["wrong", "timeout", "missing"])
def test_a_record_with_times_and_without_a_passed_check_is_an_error(campaigns, capsys, status):
    folder, edit = campaigns
    edit(failed_check(status))
    assert main.main(["compare", str(folder / "A"), str(folder / "B")]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "check" in told.err or "cases.0.status" in told.err


def test_nothing_comparable_is_a_failure(campaigns, capsys):
    folder, edit = campaigns
    edit(lambda record: record["provenance"].update(driver="590.1"))
    for side in "AB":
        path = folder / side / "time" / "h200" / "sgemm.json"
        write_record(path, FamilyRecord.read(path).variants["warptile"])
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


def test_the_table_for_people_and_a_name_that_is_no_campaign(campaigns, capsys, monkeypatch):
    folder, edit = campaigns
    monkeypatch.chdir(folder / "A")
    edit(scaled(1.05))
    assert main.main(["compare", str(folder / "A"), str(folder / "B")]) == 1
    printed = capsys.readouterr().out
    assert "confirmed SLOWER" in printed
    assert "+5.00 %" in printed
    assert main.main(["compare", str(folder / "A"), "../no such"]) == 1
    assert "no such folder or recorded campaign" in capsys.readouterr().err


def test_samples_that_are_no_times_are_an_error_of_one_line(campaigns, capsys):
    folder, edit = campaigns
    edit(lambda record: record["cases"][0]["cold"].update(samples_us=[1.0, 0.0]))
    assert main.main(["compare", str(folder / "A"), str(folder / "B")]) == 1
    assert "case 128" in capsys.readouterr().err
