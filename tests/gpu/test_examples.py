"""The kernels of the repositories in examples/ give right answers."""

from pathlib import Path

import pytest
from gpu_jobs import build_variant, gpu_job

from one_variant import check_variant
from warplog.catalog.family import load_family
from warplog.catalog.languages import MODULES
from warplog.machine import packages
from warplog.records.config import CheckSettings

EXAMPLES = Path(__file__).parents[2] / "examples"
FAMILIES = {"row_sum": EXAMPLES / "cmake-style", "scale": EXAMPLES / "python-kernels"}

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    ("name", "variant"),
    [("row_sum", "naive"), ("row_sum", "library"), ("scale", "in_cupy"), ("scale", "in_triton")],
)
def test_a_kernel_of_the_examples_is_right(tmp_path: Path, name: str, variant: str) -> None:
    family = load_family(FAMILIES[name] / "warplog" / "kernels" / name / "family.yaml")
    for module in MODULES[family.variant(variant).language]:
        if module != "cupy" and not packages.version(module):
            pytest.skip(f"no {module}")
    build_variant(family, variant, tmp_path / "build")
    policy = CheckSettings(rounds=2, timeout_s=120.0)
    record = check_variant(gpu_job(family, variant, tmp_path / "build", tmp_path / "check.json", policy))
    assert record.status == "ok", record.reason
