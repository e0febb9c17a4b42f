"""Kernels as other repositories have them: sources apart, C++20, every narrow type, a workspace."""

from pathlib import Path

import pytest
from gpu_jobs import build_variant, gpu_job

from one_variant import check_variant
from warplog.catalog.family import load_family
from warplog.records.config import CheckSettings

FAMILY = Path(__file__).parents[1] / "data" / "own_kernels" / "every_type" / "family.yaml"

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    ("variant", "status", "words"),
    [
        ("right", "ok", ""),
        (
            "reads_workspace",
            "wrong",
            "sum: 1 of 1 elements were never written or come from reads outside an input",
        ),
    ],
)
def test_a_kernel_of_every_type_is_checked(tmp_path: Path, variant: str, status: str, words: str) -> None:
    family = load_family(FAMILY)
    build_variant(family, variant, tmp_path / "build")
    policy = CheckSettings(rounds=2, timeout_s=30.0)
    record = check_variant(gpu_job(family, variant, tmp_path / "build", tmp_path / "check.json", policy))
    assert record.status == status, record.reason
    assert words in record.reason
