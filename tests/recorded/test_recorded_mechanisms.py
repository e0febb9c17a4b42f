"""The committed model of mechanisms on the recorded campaigns of two GPUs: all families but the planted pairs."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from benchmarks import mechanism_study as study

from warplog.analysis.mechanisms import model, steps

ROOT = Path(__file__).parents[2]


@cache
def found(slug):
    return study.read([ROOT / "results" / "recorded" / slug / "tables"])


@cache
def reasons(slug):
    collected = study.collected(found(slug), model.calibration())
    return {(step.reason.family, step.reason.variant, step.reason.case): step for step in collected}


@pytest.mark.parametrize(("slug", "near", "of"), [("h200", 78, 103), ("h100", 75, 95)])
def test_most_large_gains_are_predicted_on_both_gpus_with_the_same_constants(slug, near, of):
    large = [step for step in reasons(slug).values() if step.differs and step.gain >= 0.15]
    assert len(large) == of
    assert sum(step.error <= 0.4 for step in large) >= near


@pytest.mark.parametrize(
    ("family", "variant", "case", "mechanism"),
    [
        ("transpose", "smem_conflict", "8192", "coalescing"),
        ("transpose", "padded", "8192", "bank_conflicts"),
        ("sgemm", "gmem_coalesced", "4096", "coalescing"),
        ("scan", "reduce_then_scan", "64Mi", "dram_bytes"),
        ("global_access", "coalesced", "64Mi", "coalescing"),
    ],
)
def test_a_step_that_changes_one_thing_is_named_by_it(family, variant, case, mechanism):
    reason = reasons("h200")[family, variant, case].reason
    assert (reason.word, reason.mechanism) == ("predicted", mechanism)


def test_the_conflicts_of_a_transpose_are_forecast_by_what_removing_them_brought():
    launches = {key: launch for key, launch in found("h200").launches.items() if key[0] == "transpose"}
    forecasts = steps.forecast(replace(found("h200"), launches=launches), model.calibration())
    row = next(r for r in forecasts if (r.variant, r.mechanism) == ("smem_conflict", "bank_conflicts"))
    assert row.saved_us == pytest.approx(
        reasons("h200")["transpose", "padded", "8192"].reason.measured_us, rel=0.4
    )


def test_a_dispatcher_is_no_step_from_its_parent():
    assert ("sgemm", "stream_k", "4096") in reasons("h200")
    assert ("sgemm", "best_of", "4096") not in reasons("h200")
