"""Building for chips that are not here: device code of the shipped kernels, with the options of a build."""

from collections.abc import Collection
from pathlib import Path

import pytest

from host_family import make_family
from sass_builds import compilers
from warplog.catalog.family import load_family
from warplog.measure.building import build, chips
from warplog.records import door
from warplog.records.build import GPUS, ChipBuild, Chips, CompiledLater, NeedsArch

SHIPPED = Path(__file__).parents[3] / "kernels"
PADDED_BYTES = 32 * 33 * 4
OLDEST, *_, NEWEST = GPUS


def built(family: str, names: Collection[str], arch: str, folder: Path) -> dict[str, ChipBuild]:
    """Compiles variants of a shipped family; returns the entries of the record."""
    loaded = load_family(SHIPPED / family / "family.yaml")
    parameters = {name: loaded.variant(name).parameters for name in names}
    path = folder / "record.json"
    made = chips.build_family(loaded, parameters, arch, compilers()[0], 1, path)
    assert door.read(path, Chips) == made
    return dict(made.variants)


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("family", "variant", "static_bytes", "arch"),
    [
        *(("reduction", "sequential", 1024, arch) for arch in GPUS),
        ("vector_add", "float4", 0, OLDEST),
        ("transpose", "padded", PADDED_BYTES, NEWEST),
    ],
)
def test_shipped_kernels_build_for_every_chip(
    tmp_path: Path, family: str, variant: str, static_bytes: int, arch: str
) -> None:
    made = built(family, [variant], arch, tmp_path)[variant]
    assert (made.status, made.target, made.error) == ("ok", arch, "")
    kernel = made.kernels[0]
    assert (kernel.static_shared_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes) == (
        static_bytes,
        0,
        0,
    )
    assert 8 <= kernel.registers_per_thread <= 64


@pytest.mark.nvcc
def test_without_host_code_kernels_have_the_resources_of_a_build(tmp_path: Path) -> None:
    family = load_family(SHIPPED / "transpose" / "family.yaml")
    nvcc, cuobjdump = compilers()
    whole = build.build_variant(
        family, family.variant("padded"), "sm_90", nvcc, cuobjdump, tmp_path / "whole"
    )
    device = built("transpose", ["padded"], "sm_90", tmp_path)["padded"]
    names = ("kernel", "registers_per_thread", "static_shared_bytes", "stack_bytes", "spill_store_bytes")
    assert [[getattr(kernel, name) for name in names] for kernel in device.kernels] == [
        [getattr(kernel, name) for name in names] for kernel in whole.kernels
    ]
    assert device.source_sha256 == whole.source_sha256


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_120"])
def test_what_needs_another_chip_or_compiles_when_it_runs_is_unsupported_for_that_reason(
    tmp_path: Path, arch: str
) -> None:
    hopper = built("bf16_gemm", ["wgmma_tma"], arch, tmp_path / "bf16_gemm")["wgmma_tma"]
    assert (hopper.status, hopper.obstacle, hopper.target) == (
        "unsupported",
        NeedsArch(requires="sm_90a"),
        "",
    )
    later = built("softmax", ["triton"], arch, tmp_path / "softmax")["triton"]
    assert (later.status, later.obstacle) == ("unsupported", CompiledLater(language="triton"))


@pytest.mark.nvcc
def test_a_build_of_equal_inputs_is_kept_and_a_failed_one_is_tried_again(tmp_path: Path) -> None:
    family = make_family(tmp_path / "kernels")
    source = family.variant("right").file
    head = (
        "#include <cuda_runtime.h>\n__global__ void scale(const float* x, float* y, int N, float factor) {\n"
    )
    launch = "int launch(const float* x, float* y, int N, float factor, cudaStream_t stream) { return 0; }\n"
    source.write_text(f"{head}y[0] = missing * x[0]; }}\n{launch}")
    parameters, nvcc, path = {"right": {}}, compilers()[0], tmp_path / "record.json"

    def made(version: int = 1) -> ChipBuild:
        return chips.build_family(family, parameters, "sm_120", nvcc, version, path).variants["right"]

    failed = made()
    assert (failed.status, failed.kernels) == ("compile_error", ())
    assert 'identifier "missing" is undefined' in failed.error
    door.write(path, Chips(arch="sm_120", family=family.name, nvcc="", variants={"right": failed}))
    assert made().seconds != failed.seconds
    source.write_text(f"{head}y[0] = factor * x[0]; }}\n{launch}")
    first = made()
    assert (first.status, made().seconds) == ("ok", first.seconds)
    assert made(version=2).inputs_sha256 != first.inputs_sha256
