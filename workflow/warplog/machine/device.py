"""The local GPU: its properties, peak rates, settings and processes, read without a CUDA context."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from warplog.machine.gpus import KnownGpu, KnownGpus, PeakOrigin
from warplog.machine.nvml import Card, NoGpuError, opened, visible
from warplog.records import door
from warplog.records.campaign import Gpu

# FP32 lanes per multiprocessor (CUDA C++ programming guide, arithmetic throughput): 64 for compute
# capability 7.5 and 8.0, 128 for the other supported ones.
_FP32_LANES = {(7, 5): 64, (8, 0): 64}
_MOST_FP32_LANES = 128
_LONGEST_SLUG = 48
# Gbit/s per PCIe lane and direction by generation, without encoding overhead (PCI Express base specification).
_PCIE_LANE_GBIT = {1: 2.0, 2: 4.0, 3: 8 * 128 / 130, 4: 16 * 128 / 130, 5: 32 * 128 / 130, 6: 64 * 242 / 256}


@dataclass(frozen=True)
class GpuProcess:
    """A process that uses the GPU; memory_bytes is None if the driver does not report it."""

    pid: int
    memory_bytes: int | None


@dataclass(frozen=True)
class Peaks:
    """Peak rates of a GPU, None if unknown.

    Attributes:
        fp32_peak_mhz, tensor_peak_mhz: SM clocks at which the peaks hold.
        source: where the numbers are from.
        origins: how those of FP32 and device memory were found, each PeakOrigin once.
    """

    arch: str
    sms: int
    fp32_tflops_peak: float | None
    bf16_tflops_peak: float | None
    dram_gbytes_per_s_peak: float | None
    l2_mib: float | None
    source: str
    pcie_gbytes_per_s_peak: float | None = None
    tf32_tflops_peak: float | None = None
    fp8_tflops_peak: float | None = None
    fp32_peak_mhz: int | None = None
    tensor_peak_mhz: int | None = None
    origins: tuple[PeakOrigin, ...] = ()


def detect() -> Gpu | None:
    """Returns the first GPU in CUDA_VISIBLE_DEVICES, or None if there is none; `why_not` gives the reason."""
    try:
        with opened() as card:
            return _describe(card)
    except NoGpuError:
        return None


def boards() -> list[Gpu]:
    """Returns the GPUs in CUDA_VISIBLE_DEVICES that respond, in its order; all of the machine if it is unset.

    A board that was lost does not respond and is left out.
    """
    by_uuid: dict[str, Gpu] = {}
    try:
        names = visible()
    except NoGpuError:
        return []
    for name in names:
        with suppress(NoGpuError), opened(name) as card:
            gpu = _describe(card)
            by_uuid[gpu.uuid] = gpu
    return [gpu for uuid, gpu in by_uuid.items() if uuid]


def why_not() -> str:
    """Returns in one phrase why detect() finds no GPU; "" if it finds one."""
    try:
        with opened():
            return ""
    except NoGpuError as reason:
        return str(reason)


def slug_of(name: str) -> str:
    """Converts a GPU's name into a name for folders and wildcards: 'NVIDIA GeForce RTX 4090' -> 'rtx-4090'.

    The result has only lower-case letters, digits and single hyphens, and 1 to 48 characters.
    """
    words = re.findall(r"[a-z0-9]+", name.lower())
    kept = [word for word in words if word not in ("nvidia", "geforce", "tesla")]
    return "-".join(kept)[:_LONGEST_SLUG].rstrip("-") or "gpu"


def gpu_files(project: Path) -> list[Path]:
    """Returns the files that list GPUs: gpus.yaml of the package, then the project's config/gpus.yaml if it exists."""
    own = project / "config" / "gpus.yaml"
    return [Path(__file__).with_name("gpus.yaml"), *([own] if own.is_file() else [])]


def known_gpus(project: Path) -> KnownGpus:
    """Returns the entries of all `gpu_files` by slug; an entry of the project replaces one of the package.

    Raises:
        WarplogError: A file is not valid.
    """
    files = (door.read_yaml(path, KnownGpus) for path in gpu_files(project))
    return {slug: entry for entries in files for slug, entry in entries.items()}


