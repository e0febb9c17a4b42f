"""What a campaign can do on this GPU, stage by stage, against Hopper, on which warplog has run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from warplog.catalog import winners
from warplog.catalog.family import Family, Variant
from warplog.cli.checkup.finding import Finding
from warplog.core.columns import number
from warplog.core.errors import WarplogError
from warplog.machine.device import Peaks
from warplog.metrics import METRICS
from warplog.metrics.counters import alternatives, is_collected, supports
from warplog.metrics.occupancy import LIMITS, REGISTERS_PER_SM
from warplog.records.campaign import Gpu
from warplog.tables.files import as_rows, read_table

HOPPER = (9, 0)
Name = Literal["compile", "check", "time", "counters", "trace", "sanitize", "timeline", "accesses", "tune"]
Key = tuple[str, str]  # family and variant
_KIB = 1024
# The findings that a stage depends on.
_NEEDS: Mapping[Name, tuple[str, ...]] = {
    "compile": ("nvcc", "host compiler"),
    "check": ("nvcc", "host compiler", "driver"),
    "time": ("nvcc", "host compiler", "driver"),
    "counters": ("ncu", "GPU counters"),
    "trace": ("nsys",),
    "sanitize": ("compute-sanitizer",),
    "timeline": ("nvcc", "host compiler", "driver"),
    "accesses": ("nvcc", "host compiler", "driver", "tracer"),
    "tune": ("nvcc", "host compiler", "driver"),
}


@dataclass(frozen=True)
class Stage:
    """What a stage can do on a GPU.

    Attributes:
        state: run (warplog has run on this architecture), not_run, or blocked by what is missing on this machine.
        variants: how many it applies to.
        unsupported: how many of them the GPU cannot run, by the architecture that they require.
        families: those of which no variant can run.
        metrics: those that Hopper has, and for which this GPU has no counter.
        too_large: "family/variant" of those whose blocks have more shared memory, as recorded on Hopper.
        searched: how many variants have parameters that a search found on this model.
        blocked_by: topics of the findings that say what is missing.
    """

    name: Name
    state: Literal["run", "not_run", "blocked"]
    variants: int
    unsupported: Mapping[str, int]
    families: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    too_large: tuple[str, ...] = ()
    searched: int = 0
    blocked_by: tuple[str, ...] = ()


def examine(
    gpu: Gpu,
    families: Mapping[str, Family],
    findings: Iterable[Finding],
    shared: Mapping[Key, float] | None = None,
) -> list[Stage]:
    """Returns what each stage can do.

    Args:
        gpu: the GPU.
        families: those of the project.
        found: the findings on tools and driver.
        shared: bytes of shared memory of a variant's block, from `recorded_shared`.
    """
    bad = {finding.topic for finding in findings if finding.status in ("warn", "fail")}
    capability = gpu.compute_capability
    everything = [variant for family in families.values() for variant in family.variants]
    applies: Mapping[Name, Sequence[Variant]] = {
        "timeline": [v for family in families.values() for v in family.variants if v.name in family.timeline],
        "tune": [v for v in everything if v.search],
    }
    searched = sum(
        winners.winner_file(family, variant.name, gpu.slug).is_file()
        for family in families.values()
        for variant in family.variants
        if variant.search
    )
    stages = []
    for name, needs in _NEEDS.items():
        variants = applies.get(name, everything)
        blocked = tuple(topic for topic in needs if topic in bad)
        refused = Counter(v.requires.arch for v in variants if v.requires.why_not(capability))
        stages.append(
            Stage(
                name=name,
                state="blocked" if blocked else "run" if capability == HOPPER else "not_run",
                variants=len(variants),
                unsupported=dict(refused.most_common()),
                families=tuple(_without_variant(families, capability)) if name == "compile" else (),
                metrics=without_counter(capability) if name == "counters" else (),
                too_large=_too_large(gpu, families, shared or {}) if name == "check" else (),
                searched=searched if name == "tune" else 0,
                blocked_by=blocked,
            )
        )
    return stages


def _without_variant(families: Mapping[str, Family], capability: tuple[int, int]) -> Iterator[str]:
    for family in families.values():
        if all(variant.requires.why_not(capability) for variant in family.variants):
            yield family.name


def recorded_shared(folder: Path) -> Mapping[Key, float]:
    """Returns the shared memory of the largest block of each variant in recorded tables, in bytes.

    Without variants whose kernels are a library's, which chooses others on another GPU. Nothing if there are no tables.
    """
    try:
        metrics, libraries = read_table(folder, "metrics"), read_table(folder, "library_kernels")
    except WarplogError:
        return {}
    others = set(zip(libraries["family"], libraries["variant"], strict=True))
    most: dict[Key, float] = {}
    for row in as_rows(metrics[metrics["metric"] == "shared_bytes_per_block"]):
        key = str(row["family"]), str(row["variant"])
        if key not in others:
            most[key] = max(most.get(key, 0.0), number(row, "value"))
    return most


def _too_large(gpu: Gpu, families: Mapping[str, Family], shared: Mapping[Key, float]) -> tuple[str, ...]:
    """A variant with a search has other parameters on another GPU, and is left out."""
    limits = LIMITS.get(gpu.compute_capability)
    if limits is None:
        return ()
    most = limits.shared_bytes_per_block + limits.reserved_shared_bytes
    return tuple(
        f"{family.name}/{variant.name}"
        for family in families.values()
        for variant in family.variants
        if not variant.search
        and not variant.requires.why_not(gpu.compute_capability)
        and shared.get((family.name, variant.name), 0) > most
    )


def without_counter(capability: tuple[int, int]) -> tuple[str, ...]:
    """Returns the metrics that campaigns collect on Hopper, and for which a GPU has no counter."""
    return tuple(
        metric.name
        for metric in METRICS.values()
        if is_collected(metric)
        and _countable(metric.name, HOPPER)
        and not _countable(metric.name, capability)
    )


def _countable(name: str, capability: tuple[int, int]) -> bool:
    required = (slot for slot in METRICS[name].counters if not slot.endswith(("?", "~")))
    return all(
        _countable(slot[1:], capability)
        if slot.startswith("@")
        else any(supports(counter, capability) for counter in alternatives(slot))
        for slot in required
    )


def findings(stages: Iterable[Stage], gpu: Gpu) -> list[Finding]:
    """Returns a line per stage."""
    return [Finding(f"stage {stage.name}", "info", _words(stage, gpu)) for stage in stages]


def _words(stage: Stage, gpu: Gpu) -> str:
    supported = stage.variants - sum(stage.unsupported.values())
    parts = [
        {
            "run": "works: warplog has run on H100 and H200",
            "not_run": f"expected to work as on Hopper; warplog has not run on {gpu.arch}",
            "blocked": f"not here: see {', '.join(stage.blocked_by)}",
        }[stage.state]
    ]
    if stage.name == "compile" and stage.state != "blocked":
        parts = [f"{supported} of {stage.variants} variants support {gpu.arch}"]
    if stage.unsupported and stage.name in ("compile", "timeline", "tune"):
        counts = ", ".join(f"{count} require {arch}" for arch, count in stage.unsupported.items())
        parts.append(f"unsupported: {counts}")
    if stage.families:
        parts.append(f"no variant of {', '.join(stage.families)}")
    if stage.too_large:
        parts.append(
            f"on the H200, blocks of {', '.join(stage.too_large)} had more shared memory than fits here"
        )
    if stage.name == "tune":
        parts.append(f"searched on {gpu.slug}: {stage.searched} of {stage.variants} variants")
    if stage.metrics:
        parts.append(f"no counter on {gpu.arch} for {', '.join(stage.metrics)}")
    return "; ".join(parts)


def limits(gpu: Gpu) -> list[Finding]:
    """Reports what an SM of this compute capability holds, as the occupancy is computed from it."""
    of = LIMITS.get(gpu.compute_capability)
    if of is None:
        return [Finding("SM limits", "info", f"unknown for {gpu.arch}: no computed occupancy")]
    clusters = f"clusters of up to {of.cluster_blocks} blocks" if of.cluster_blocks else "no clusters"
    text = (
        f"{of.warps} warps, {of.blocks} blocks, {REGISTERS_PER_SM} registers, {of.shared_bytes // _KIB} KiB shared"
        f" memory, of which a block gets up to {of.shared_bytes_per_block // _KIB} KiB; {clusters}"
    )
    return [Finding("SM limits", "info", text)]


def peaks(of_gpu: Peaks) -> Finding:
    """Reports the peaks that figures and pages compare with, at which clock they hold, and their source."""
    rates = [
        _rate("FP32", of_gpu.fp32_tflops_peak, of_gpu.fp32_peak_mhz),
        _rate("BF16", of_gpu.bf16_tflops_peak, of_gpu.tensor_peak_mhz),
    ]
    if of_gpu.dram_gbytes_per_s_peak:
        rates.append(f"device memory {of_gpu.dram_gbytes_per_s_peak:g} GB/s")
    text = ", ".join(filter(None, rates)) or "unknown"
    measured = "measured" if "measured" in of_gpu.origins else "not measured"
    return Finding("peaks", "info", f"{text} ({of_gpu.source}, {measured})")


def _rate(name: str, tflops: float | None, mhz: int | None) -> str:
    if not tflops:
        return ""
    return f"{name} {tflops:.4g} TFLOP/s" + (f" at {mhz} MHz" if mhz else "")
