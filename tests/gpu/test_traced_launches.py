"""The tracer on real kernels: what it counts is what their index arithmetic says, with no access to counters."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from gpu_jobs import build_variant, gpu_job, this_gpu
from msgspec import structs

from warplog.catalog.family import Family, load_family
from warplog.machine import toolchain
from warplog.measure.building.tracer import build_tracer
from warplog.measure.stages.accesses import trace_accesses
from warplog.measure.stages.check import check_family
from warplog.records.config import AccessSettings, CheckSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.requested.accesses import Accesses, Instruction

KERNELS = Path(__file__).parents[2] / "kernels"

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def tracer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the library that traces."""
    library = tmp_path_factory.mktemp("tracer") / "tracer.so"
    toolchain.ensure("cuda")
    toolchain.ensure("tracer")
    build_tracer(toolchain.find("nvcc"), toolchain.sanitizer_api(), this_gpu().arch, library)
    return library


def trace(family: Family, variants: Sequence[str], tracer: Path, place: Path) -> dict[str, Accesses]:
    """Builds, checks and traces variants, and returns their records."""
    for name in variants:
        build_variant(family, name, place / name)
    checks, jobs = (
        [gpu_job(family, name, place / name, place / f"{stage}.json", settings) for name in variants]
        for stage, settings in (("check", CheckSettings()), ("accesses", AccessSettings()))
    )
    check_family(checks)
    trace_accesses(jobs, checks[0].record, tracer, None)
    return dict(FamilyRecord.read(jobs[0].record, Accesses).variants)


@pytest.fixture(scope="module")
def traced(tracer: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Accesses]:
    """Returns the records of two transposes."""
    family = load_family(KERNELS / "transpose" / "family.yaml")
    return trace(family, ("naive", "smem_conflict"), tracer, tmp_path_factory.mktemp("accesses"))


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


def test_additions_to_one_word_are_as_many_as_its_warps_take_steps(tracer: Path, tmp_path: Path) -> None:
    """64 blocks of 4 warps, of which one lane each adds 32 times: to one word of all, or to one per block."""
    family = load_family(KERNELS / "costs" / "family.yaml")
    family = structs.replace(family, accesses=("64x4x32-same", "64x4x32"))
    record = trace(family, ("global_add",), tracer, tmp_path)["global_add"]
    assert (record.status, record.reason) == ("ok", "")
    most = {case.case: [kernel.same_address for kernel in case.kernels or ()] for case in record.cases}
    assert most == {"64x4x32-same": [None, 64 * 4 * 32, None], "64x4x32": [None, 4 * 32, None]}
    for case in record.cases:
        found = [one for one in case.instructions or () if one.kind == "atomic"]
        assert {one.same_address_lanes for one in found} == {1}
        assert sum(one.lanes for one in found) == 64 * 4 * 32
