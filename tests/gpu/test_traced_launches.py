"""The tracer on real kernels: what it counts is what their index arithmetic says, with no access to counters."""

from pathlib import Path

import pytest
from gpu_jobs import build_variant, gpu_job, this_gpu

from warplog.catalog.family import load_family
from warplog.machine import toolchain
from warplog.measure.building.tracer import build_tracer
from warplog.measure.stages.accesses import trace_accesses
from warplog.measure.stages.check import check_family
from warplog.records.config import AccessSettings, CheckSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.requested.accesses import Accesses, Instruction

FAMILY = Path(__file__).parents[2] / "kernels" / "transpose" / "family.yaml"

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Accesses]:
    """Returns the records of two transposes."""
    place, family = tmp_path_factory.mktemp("accesses"), load_family(FAMILY)
    toolchain.ensure("cuda")
    toolchain.ensure("tracer")
    build_tracer(toolchain.find("nvcc"), toolchain.sanitizer_api(), this_gpu().arch, place / "tracer.so")
    variants = ("naive", "smem_conflict")
    for name in variants:
        build_variant(family, name, place / name)
    checks, jobs = (
        [gpu_job(family, name, place / name, place / f"{stage}.json", settings) for name in variants]
        for stage, settings in (("check", CheckSettings()), ("accesses", AccessSettings()))
    )
    check_family(checks)
    trace_accesses(jobs, checks[0].record, place / "tracer.so", None)
    return dict(FamilyRecord.read(jobs[0].record, Accesses).variants)


def instructions(record: Accesses, space: str, kind: str) -> list[Instruction]:
    assert (record.status, record.reason) == ("ok", "")
    return [one for one in record.cases[0].instructions or () if (one.space, one.kind) == (space, kind)]


def test_a_warp_that_writes_down_a_column_touches_a_sector_per_lane(traced: dict[str, Accesses]) -> None:
    requests = 1024 * 1024 // 32
    for kind, sectors in (("load", 4), ("store", 32)):
        found = instructions(traced["naive"], "global", kind)
        assert sum(one.requests for one in found) == requests
        assert sum(one.sectors or 0 for one in found) == sectors * requests
        assert {one.array for one in found} == {"in" if kind == "load" else "out"}
        assert all(one.line and one.opcode for one in found)


def test_a_warp_that_reads_a_column_of_a_tile_has_a_32_way_conflict(traced: dict[str, Accesses]) -> None:
    loads = instructions(traced["smem_conflict"], "shared", "load")
    assert {one.ways for one in loads} == {32}
    assert all(one.wavefronts == 32 * (one.wavefronts_ideal or 0) for one in loads)
    assert {one.ways for one in instructions(traced["smem_conflict"], "shared", "store")} == {1}
