"""The committed model on the recorded campaigns, whose steps it was not fitted to, by what each of them measured."""

import argparse
from functools import cache
from pathlib import Path

import pytest
from benchmarks import mechanism_study as study

from warplog.analysis.mechanisms import model, steps

RECORDED = Path(__file__).parents[2] / "results" / "recorded"


@cache
def found(slug):
    return study.read(argparse.Namespace(tables=RECORDED / slug / "tables"))


@cache
def reasons(slug):
    return study.collected(found(slug), model.calibration())


def reason(variant, case):
    return next(s.reason for s in reasons("h200") if (s.reason.variant, s.reason.case) == (variant, case))


@pytest.mark.parametrize(("slug", "near", "of"), [("h200", 78, 103), ("h100", 75, 95)])
def test_most_large_gains_are_predicted_on_both_gpus_with_the_same_constants(slug, near, of):
    large = [step for step in reasons(slug) if step.differs and step.gain >= 0.15]
    assert len(large) == of
    assert sum(step.error <= 0.4 for step in large) >= near


@pytest.mark.parametrize(
    ("variant", "case", "mechanism"),
    [
        ("smem_conflict", "8192", "coalescing"),
        ("padded", "8192", "bank_conflicts"),
        ("gmem_coalesced", "4096", "coalescing"),
        ("reduce_then_scan", "64Mi", "dram_bytes"),
        ("coalesced", "64Mi", "coalescing"),
    ],
)
def test_a_step_that_changes_one_thing_is_named_by_it(variant, case, mechanism):
    named = reason(variant, case)
    assert (named.word, named.mechanism) == ("predicted", mechanism)


def test_the_conflicts_of_a_transpose_are_forecast_by_what_removing_them_brought():
    forecasts = steps.forecast(found("h200"), model.calibration())
    row = next(r for r in forecasts if (r.variant, r.mechanism) == ("smem_conflict", "bank_conflicts"))
    assert row.saved_us == pytest.approx(reason("padded", "8192").measured_us, rel=0.4)
