"""The table `chips`: what each variant needs on architectures that it was compiled for, and how many blocks fit there.

The kernel, its block size and its dynamic shared memory are those of the captured launch, from the tables of the
campaign; where family.yaml states more or less dynamic shared memory for another chip, that is added. What neither says
stays unknown.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warplog.catalog.family import Variant
from warplog.core.columns import Row, number, text
from warplog.metrics.kernels import of_name
from warplog.metrics.occupancy import LIMITS, SmLimits, theoretical
from warplog.records.build import (
    GPUS,
    ChipBuild,
    ChipKernel,
    Chips,
    CompiledAlready,
    CompiledLater,
    NeedsArch,
)
from warplog.tables.conclusions import Chip
from warplog.tables.files import as_rows

if TYPE_CHECKING:
    import pandas as pd

_FEATURES = {
    "wgmma": ("HGMMA", "IGMMA", "QGMMA"),
    "setmaxnreg": ("USETMAXREG",),
    "tma": ("UTMA",),
    "bulk_copy": ("UBLKCP",),
    "clusters": ("UCGABAR",),
}
_LAUNCHED = ("block_threads", "shared_bytes_per_block", "static_shared_bytes")


@dataclass(frozen=True)
class _Launch:
    """How the campaign launched the longest kernel of a variant; -1 for what it does not say.

    Attributes:
        kernel: its name as ncu or nsys prints it; "" without a capture.
        opcodes: those of the campaign's build.
    """

    kernel: str
    block_threads: int
    dynamic_shared_bytes: int
    opcodes: frozenset[str]


def rows(
    records: Iterable[Chips],
    variants: "pd.DataFrame",
    metrics: "pd.DataFrame",
    capability: tuple[int, int],
    entries: Mapping[tuple[str, str], Variant],
) -> list[Chip]:
    """Returns the rows of the variants whose source is that of the tables, in the order of `variants`.

    Args:
        records: the builds, of any architectures and families.
        variants, metrics: tables of the campaign.
        capability: compute capability of the campaign's GPU.
        entries: the variants by family and name, for what they state of their dynamic shared memory.
    """
    own = LIMITS.get(capability)
    wanted = metrics["metric"].isin(_LAUNCHED) | metrics["metric"].str.startswith("sass_")
    by_variant: dict[tuple[str, str], list[Row]] = {}
    for row in as_rows(metrics[wanted & metrics["value"].notna()]):
        by_variant.setdefault((str(row["family"]), str(row["variant"])), []).append(row)
    made: dict[str, list[Chips]] = {}
    for record in records:
        made.setdefault(record.family, []).append(record)
    chips = []
    for row in as_rows(variants):
        family, name = str(row["family"]), str(row["variant"])
        launch = _launch(row, by_variant.get((family, name), ()), own)
        builds = [
            (record, build)
            for record in made.get(family, ())
            if (build := record.variants.get(name)) and build.source_sha256 == row["source_sha256"]
        ]
        is_own = any(of_name(build.kernels, launch.kernel) for _, build in builds)
        for record, build in builds:
            chip = Chip(family, name, record.arch, GPUS.get(record.arch, ""), build.status, "")
            there = _there(launch, entries.get((family, name)), own, LIMITS[_capability(record.arch)])
            chip = _row(chip, build, there, is_own)
            chips.append(replace(chip, nvcc=record.nvcc, source_sha256=build.source_sha256))
    return chips


def _launch(variant: Row, metrics: Sequence[Row], sm: SmLimits | None) -> _Launch:
    """Returns how a variant was launched: at its headline case if that was captured, else at the last one that was."""
    opcodes = frozenset(str(row["metric"])[5:] for row in metrics if str(row["metric"]).startswith("sass_"))
    kernel = text(variant, "kernel")
    own = [row for row in metrics if row["tool"] == "ncu" and kernel and row["kernel"] == kernel]
    cases = [str(row["case"]) for row in own]
    case = headline if (headline := text(variant, "headline_case")) in cases else (cases or [""])[-1]
    values = {str(row["metric"]): int(number(row, "value")) for row in own if row["case"] == case}
    dynamic = -1
    if sm is not None and {"shared_bytes_per_block", "static_shared_bytes"} <= values.keys():
        dynamic = values["shared_bytes_per_block"] - sm.reserved_shared_bytes
        dynamic -= values["static_shared_bytes"]
    return _Launch(kernel, values.get("block_threads", -1), max(dynamic, -1), opcodes)


def _there(launch: _Launch, entry: Variant | None, own: SmLimits | None, sm: SmLimits) -> _Launch:
    """Returns the launch with the dynamic shared memory that it requests on other SMs than those of the campaign."""
    if launch.dynamic_shared_bytes < 0 or own is None or entry is None:
        return launch
    more = entry.dynamic_shared_bytes(sm) - entry.dynamic_shared_bytes(own)
    return replace(launch, dynamic_shared_bytes=launch.dynamic_shared_bytes + more)


def _capability(arch: str) -> tuple[int, int]:
    return divmod(int(arch.removeprefix("sm_")), 10)


def _row(chip: Chip, build: ChipBuild, launch: _Launch, is_own: bool) -> Chip:
    """Returns the row of a build; `is_own` says whether the launched kernel is in that of any architecture."""
    chip = replace(chip, error=build.error, target=build.target)
    match build.obstacle:
        case NeedsArch(requires=requires):
            used = ",".join(_used(launch.opcodes))
            return replace(chip, reason="needs_arch", reason_of=requires, features=used)
        case CompiledLater(language=language):
            return replace(chip, reason="compiled_later", reason_of=language)
        case CompiledAlready():
            return replace(chip, reason="compiled_already")
    if build.status != "ok":
        return chip
    kernels = of_name(build.kernels, launch.kernel)
    if launch.kernel and is_own and not kernels:
        return replace(chip, reason="other_kernel")
    if launch.kernel and not kernels:
        return replace(chip, status="unsupported", reason="library_kernels")
    if len(kernels) != 1:
        return replace(chip, reason="not_found" if kernels else "no_kernels")
    return _with_blocks(_with_kernel(chip, kernels[0]), launch)


def _used(opcodes: Iterable[str]) -> Iterator[str]:
    for feature, prefixes in _FEATURES.items():
        if any(opcode.startswith(prefixes) for opcode in opcodes):
            yield feature


def _with_kernel(chip: Chip, kernel: ChipKernel) -> Chip:
    stored, loaded = kernel.spill_store_bytes, kernel.spill_load_bytes
    return replace(
        chip,
        kernel=kernel.kernel,
        registers_per_thread=kernel.registers_per_thread,
        spill_store_bytes=-1 if stored is None else stored,
        spill_load_bytes=-1 if loaded is None else loaded,
        static_shared_bytes=kernel.static_shared_bytes,
    )


def _with_blocks(chip: Chip, launch: _Launch) -> Chip:
    """Returns the row with the launch and its occupancy, or why it has none."""
    capability = _capability(chip.arch)
    limit = LIMITS[capability].shared_bytes_per_block
    launched = replace(
        chip,
        shared_limit_bytes=limit,
        block_threads=launch.block_threads,
        dynamic_shared_bytes=launch.dynamic_shared_bytes,
    )
    if launch.block_threads < 0 or launch.dynamic_shared_bytes < 0:
        return replace(launched, reason="no_launch")
    shared = chip.static_shared_bytes + launch.dynamic_shared_bytes
    fits = theoretical(chip.registers_per_thread, launch.block_threads, shared, capability)
    if fits.blocks_per_sm == 0:
        return replace(
            launched, status="unsupported", reason="shared_memory" if shared > limit else "registers"
        )
    return replace(
        launched,
        blocks_per_sm=fits.blocks_per_sm,
        occupancy_pct=fits.occupancy_pct,
        limiters=",".join(fits.limiters),
    )


def summary(chips: Iterable[Chip]) -> list[str]:
    """Returns a line per architecture: how many variants can be built and launched there, and why not the others."""
    lines = []
    by_arch: dict[str, list[Chip]] = {}
    for row in chips:
        by_arch.setdefault(row.arch, []).append(row)
    for arch, own in sorted(by_arch.items(), key=lambda item: int(item[0].removeprefix("sm_"))):
        others = Counter(row.reason or row.status for row in own if row.status != "ok")
        counts = [f"{count} {code.replace('_', ' ')}" for code, count in others.most_common()]
        fit = len(own) - others.total()
        lines.append(
            f"{arch} ({GPUS.get(arch, '')}): {', '.join([f'{fit} of {len(own)} variants ok', *counts])}"
        )
    return lines
