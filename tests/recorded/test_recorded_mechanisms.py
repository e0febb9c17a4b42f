"""The model of mechanisms on the recorded campaigns, with ceilings and loads in flight from an earlier study.

These campaigns do not count the work of L1 and L2: the test shows that the model runs on whole campaigns, not how good
it is.
"""

import argparse
import importlib.util
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from made_up_work import gpu, work
from warplog.analysis.mechanisms.model import Calibration
from warplog.analysis.verdicts import Noise, Timed

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "mechanisms"
MODEL = Calibration(4.0, 0.4)


@cache
def study():
    path = ROOT / "tests" / "benchmarks" / "mechanism_study.py"
    module = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location(path.stem, path))
    spec.loader.exec_module(module)
    return module


@cache
def found(slug):
    tables = ROOT / "results" / "recorded" / slug / "tables"
    given = {"ceilings": DATA / "earlier_ceilings.csv", "code": DATA / "earlier_code.csv"}
    return study().read(argparse.Namespace(tables=tables, **given))


@cache
def reasons(slug):
    return {(step.reason.variant, step.reason.case): step for step in study().collected(found(slug), MODEL)}


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
    forecasts = study().steps.forecast(found("h200"), MODEL)
    row = next(r for r in forecasts if (r.variant, r.mechanism) == ("smem_conflict", "bank_conflicts"))
    assert row.saved_us == pytest.approx(reasons("h200")["padded", "8192"].reason.measured_us, rel=0.4)


def test_the_fitted_half_of_the_planted_pairs_calibrates_and_the_other_half_judges():
    """Of lines_32, 16, 8 and 1, lines_16 is fitted; here all of them take exactly what L2 does."""
    sectors = {"lines_32": 32, "lines_16": 16, "lines_8": 8, "lines_1": 4}
    works = {
        name: work(loads=1e6, load_bytes=4.0, load_sectors=n * 1e6, l2_requests=1e8 * n, l2_bytes=1e10 * n)
        for name, n in sectors.items()
    }
    keys = {name: ("causes", name, "4Mi") for name in sectors}
    campaign = replace(
        found("h200"),
        gpu=gpu(),
        launches={key: (works[name],) for name, key in keys.items()},
        times={key: Timed(2 + 2000.0 * sectors[name], Noise(0.001)) for name, key in keys.items()},
        parents={
            ("causes", "lines_16"): "lines_32",
            ("causes", "lines_8"): "lines_16",
            ("causes", "lines_1"): "lines_8",
        },
    )
    calibration = study().calibrated(campaign)
    assert calibration.power in study().POWERS
    assert calibration.error == pytest.approx(0, abs=1e-3)
    lines = list(study().criteria(study().collected(campaign, calibration), []))
    assert "planted pairs: cause named: 2 of 2 (100 %; asked: 100 %)" in lines
    assert "planted pairs: gain within 25 %: 2 of 2 (100 %; asked: 90 %)" in lines
