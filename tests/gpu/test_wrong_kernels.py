"""Deliberately wrong kernels are rejected on the GPU, each with its reason, and a correct one passes."""

from pathlib import Path

import pytest
from gpu_jobs import build_variant, gpu_job

from one_variant import check_variant
from warplog.catalog.family import load_family
from warplog.records.check import Check
from warplog.records.config import CheckSettings

WRONG = Path(__file__).parents[1] / "data" / "wrong_kernels"
FAMILY = WRONG / "wrong_sgemm" / "family.yaml"

pytestmark = pytest.mark.gpu

EXPECTED = {
    "right": ("ok", ""),
    "off_by_one": ("wrong", "outside the tolerance"),
    "missing_barrier": ("wrong", "C: "),
    "unwritten_tail": ("wrong", "C: "),
    "out_of_bounds_write": ("wrong", "wrote outside C"),
    "writes_nan": ("wrong", "NaN"),
    "writes_nothing": ("wrong", "C: "),
    "ignores_beta": ("wrong", "outside the tolerance"),
    "reads_c_at_beta_zero": ("wrong", "C: "),
    "low_precision": ("wrong", "outside the tolerance"),
    "refuses_to_launch": ("crashed", "nvalid"),
    "modifies_input": ("wrong", "changed its input"),
    "hangs": ("timeout", "no answer within"),
    "crashes": ("crashed", "llegal"),
    "host_segfault": ("crashed", "SIGSEGV"),
    "does_not_compile": ("skipped", "compile_error"),
}


def check(variant: str, folder: Path) -> Check:
    family, policy = load_family(FAMILY), CheckSettings(rounds=2, timeout_s=10.0)
    build_variant(family, variant, folder / "build")
    return check_variant(gpu_job(family, variant, folder / "build", folder / "check.json", policy))


@pytest.mark.parametrize("variant", EXPECTED)
def test_wrong_kernel_is_rejected_with_the_reason(variant: str, tmp_path: Path) -> None:
    record = check(variant, tmp_path)
    status, words = EXPECTED[variant]
    assert record.status == status, record.reason
    assert words in record.reason


def test_every_wrong_kernel_has_an_expectation() -> None:
    assert {v.name for v in load_family(FAMILY).variants} == set(EXPECTED)
