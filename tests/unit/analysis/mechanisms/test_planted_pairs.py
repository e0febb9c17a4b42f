"""The committed model on pairs with a known cause, whose work an H100 counted: table and figures in docs/judging.md."""

import argparse
from functools import cache
from pathlib import Path

import pytest
from benchmarks import mechanism_study as study

from warplog.analysis.mechanisms import model

TABLES = Path(__file__).parents[3] / "data" / "mechanisms" / "h100"
# What the counts of this campaign do not tell: addresses of atomics, and stores in flight.
NOT_COUNTED = {"atomics", "store_overlap"}


@cache
def planted():
    """All steps of the family: the parents' and children's work, and both times."""
    found = study.read(argparse.Namespace(tables=TABLES))
    return [step for step in study.collected(found, model.calibration()) if step.planted]


def judged():
    return [step for step in planted() if step.planted == "judged" and not step.decoy]


def test_the_cause_is_named_first_in_each_judged_pair_whose_work_is_counted():
    counted = [step for step in judged() if not NOT_COUNTED & set(step.causes)]
    assert len(counted) == 72
    assert [step.reason for step in counted if step.reason.mechanism not in step.causes] == []


def test_the_gain_is_within_a_quarter_in_nearly_all_of_these_pairs():
    counted = [step for step in judged() if not NOT_COUNTED & set(step.causes)]
    assert sum(step.error <= 0.25 for step in counted) >= 0.95 * len(counted)


def test_no_look_alike_is_named():
    alike = [step for step in planted() if step.decoy]
    assert len(alike) == 12
    assert {step.reason.mechanism for step in alike} == {"none"}


@pytest.mark.parametrize("mechanism", sorted(NOT_COUNTED))
def test_nothing_else_is_named_where_counts_do_not_tell(mechanism):
    steps = [step for step in judged() if mechanism in step.causes]
    assert steps
    assert {step.reason.mechanism for step in steps} <= {"none", mechanism}


def test_nine_of_ten_fitted_gains_are_within_the_error_that_the_calibration_states():
    fitted = [step for step in planted() if step.planted == "fitted"]
    near = [
        abs(step.reason.measured_us / step.reason.predicted_us - 1) <= model.calibration().error + 1e-9
        for step in fitted
    ]
    assert sum(near) >= 0.9 * len(fitted)
