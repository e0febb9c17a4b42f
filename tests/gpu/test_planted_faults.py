"""compute-sanitizer finds the planted faults in wrong kernels with their source lines, and none in a correct one."""

from pathlib import Path

import pytest
from gpu_jobs import build_variant, gpu_job

from one_variant import sanitize_variant
from warplog.catalog.family import load_family
from warplog.machine import toolchain
from warplog.records.config import SanitizeSettings
from warplog.records.requested.sanitize import Sanitize

FAMILY = load_family(Path(__file__).parents[1] / "data" / "wrong_kernels" / "wrong_sgemm" / "family.yaml")
PLANTED = {
    "missing_barrier": ("racecheck", "race"),
    "out_of_bounds_write": ("memcheck", "invalid_write"),
}

pytestmark = pytest.mark.gpu


def sanitized(variant: str, folder: Path) -> Sanitize:
    tool = toolchain.find("compute-sanitizer")
    if not tool.ok:
        pytest.skip(tool.remedy)
    build_variant(FAMILY, variant, folder / "build")
    job = gpu_job(FAMILY, variant, folder / "build", folder / f"{FAMILY.name}.json", SanitizeSettings())
    record = sanitize_variant(job, tool)
    if record.status == "unsupported":
        pytest.skip(record.reason)
    return record


@pytest.mark.parametrize("variant", PLANTED)
def test_planted_fault_is_found_with_its_line(variant: str, tmp_path: Path) -> None:
    record = sanitized(variant, tmp_path)
    tool, kind = PLANTED[variant]
    check = next(c for c in record.checks if c.tool == tool)
    assert check.status == "finding", check.reason
    found = next(f for f in check.findings if f.kind == kind)
    assert found.file == FAMILY.variant(variant).file.name
    lines = FAMILY.variant(variant).file.read_text().splitlines()
    assert 0 < found.line <= len(lines)


def test_a_correct_kernel_is_clean(tmp_path: Path) -> None:
    record = sanitized("right", tmp_path)
    assert (record.status, record.reason) == ("ok", "")
