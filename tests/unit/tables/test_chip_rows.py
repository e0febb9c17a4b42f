"""The table `chips`: why a variant cannot be built or launched on a chip, and how many blocks fit there."""

import pytest
from msgspec.structs import replace

from shipped_families import FAMILIES
from warplog.catalog.contract import Requires
from warplog.core.columns import METRICS, VARIANTS
from warplog.records.build import ChipBuild, ChipKernel, Chips, NeedsArch, Obstacle
from warplog.tables import chips
from warplog.tables.conclusions import Chip
from warplog.tables.files import as_frame

SOURCE = "a" * 64
KERNEL = "tile<128>(float const*)"
HOPPER = (9, 0)
RESERVED = 1024
SHIPPED = FAMILIES["vector_add"].variants[0]


def kernel(registers: int = 128, static_bytes: int = 0, name: str = KERNEL) -> ChipKernel:
    return ChipKernel(
        kernel=name,
        registers_per_thread=registers,
        static_shared_bytes=static_bytes,
        stack_bytes=0,
        spill_store_bytes=16,
        spill_load_bytes=8,
    )


def row(
    arch: str,
    *kernels: ChipKernel,
    obstacle: Obstacle | None = None,
    launched: str = "void tile<(int)128>(const float *)",
    threads: int | None = 256,
    dynamic_bytes: int = 0,
    source: str = SOURCE,
    stated: str | int = 0,
) -> Chip | None:
    """Returns the row of a variant whose launch on a Hopper GPU was captured; None if it has none."""
    build = ChipBuild(
        status="unsupported" if obstacle else "ok",
        obstacle=obstacle,
        source_sha256=source,
        inputs_sha256="",
        kernels=kernels,
    )
    key = {"family": "gemm", "variant": "tiled"}
    variant = {**key, "kernel": launched, "headline_case": "4096", "source_sha256": SOURCE}
    launch = {"block_threads": threads, "static_shared_bytes": 0.0}
    launch |= {"shared_bytes_per_block": RESERVED + dynamic_bytes} if threads else {}
    at_headline = [{**key, "case": "4096", "kernel": launched, "launch": 0, "tool": "ncu"}]
    at_headline = [{**at_headline[0], "metric": n, "value": v} for n, v in launch.items() if threads]
    elsewhere = [{**r, "case": "64", "value": 32.0} for r in at_headline]
    code = [
        {**key, "kernel": KERNEL, "metric": f"sass_{name}", "value": 1.0, "tool": "cuobjdump"}
        for name in ("HGMMA.64x128x16.F32.BF16", "UTMALDG.2D", "FFMA")
    ]
    found = chips.rows(
        [Chips(arch=arch, family="gemm", nvcc="13.0.88", variants={"tiled": build})],
        as_frame([variant], VARIANTS, "variants"),
        as_frame([*elsewhere, *at_headline, *code], METRICS, "metrics"),
        HOPPER,
        {("gemm", "tiled"): replace(SHIPPED, requires=Requires(dynamic_shared_bytes=stated))},
    )
    return found[0] if found else None


def test_blocks_per_sm_follow_from_the_registers_there_and_the_launch_that_was_captured() -> None:
    made = row("sm_120", kernel())
    assert made
    assert (made.status, made.reason, made.gpus) == ("ok", "", "RTX 5090")
    assert (made.block_threads, made.dynamic_shared_bytes) == (256, 0), "those of the headline case"
    assert (made.blocks_per_sm, made.limiters) == (2, "registers")
    assert made.occupancy_pct == pytest.approx(100 * 16 / 48)
    assert (made.registers_per_thread, made.spill_store_bytes, made.spill_load_bytes) == (128, 16, 8)


@pytest.mark.parametrize(
    ("arch", "limit_kib", "blocks"),
    [("sm_80", 163, 1), ("sm_89", 99, 0), ("sm_90", 227, 2), ("sm_120", 99, 0)],
)
def test_a_block_that_needs_more_shared_memory_than_the_chip_allows_cannot_be_launched(
    arch: str, limit_kib: int, blocks: int
) -> None:
    made = row(arch, kernel(64, 4096), dynamic_bytes=96 * 1024)
    assert made
    assert made.shared_limit_bytes == limit_kib * 1024
    expected = ("ok", "", blocks) if blocks else ("unsupported", "shared_memory", -1)
    assert (made.status, made.reason, made.blocks_per_sm) == expected
    assert (made.static_shared_bytes, made.dynamic_shared_bytes) == (4096, 96 * 1024)


