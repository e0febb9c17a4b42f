"""What nvcc makes of the sgemm ladder: the instructions that each rung is about, no spills, no warnings."""

import ctypes
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from warplog import build, catalog, toolchain
from warplog.parsers import sass

KERNELS = Path(__file__).parents[2] / "kernels"
FAMILY = catalog.load([KERNELS])["sgemm"]
SWAPPED = str.maketrans("XY", "YX")
REGISTERS_PER_SM = 65536

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def build_all(tmp_path_factory):
    """build_all(arch): folder and record of every variant by name."""
    nvcc, cuobjdump = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    for tool in (nvcc, cuobjdump):
        if not tool.ok:
            pytest.skip(f"{tool.name}: {tool.remedy}")

    def all_of(arch):
        root = tmp_path_factory.mktemp(arch)

        def one(variant):
            folder = root / variant.name
            return variant.name, (folder, build.build_variant(FAMILY, variant, arch, nvcc, cuobjdump, folder))

        with ThreadPoolExecutor(2) as pool:
            return dict(pool.map(one, FAMILY.variants))

    return all_of


@pytest.fixture(scope="module")
def builds(build_all):
    return build_all("sm_90")


def kernels(builds, name):
    return builds[name][1]["kernels"]


def count(kernel, prefix):
    return sass.matching(kernel["opcodes"], prefix)


def instructions(folder):
    """The code without addresses and encodings."""
    return re.findall(
        r"^\s+/\*[0-9a-f]{4}\*/\s+(.*?)\s*;", (folder / "kernel.sass").read_text(), re.MULTILINE
    )


@pytest.mark.parametrize("variant", FAMILY.variants, ids=lambda v: v.name)
def test_compiles_without_a_warning_and_keeps_what_family_yaml_expects(builds, variant):
    folder, record = builds[variant.name]
    assert record["status"] == "ok", record["reason"]
    assert "warning" not in (folder / "compile.log").read_text()
    for prefix in variant.expects.get("sass", ()):
        assert any(count(kernel, prefix) for kernel in record["kernels"]), f"{variant.name} has no {prefix}"
    for kernel in record["kernels"]:
        assert kernel["spill_store_bytes"] + kernel["spill_load_bytes"] <= variant.expects["spills"]


def test_the_oldest_gpu_is_served_too(build_all):
    builds = build_all("sm_75")
    newer = {v.name: v.requires.arch for v in FAMILY.variants if v.requires.why_not((7, 5))}
    for name, (folder, record) in builds.items():
        if name in newer:
            assert (record["status"], f"needs {newer[name]}" in record["reason"]) == ("unsupported", True)
            continue
        assert record["status"] == "ok", record["reason"]
        assert "warning" not in (folder / "compile.log").read_text()
        assert sum(kernel["spill_store_bytes"] for kernel in record["kernels"]) == 0


def test_coalescing_changes_which_axis_is_read_and_no_other_instruction(builds):
    naive, coalesced = (instructions(builds[name][0]) for name in ("naive", "gmem_coalesced"))
    assert len(naive) == len(coalesced)
    differing = [pair for pair in zip(naive, coalesced, strict=True) if pair[0] != pair[1]]
    assert differing
    assert all("SR_TID." in one or "SR_CTAID." in one for one, _ in differing)
    assert all(one.translate(SWAPPED) == other for one, other in differing)


def test_products_per_shared_load_grow_along_the_ladder(builds):
    ladder = [kernels(builds, name)[0] for name in ("smem_tiled", "blocktile_1d", "blocktile_2d")]
    shares = [count(kernel, "FFMA") / count(kernel, "LDS") for kernel in ladder]
    assert shares == sorted(shares)
    assert shares[-1] > 10 * shares[0]


def test_wide_global_accesses_come_with_vectorized_and_not_by_unrolling(builds):
    (plain,) = kernels(builds, "blocktile_2d")
    assert count(plain, "LDG.E.128") == count(plain, "STG.E.128") == 0
    assert count(plain, "LDS.128") > 0


@pytest.mark.parametrize("name", ["vectorized", "warptile"])
def test_wide_instance_is_wide_and_the_other_is_not(builds, name):
    narrow, wide = sorted(kernels(builds, name), key=lambda kernel: count(kernel, "LDG.E.128"))
    assert count(narrow, "LDG.E.128") == count(narrow, "STG.E.128") == 0
    assert count(wide, "LDG.E.128.CONSTANT") > 0
    assert count(wide, "LDG.E") == count(wide, "LDG.E.128")
    assert count(wide, "STG.E") == count(wide, "STG.E.128")
    assert count(wide, "LDS") == count(wide, "LDS.128")


def test_warptile_fits_the_blocks_per_sm_that_it_asks_for(builds):
    p = FAMILY.variant("warptile").parameters
    threads = p["BM"] // p["WM"] * (p["BN"] // p["WN"]) * 32
    most = max(kernel["registers_per_thread"] for kernel in kernels(builds, "warptile"))
    assert -(-most // 8) * 8 * threads * p["BLOCKS_PER_SM"] <= REGISTERS_PER_SM


def test_baseline_needs_no_cublas_to_be_built_and_loaded(builds):
    folder, record = builds["cublas"]
    assert record["kernels"] == []
    library = ctypes.CDLL(str(folder / "kernel.so"))
    assert library.library_version() == 0 or library.library_version() >= 120000
    assert library.warplog_launch
