"""What holds in the conclusions about any campaign, on three families of each recorded one."""

import itertools
import math
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from shipped_families import FAMILIES
from warplog.analysis.conclude import conclude
from warplog.analysis.explanation import sources_of
from warplog.analysis.verdicts import AMBIGUOUS, FASTER, SAME, SLOWER, WORDS
from warplog.metrics import METRICS
from warplog.tables import view

RECORDED = Path(__file__).parents[3] / "results" / "recorded"
CAMPAIGNS = ("h200", "h100")


def near(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


@cache
def tables(campaign):
    return view.read_all(RECORDED / campaign / "tables")


@pytest.fixture(
    scope="module", params=itertools.product(CAMPAIGNS, ("sgemm", "bf16_gemm", "transpose")), ids="-".join
)
def found(request):
    """The rows of each table about a family of a recorded campaign."""
    campaign, family = request.param
    own = view.of_family(tables(campaign), RECORDED / campaign / "tables", family)
    rows = vars(conclude(own, sources_of(FAMILIES[family].variants)))
    assert all(rows[table] for table in ("verdicts", "ladder", "steps", "changes", "bounds"))
    return rows


@pytest.fixture
def verdicts(found):
    """The verdicts at rest by variant, the other variant, and case."""
    return {(one.variant, one.against, one.case): one for one in found["verdicts"] if one.regime == "rest"}


def test_keys_tell_the_rows_of_a_table_apart(found):
    for table, rows in found.items():
        keys = [tuple(getattr(row, key) for key in row.KEYS) for row in rows]
        assert len(set(keys)) == len(keys), table


def test_a_speed_up_is_the_ratio_of_two_times_within_its_interval(found):
    for one in found["verdicts"]:
        assert one.speedup == near(one.against_us / one.us)
        assert one.low <= one.speedup <= one.high
        assert one.floor_pct > 0
        assert 0 <= one.p <= 1


def test_a_word_says_on_which_side_of_1_the_interval_is(found):
    for one in (*found["verdicts"], *found["steps"], *found["ladder"]):
        if one.word:
            assert one.word in WORDS
            assert (one.word == FASTER) == (one.low > 1)
            assert (one.word == SLOWER) == (one.high < 1)
        else:
            assert math.isnan(one.low)
            assert math.isnan(one.high)


def test_a_pair_has_one_verdict_whichever_side_it_is_told_from(verdicts):
    turned = {FASTER: SLOWER, SLOWER: FASTER, SAME: SAME, AMBIGUOUS: AMBIGUOUS}
    both = [key for key in verdicts if (key[1], key[0], key[2]) in verdicts]
    assert both
    for variant, against, case in both:
        one, other = verdicts[variant, against, case], verdicts[against, variant, case]
        assert other.word == turned[one.word]
        assert (other.speedup, other.low, other.high) == near((1 / one.speedup, 1 / one.high, 1 / one.low))


def test_ladder_and_steps_repeat_the_verdicts(found, verdicts):
    for one in found["ladder"]:
        if one.word:
            same = verdicts[one.variant, one.previous, one.case]
            assert (one.word, one.gain, one.low, one.high) == (same.word, same.speedup, same.low, same.high)
    for one in found["steps"]:
        if one.word:
            same = verdicts[one.variant, one.parent, one.case]
            assert (one.word, one.speedup, one.low, one.high) == (
                same.word,
                same.speedup,
                same.low,
                same.high,
            )


def test_the_steps_of_the_main_path_follow_each_other_without_gaps(found):
    path = sorted((one for one in found["ladder"] if one.step), key=lambda one: one.step)
    names = [one.variant for one in path]
    assert [one.step for one in path] == list(range(1, len(path) + 1))
    assert [one.previous for one in path] == ["", *names[:-1]]
    assert all(one.previous in ("", *names) for one in found["ladder"])
    assert [one.variant for one in found["ladder"] if one.fastest == "best"] == names[-1:]
    assert [one.order for one in found["ladder"]] == list(range(len(found["ladder"])))


def test_a_variant_that_is_tied_with_the_fastest_one_is_neither_faster_nor_slower(found, verdicts):
    (best,) = [one.variant for one in found["ladder"] if one.fastest == "best"]
    for one in found["ladder"]:
        if one.fastest == "tied":
            assert verdicts[one.variant, best, one.case].word in (SAME, AMBIGUOUS)


def test_the_factors_of_a_step_and_its_remainder_make_its_speed_up(found):
    factors = defaultdict(list)
    for one in found["changes"]:
        if one.kind in ("factor", "clock"):
            factors[one.variant].append(one.factor)
    steps = [one for one in found["steps"] if not one.gap]
    assert {one.variant for one in steps} == set(factors)
    for one in steps:
        assert math.prod(factors[one.variant]) * one.remainder == near(one.speedup)


def test_what_a_state_saves_is_the_difference_of_times_that_the_kernel_has(found):
    steps = {one.variant: one for one in found["steps"]}
    spent = defaultdict(lambda: [0.0, 0.0])
    for one in found["changes"]:
        if one.kind == "state":
            assert one.saved_us == near(one.before - one.after)
            assert min(one.before, one.after) >= 0
            spent[one.variant][0] += one.before
            spent[one.variant][1] += one.after
    assert spent
    for variant, (before, after) in spent.items():
        assert before <= steps[variant].parent_kernel_us * (1 + 1e-9)
        assert after <= steps[variant].kernel_us * (1 + 1e-9)


def test_each_change_belongs_to_a_step_and_the_ranks_of_a_step_have_no_gaps(found):
    steps = {one.variant: one for one in found["steps"]}
    ranks = defaultdict(list)
    for one in found["changes"]:
        step = steps[one.variant]
        assert (one.parent, one.case, step.gap) == (step.parent, step.case, "")
        ranks[one.variant].append(one.rank)
    assert all(found == list(range(len(found))) for found in ranks.values())
    variants = {one.variant for one in found["ladder"]}
    assert {one.variant for one in found["steps"]} | {one.variant for one in found["bounds"]} <= variants


def test_a_change_that_goes_along_with_another_names_a_quantity_of_its_step(found):
    quantities = defaultdict(set)
    for one in found["changes"]:
        quantities[one.variant].add(one.quantity)
    variants = {one.variant for one in found["ladder"]}
    assert all(
        one.of in ("", *quantities[one.variant], *(variants if one.kind == "bubble" else ()))
        for one in found["changes"]
    )


def test_a_ceiling_is_a_metric_and_ratios_are_those_of_their_columns(found):
    for one in found["bounds"]:
        if one.gap:
            assert not one.kind
            continue
        assert METRICS[one.ceiling].unit == "%"
        assert 0 <= one.ceiling_pct < 110
        assert not one.beside or METRICS[one.beside].unit == "%"
        if one.compulsory_bytes > 0 and one.dram_bytes > 0:
            assert one.traffic == near(one.dram_bytes / one.compulsory_bytes)
        if one.long_us > 0:
            assert one.long_slowdown == near(one.long_us / one.rest_us)
            assert one.long_slowdown > 1
