"""The model of mechanisms on the recorded campaigns, with ceilings and loads in flight from an earlier study.

These campaigns do not count the work of L1 and L2: the test shows that the model runs on whole campaigns, not how good
it is.
"""

import argparse
from functools import cache
from pathlib import Path

import pytest
from benchmarks import mechanism_study as study

from warplog.analysis.mechanisms import steps
from warplog.analysis.mechanisms.model import Calibration

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "mechanisms"
MODEL = Calibration(4.0, 0.4)


@cache
def found(slug):
    tables = ROOT / "results" / "recorded" / slug / "tables"
    given = {"ceilings": DATA / "earlier_ceilings.csv", "code": DATA / "earlier_code.csv"}
    return study.read(argparse.Namespace(tables=tables, **given))


@cache
def reasons(slug):
    return {(step.reason.variant, step.reason.case): step for step in study.collected(found(slug), MODEL)}


@pytest.mark.parametrize("slug", ["h200", "h100"])
def test_most_large_gains_are_predicted_on_both_gpus_with_the_same_constants(slug):
    large = [step for step in reasons(slug).values() if step.differs and step.gain >= 0.15]
    assert len(large) > 50
    assert sum(step.error <= 0.4 for step in large) >= 0.8 * len(large)


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
    reason = reasons("h200")[variant, case].reason
    assert (reason.word, reason.mechanism) == ("predicted", mechanism)


def test_the_conflicts_of_a_transpose_are_forecast_by_what_removing_them_brought():
    forecasts = steps.forecast(found("h200"), MODEL)
    row = next(r for r in forecasts if (r.variant, r.mechanism) == ("smem_conflict", "bank_conflicts"))
    assert row.saved_us == pytest.approx(reasons("h200")["padded", "8192"].reason.measured_us, rel=0.4)