@pytest.mark.parametrize(
    ("arch", "dynamic_kib", "blocks"),
    [("sm_80", 82, 1), ("sm_89", 50, 1), ("sm_90", 114, 1), ("sm_120", 50, 1)],
)
def test_a_launcher_that_asks_the_gpu_for_shared_memory_gets_less_of_it_on_a_smaller_chip(
    arch: str, dynamic_kib: int, blocks: int
) -> None:
    made = row(arch, kernel(64), dynamic_bytes=114 * 1024, stated="sm_shared_bytes // 2")
    assert made
    assert (made.status, made.blocks_per_sm, made.limiters) == ("ok", blocks, "shared_memory")
    assert made.dynamic_shared_bytes == dynamic_kib * 1024


def test_a_size_that_family_yaml_states_for_every_chip_is_that_of_the_launch() -> None:
    made = row("sm_89", kernel(64), dynamic_bytes=64 * 1024, stated=64 * 1024 + 100)
    assert made
    assert made.dynamic_shared_bytes == 64 * 1024, "without what a formula allows for alignment"


def test_a_block_that_needs_more_registers_than_an_sm_has_cannot_be_launched() -> None:
    made = row("sm_90", kernel(255), threads=1024)
    assert made
    assert (made.status, made.reason) == ("unsupported", "registers")


def test_a_variant_for_another_chip_names_it_and_what_it_uses_of_it() -> None:
    made = row("sm_100", obstacle=NeedsArch(requires="sm_90a"))
    assert made
    assert (made.status, made.reason, made.reason_of) == ("unsupported", "needs_arch", "sm_90a")
    assert made.features == "wgmma,tma"


@pytest.mark.parametrize(
    ("kernels", "launched", "status", "reason"),
    [
        ((kernel(),), "cutlass_gemm", "unsupported", "library_kernels"),
        ((), "", "ok", "no_kernels"),
        ((kernel(), kernel(name="other()")), "", "ok", "not_found"),
        ((kernel(), kernel(64)), KERNEL, "ok", "not_found"),
        ((kernel(),), "", "ok", "no_launch"),
    ],
)
def test_what_the_campaign_does_not_say_stays_unknown(
    kernels: tuple[ChipKernel, ...], launched: str, status: str, reason: str
) -> None:
    made = row("sm_90", *kernels, launched=launched, threads=None)
    assert made
    assert (made.status, made.reason, made.blocks_per_sm, made.block_threads) == (status, reason, -1, -1)


def test_a_kernel_that_only_other_architectures_have_is_not_one_of_a_library() -> None:
    builds = {arch: ChipBuild(status="ok", source_sha256=SOURCE, inputs_sha256="", kernels=(kernel(name=name),))
              for arch, name in (("sm_80", "other()"), ("sm_90", KERNEL))}  # fmt: skip
    variant = {"family": "gemm", "variant": "tiled", "kernel": KERNEL, "source_sha256": SOURCE}
    found = chips.rows(
        [
            Chips(arch=arch, family="gemm", nvcc="", variants={"tiled": build})
            for arch, build in builds.items()
        ],
        as_frame([variant], VARIANTS, "variants"),
        as_frame([], METRICS, "metrics").astype({"metric": "str"}),
        HOPPER,
        {},
    )
    assert [(made.arch, made.status, made.reason) for made in found] == [
        ("sm_80", "ok", "other_kernel"),
        ("sm_90", "ok", "no_launch"),
    ]


def test_builds_of_other_sources_are_left_out() -> None:
    assert row("sm_90", kernel(), source="b" * 64) is None


def test_the_summary_counts_by_chip_what_is_ok_and_why_the_others_are_not() -> None:
    rows = [
        row("sm_120", kernel()),
        row("sm_120", obstacle=NeedsArch(requires="sm_90a")),
        row("sm_80", kernel()),
    ]
    assert chips.summary(made for made in rows if made) == [
        "sm_80 (A100): 1 of 1 variants ok",
        "sm_120 (RTX 5090): 1 of 2 variants ok, 1 needs arch",
    ]
