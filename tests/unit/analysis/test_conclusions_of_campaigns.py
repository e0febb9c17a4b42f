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
MEASURED = {each.ceiling for family in FAMILIES.values() for each in family.ceilings}


def near(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


@cache
def tables(campaign):
    return view.read_all(RECORDED / campaign / "tables")


@pytest.fixture(
    scope="module", params=itertools.product(CAMPAIGNS, ("sgemm", "bf16_gemm", "transpose")), ids="-".join
)
def concluded(request):
    """The rows of each table about a family of a recorded campaign."""
    campaign, family = request.param
    own = view.of_family(tables(campaign), RECORDED / campaign / "tables", family)
    rows = vars(conclude(own, sources_of(FAMILIES[family].variants)))
    assert all(rows[table] for table in ("verdicts", "ladder", "steps", "changes", "bounds"))
    return rows


@pytest.fixture
def verdicts(concluded):
    """The verdicts at rest by variant, the other variant, and case."""
    return {
        (row.variant, row.against, row.case): row for row in concluded["verdicts"] if row.regime == "rest"
    }


def test_keys_tell_the_rows_of_a_table_apart(concluded):
    for table, rows in concluded.items():
        keys = [tuple(getattr(row, key) for key in row.KEYS) for row in rows]
        assert len(set(keys)) == len(keys), table


def test_a_speed_up_is_the_ratio_of_two_times_within_its_interval(concluded):
    for row in concluded["verdicts"]:
        assert row.speedup == near(row.against_us / row.us)
        assert row.low <= row.speedup <= row.high
        assert row.floor_pct > 0
        assert 0 <= row.p <= 1


def test_a_word_says_on_which_side_of_1_the_interval_is(concluded):
    for row in (*concluded["verdicts"], *concluded["steps"], *concluded["ladder"]):
        if row.word:
            assert row.word in WORDS
            assert (row.word == FASTER) == (row.low > 1)
            assert (row.word == SLOWER) == (row.high < 1)
        else:
            assert math.isnan(row.low)
            assert math.isnan(row.high)


def test_a_pair_has_one_verdict_whichever_side_it_is_told_from(verdicts):
    turned = {FASTER: SLOWER, SLOWER: FASTER, SAME: SAME, AMBIGUOUS: AMBIGUOUS}
    both = [key for key in verdicts if (key[1], key[0], key[2]) in verdicts]
    assert both
    for variant, against, case in both:
        verdict, other = verdicts[variant, against, case], verdicts[against, variant, case]
        assert other.word == turned[verdict.word]
        assert (other.speedup, other.low, other.high) == near(
            (1 / verdict.speedup, 1 / verdict.high, 1 / verdict.low)
        )


def test_ladder_and_steps_repeat_the_verdicts(concluded, verdicts):
    for row in concluded["ladder"]:
        if row.word:
            same = verdicts[row.variant, row.previous, row.case]
            assert (row.word, row.gain, row.low, row.high) == (same.word, same.speedup, same.low, same.high)
    for row in concluded["steps"]:
        if row.word:
            same = verdicts[row.variant, row.parent, row.case]
            assert (row.word, row.speedup, row.low, row.high) == (
                same.word,
                same.speedup,
                same.low,
                same.high,
            )


def test_the_steps_of_the_main_path_follow_each_other_without_gaps(concluded):
    path = sorted((row for row in concluded["ladder"] if row.step), key=lambda row: row.step)
    names = [row.variant for row in path]
    assert [row.step for row in path] == list(range(1, len(path) + 1))
    assert [row.previous for row in path] == ["", *names[:-1]]
    assert all(row.previous in ("", *names) for row in concluded["ladder"])
    assert [row.variant for row in concluded["ladder"] if row.fastest == "best"] == names[-1:]
    assert [row.order for row in concluded["ladder"]] == list(range(len(concluded["ladder"])))


def test_a_variant_that_is_tied_with_the_fastest_one_is_neither_faster_nor_slower(concluded, verdicts):
    (best,) = [row.variant for row in concluded["ladder"] if row.fastest == "best"]
    for row in concluded["ladder"]:
        if row.fastest == "tied":
            assert verdicts[row.variant, best, row.case].word in (SAME, AMBIGUOUS)


def test_the_factors_of_a_step_and_its_remainder_make_its_speed_up(concluded):
    factors = defaultdict(list)
    for change in concluded["changes"]:
        if change.kind in ("factor", "clock"):
            factors[change.variant].append(change.factor)
    steps = [step for step in concluded["steps"] if not step.gap]
    assert {step.variant for step in steps} == set(factors)
    for step in steps:
        assert math.prod(factors[step.variant]) * step.remainder == near(step.speedup)


def test_what_a_state_saves_is_the_difference_of_times_that_the_kernel_has(concluded):
    steps = {step.variant: step for step in concluded["steps"]}
    spent = defaultdict(lambda: [0.0, 0.0])
    for change in concluded["changes"]:
        if change.kind == "state":
            assert change.saved_us == near(change.before - change.after)
            assert min(change.before, change.after) >= 0
            spent[change.variant][0] += change.before
            spent[change.variant][1] += change.after
    assert spent
    for variant, (before, after) in spent.items():
        assert before <= steps[variant].parent_kernel_us * (1 + 1e-9)
        assert after <= steps[variant].kernel_us * (1 + 1e-9)


def test_each_change_belongs_to_a_step_and_the_ranks_of_a_step_have_no_gaps(concluded):
    steps = {step.variant: step for step in concluded["steps"]}
    ranks = defaultdict(list)
    for change in concluded["changes"]:
        step = steps[change.variant]
        assert (change.parent, step.gap) == (step.parent, "")
        assert change.case == step.case or change.kind == "access", "other cases are traced"
        ranks[change.variant].append(change.rank)
    assert all(ranked == list(range(len(ranked))) for ranked in ranks.values())
    variants = {row.variant for row in concluded["ladder"]}
    assert {step.variant for step in concluded["steps"]} | {
        bound.variant for bound in concluded["bounds"]
    } <= variants


def test_a_change_that_goes_along_with_another_names_a_quantity_of_its_step(concluded):
    quantities = defaultdict(set)
    for change in concluded["changes"]:
        quantities[change.variant].add(change.quantity)
    variants = {row.variant for row in concluded["ladder"]}
    for change in concluded["changes"]:
        arrays = [argument.name for argument in FAMILIES[change.family].arguments]
        others = {"bubble": variants, "access": arrays}.get(change.kind, ())
        assert change.of in ("", *quantities[change.variant], *others)


def test_a_ceiling_is_a_metric_and_ratios_are_those_of_their_columns(concluded):
    for bound in concluded["bounds"]:
        if bound.gap:
            assert not bound.kind
            continue
        assert 0 <= bound.ceiling_pct < 110
        for name in filter(None, (bound.ceiling, bound.beside)):
            assert name in MEASURED or METRICS[name].unit == "%"
        if bound.compulsory_bytes > 0 and bound.dram_bytes > 0:
            assert bound.traffic == near(bound.dram_bytes / bound.compulsory_bytes)
        if bound.long_us > 0:
            assert bound.long_slowdown == near(bound.long_us / bound.rest_us)
            assert bound.long_slowdown > 1
