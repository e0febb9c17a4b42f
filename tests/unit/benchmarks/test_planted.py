"""The planted slowdowns match their names: same instructions, different trip count, same results."""

import re
from pathlib import Path

import numpy as np
import pytest

from sass_builds import built
from warplog.catalog import family
from warplog.judge.campaigns import parent_of
from warplog.measure.worker.problem import Problem
from warplog.plan.making import make_plan

FOLDER = Path(__file__).parents[2] / "benchmarks" / "kernels"
FAMILY = family.load([FOLDER])["planted"]
STEPS = {v.name: v.parameters["STEPS"] for v in FAMILY.variants}
SCRIPT = FOLDER.parent / "planted.sh"
BODY = 40


def test_the_names_state_the_planted_change():
    base = STEPS["steps"]
    shares = {name: count / base for name, count in STEPS.items()}
    assert shares == {
        "steps": 1.0,
        "steps_again": 1.0,
        "steps_plus_2_percent": 1.02,
        "steps_minus_2_percent": 0.98,
        "steps_plus_0_2_percent": 1.002,
    }
    assert parent_of({"planted": FAMILY}).keys() == {("planted", name) for name in STEPS if name != "steps"}


@pytest.mark.parametrize("steps", [64, 65, 1000])
def test_the_results_do_not_depend_on_the_number_of_steps(steps):
    """Emulates the kernel in float32 step by step; float64 arithmetic rounded once is equal to fmaf here."""
    problem = Problem(np, FAMILY, FAMILY.check_cases["40001"])
    problem.fill(3)
    x = problem.arrays["x"].load().astype(np.float32)
    value = np.zeros_like(x)
    for _ in range(steps):
        value = (value.astype(np.float64) * 0.5 + np.float64(0.5) * x).astype(np.float32)
    problem.arrays["y"].store(value)
    assert problem.verdict().reason == ""


@pytest.mark.nvcc
def test_the_machine_code_of_variants_differs_in_one_number(kept_builds):
    texts, counts = [], []
    for variant in map(FAMILY.variant, ("steps", "steps_plus_2_percent", "steps_plus_0_2_percent")):
        folder, record = built(FAMILY, variant, "sm_90", kept_builds)
        assert record.status == "ok", record.reason
        assert record.kernels[0].opcodes["FFMA"] == BODY
        sass = (folder / "kernel.sass").read_text()
        code = re.findall(r"/\*[0-9a-f]{4}\*/\s+(.*?);", sass)
        trips = f"{STEPS[variant.name] // BODY:#x}"
        counts.append(sum(trips in line for line in code))
        texts.append([line.replace(trips, "TRIPS") for line in code])
    assert counts == [1] * len(texts)
    assert all(text == texts[0] for text in texts)


def test_the_script_requests_existing_families(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[3])
    families = re.search(r" aa .*families=(\S+)", SCRIPT.read_text())[1]
    config = {"mode": "live", "gpu": "h200", "families": families, "kernel_folders": [str(FOLDER)]}
    made = make_plan(config)
    assert made.cases["planted"] == tuple(FAMILY.cases)
    other, planted = made.chosen
    assert planted == "planted"
    assert len(made.cases[other]) >= 3
