"""wgmma_stream_k sums in the same order as its parent: results are bitwise equal in every launch."""

from pathlib import Path

import pytest
from gpu_jobs import build_variant

import shipped_families
from warplog.measure.worker.backend import CupyBackend, Launcher
from warplog.measure.worker.problem import Problem

FAMILY = shipped_families.FAMILIES["bf16_gemm"]

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("case", ["1784x2552x712", "2568x3080x1032", "8192"])
def test_split_tiles_are_bitwise_equal_to_whole_ones_in_every_launch(case: str, tmp_path: Path) -> None:
    backend, answers = CupyBackend(), []
    problem = Problem(backend.xp, FAMILY, FAMILY.case(case))
    problem.fill(1)
    for name in ("wgmma_tma_store", *["wgmma_stream_k"] * 3):
        if not (tmp_path / name).exists():
            build_variant(FAMILY, name, tmp_path / name)
        problem.restore()
        Launcher(tmp_path / name / "kernel.so", backend)(problem.arguments)
        assert problem.arrays["C"].never_written() == 0
        answers.append(problem.arrays["C"].load())
    assert all(bool((answer == answers[0]).all()) for answer in answers)