def peaks(gpu: Gpu, table: Mapping[str, KnownGpu]) -> Peaks:
    """Returns the peaks from the GPU's entry in `table` (gpus.yaml); missing ones are computed from the clocks.

    FP32: SMs x lanes x 2 (multiply and add) x maximum SM clock. Device memory: 2 (both clock edges) x maximum
    memory clock as NVML reports it x bus width; checked against the data sheets of T4, A100 and RTX 4090.
    PCIe: the link's rate in one direction. A MIG instance has its own slug, so the entry of its GPU does not apply.
    """
    entry = table.get(gpu.slug) or KnownGpu(arch=gpu.arch, sms=gpu.sms, source="")
    lanes = _FP32_LANES.get(gpu.compute_capability, _MOST_FP32_LANES)
    tflops = gpu.sms * lanes * 2 * gpu.max_sm_mhz * 1e-6 or None
    gbytes = 2 * gpu.max_memory_mhz * gpu.memory_bus_bits / 8 * 1e-3 or None
    listed = [bool(entry.fp32_tflops_peak), bool(entry.dram_gbytes_per_s_peak)]
    computed = "" if all(listed) else "computed from clocks and widths that the device reports"
    origins: list[PeakOrigin] = [entry.origin if is_listed else "device" for is_listed in listed]
    return Peaks(
        arch=entry.arch,
        sms=gpu.sms or entry.sms,
        fp32_tflops_peak=entry.fp32_tflops_peak or tflops,
        bf16_tflops_peak=entry.bf16_tflops_peak or None,
        dram_gbytes_per_s_peak=entry.dram_gbytes_per_s_peak or gbytes,
        pcie_gbytes_per_s_peak=_PCIE_LANE_GBIT.get(gpu.pcie_generation, 0.0) * gpu.pcie_lanes / 8 or None,
        l2_mib=entry.l2_mib or None,
        source="; ".join(filter(None, (entry.source, computed))),
        tf32_tflops_peak=entry.tf32_tflops_peak or None,
        fp8_tflops_peak=entry.fp8_tflops_peak or None,
        fp32_peak_mhz=entry.fp32_peak_mhz or (None if entry.fp32_tflops_peak else gpu.max_sm_mhz or None),
        tensor_peak_mhz=entry.tensor_peak_mhz or None,
        origins=tuple(dict.fromkeys(origins)),
    )


def processes(uuid: str | None = None) -> list[GpuProcess]:
    """Returns the processes with a context on the GPU, including this one; [] without a GPU.

    In a container the process ids may be those of the host.
    """
    try:
        with opened(uuid) as card:
            running = (card.ask("GetComputeRunningProcesses") or []) + (
                card.ask("GetGraphicsRunningProcesses") or []
            )
    except NoGpuError:
        return []
    memory = {entry.pid: entry.usedGpuMemory for entry in running}
    return [GpuProcess(pid, memory[pid]) for pid in sorted(memory)]


def settings(uuid: str | None = None) -> dict[str, str]:
    """Returns ECC, MIG, persistence and compute mode as text; settings that the GPU does not report are absent."""
    try:
        with opened(uuid) as card:
            ecc, mig = card.ask("GetEccMode"), card.ask("GetMigMode")
            persistence, compute = card.ask("GetPersistenceMode"), card.ask("GetComputeMode")
    except NoGpuError:
        return {}
    switches = {"ECC": ecc and ecc[0], "MIG": mig and mig[0], "persistence": persistence}
    reported = {name: "on" if value else "off" for name, value in switches.items() if value is not None}
    modes = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
    return reported | ({"compute mode": modes.get(compute, str(compute))} if compute is not None else {})


def _describe(card: Card) -> Gpu:
    name = card.ask_device("GetName") or card.ask("GetName") or "unknown GPU"
    capability = card.ask("GetCudaComputeCapability")
    major, minor = capability or (0, 0)
    memory = card.ask_device("GetMemoryInfo")
    limit_mw = card.ask("GetEnforcedPowerLimit")
    pci = card.ask("GetPciInfo")
    bus_id = getattr(pci, "busId", "")
    version = card.ask_system("GetCudaDriverVersion_v2") or card.ask_system("GetCudaDriverVersion") or 0
    return Gpu(
        slug=slug_of(name),
        name=name,
        uuid=card.ask_device("GetUUID") or card.ask("GetUUID") or "",
        compute_capability=(major, minor),
        arch=f"sm_{major}{minor}",
        sms=_sms(card, (major, minor)),
        memory_bytes=memory.total if memory else 0,
        driver=card.ask_system("GetDriverVersion") or "",
        cuda_driver=f"{version // 1000}.{version % 1000 // 10}" if version else "",
        max_sm_mhz=card.ask("GetMaxClockInfo", card.constant("NVML_CLOCK_SM")) or 0,
        power_limit_w=limit_mw / 1000 if limit_mw else None,
        pci_bus_id=bus_id.decode() if isinstance(bus_id, bytes) else str(bus_id),
        max_memory_mhz=card.ask("GetMaxClockInfo", card.constant("NVML_CLOCK_MEM")) or 0,
        memory_bus_bits=card.ask("GetMemoryBusWidth") or 0,
        pcie_generation=card.ask("GetMaxPcieLinkGeneration") or 0,
        pcie_lanes=card.ask("GetMaxPcieLinkWidth") or 0,
    )


def _sms(card: Card, capability: tuple[int, int]) -> int:
    if card.is_mig:
        attributes = card.ask_device("GetAttributes")
        return attributes.multiprocessorCount if attributes else 0
    return (card.ask("GetNumGpuCores") or 0) // _FP32_LANES.get(capability, _MOST_FP32_LANES)
