"""Stage build of a variant that is a Python module: its first launch on the GPU compiles it.

Nothing of the module is imported here: a worker does that, in the same way as for every later launch. The record holds
the resources of the kernels that the launch used, from the files that the compilers of Triton and CuPy leave.
"""

import json
import math
import shutil
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from warplog.catalog import languages
from warplog.catalog.contract import Case
from warplog.catalog.family import Family, Variant
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.hashing import sha256_of
from warplog.core.process import explain_exit, minimal_env, run
from warplog.machine import device, packages
from warplog.machine.toolchain import Tool
from warplog.measure.building.build import capability_of, kernel_record, record_head
from warplog.measure.building.quoting import Places
from warplog.measure.results import Compiled, LaunchFailed
from warplog.measure.supervise import discard, run_cases
from warplog.measure.task import CaseRun, CompileWork, Task
from warplog.parsers import sass, usage
from warplog.records import door
from warplog.records.build import Build, KernelCode
from warplog.records.campaign import Gpu

_COMPILE_S = 600.0
_DUMP_S = 120.0
# The headline case decides what Triton tunes for, unless its arrays take too long to fill on the host.
_MOST_ELEMENTS = 1 << 26
# CuPy puts a hash in front of the code.
_ELF, _MOST_HEADER = b"\x7fELF", 256
_ELF_HEADER = struct.Struct("<32xQQ6xHHHH2x")  # where both tables of a 64-bit ELF lie, and their sizes
_MOST_MISSING = 16
_CACHES = {
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "CUPY_CACHE_DIR": "cupy",
}


@dataclass(frozen=True)
class _Cubin:
    """A compiled kernel or module, with its PTX and what Triton says about it, if known."""

    code: bytes
    ptx: str = ""
    facts: Mapping[str, object] | None = None


def build_variant(
    family: Family,
    variant: Variant,
    arch: str,
    cuobjdump: Tool,
    folder: Path,
    attempt: int = 1,
    gpu: Gpu | None = None,
) -> Build:
    """Compiles one Python variant by launching it, and returns its record, which is also written to `folder`.

    kernel.so stays empty: later stages import the module itself. Without a GPU or a package that the language requires,
    the record has the status 'missing', and if a kernel does not compile, 'compile_error', both with the reason.

    Args:
        family: the variant's family; its cases define the launch.
        variant: the module.
        arch: architecture of the GPU, such as `sm_90`.
        cuobjdump: reads the compiled kernels.
        folder: output folder for kernel.so, kernel.sass, kernel.ptx and record.json.
        attempt: number of this build, for the record: see `warplog.plan.parameters.attempt`.
        gpu: the GPU of this machine; None if it has none.

    Raises:
        WarplogError: cuobjdump is missing or fails, the disk is full, or a source changed meanwhile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    versions = {module: packages.version(module) for module in languages.MODULES[variant.language]}
    head = record_head(family, variant, arch, {"cuobjdump": cuobjdump.version or "", **versions}, attempt)
    for name in ("kernel.so", "kernel.sass"):
        write_text(folder / name, "")
    if unsupported := variant.requires.why_not(capability_of(arch)):
        record = replace(head, status="unsupported", reason=unsupported)
    elif missing := why_not_here(variant, arch, gpu, versions):
        record = replace(head, status="missing", reason=missing)
    else:
        assert gpu is not None
        try:
            kernels = _compile(family, variant, gpu, cuobjdump, folder)
            library, sources = sha256_of(head.source_sha256, versions), _sources(variant)
            record = replace(
                head, status="ok", library_sha256=library, dependencies=sources, kernels=tuple(kernels)
            )
        except LaunchFailed as failed:
            record = replace(head, status=failed.status, reason=failed.reason)
    if variant.fingerprint() != head.source_sha256:
        raise WarplogError(
            f"{variant.file}: it or a module that it imports changed while it was built; run again"
        )
    record = replace(record, seconds=round(time.monotonic() - begin, 3))
    door.write(folder / "record.json", record)
    return record


def why_not_here(variant: Variant, arch: str, gpu: Gpu | None, versions: Mapping[str, str]) -> str:
    """Returns why a Python variant cannot be compiled on this machine, with the remedy; '' if it can.

    Args:
        variant: the variant.
        arch: the architecture to compile for.
        gpu: the GPU of this machine; None if it has none.
        versions: the versions of the modules that the language requires, '' if missing.
    """
    language, reasons = variant.language, []
    if gpu is None:
        reasons.append(
            f"language {language} is compiled by its first launch, which requires a GPU: {device.why_not()}"
        )
    elif gpu.arch != arch:
        reasons.append(f"language {language} compiles for this GPU's {gpu.arch} only, not for {arch}")
    if absent := languages.missing(language, versions):
        many, install = "s" if len(absent) > 1 else "", " ".join(map(packages.distribution, absent))
        reasons.append(
            f"language {language} requires the package{many} {' and '.join(absent)}: uv pip install {install}"
        )
    return "; ".join(reasons)


def _sources(variant: Variant) -> dict[str, str]:
    """Returns the hashes of the module and the project's modules that it imports, by short path."""
    places = Places(Path.cwd(), variant.file.absolute().parents[1], Path.cwd(), Path("/usr/local/cuda"))
    return {places.name(file): digest for file, digest in variant.source_hashes().items()}


def _compile(family: Family, variant: Variant, gpu: Gpu, cuobjdump: Tool, folder: Path) -> list[KernelCode]:
    """Launches the variant in a worker; returns the kernels that the launch used.

    Raises:
        LaunchFailed: A kernel does not compile, or the worker fails.
    """
    work = folder / ".compiling"
    shutil.rmtree(work, ignore_errors=True)
    caches = {name: str((work / place).absolute()) for name, place in _CACHES.items()}
    task = Task(
        work=CompileWork(),
        backend="driver",
        family_file=str(family.file),
        libraries={variant.name: str(variant.file)},
        library_sha256=variant.fingerprint(),
        runs=(CaseRun(variant=variant.name, case=_case(family, variant).name),),
        folder=str(work),
        environment={**gpu.environment, **caches},
        gpu_lock=gpu.uuid,
        memory={variant.name: {}},
    )
    try:
        (result,), _ = run_cases(task, _COMPILE_S, lambda _: None)
        if result.status == "compile_error":
            raise LaunchFailed(result.status, result.reason)
        launched = result.found.launched if isinstance(result.found, Compiled) else ()
        return _kernels(list(_cubins(work, launched)), gpu.arch, cuobjdump, folder)
    except WarplogError as error:
        raise LaunchFailed("error", str(error)) from None
    finally:
        discard(work)
        shutil.rmtree(work, ignore_errors=True)


def _case(family: Family, variant: Variant) -> Case:
    """Returns the headline case if the variant supports it and it is not too large, else the largest that is not."""

    def elements(case: Case) -> int:
        return sum(math.prod(shape) for shape in family.shapes(case))

    headline = family.cases[family.headline_case]
    others = (*family.cases.values(), *family.check_cases.values())
    fitting = [case for case in (headline, *others) if not variant.requires.why_not_case(case)] or [headline]
    small = sorted((c for c in fitting if elements(c) <= _MOST_ELEMENTS), key=elements, reverse=True)
    if headline in small:
        return headline
    return small[0] if small else min(fitting, key=elements)


def _cubins(work: Path, launched: Sequence[Sequence[str]]) -> Iterator[_Cubin]:
    """Yields what Triton launched, or all that it compiled if that is unknown, and all that CuPy compiled."""
    caches = (work / _CACHES[name] for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"))
    cubins = (path for cache in caches for path in cache.rglob("*.cubin"))
    compiled = (sorted(map(str, path.parent.glob(f"{path.stem}.*"))) for path in cubins)
    for files in launched or sorted(compiled):
        by_suffix = {Path(file).suffix: Path(file) for file in files}
        if ".cubin" in by_suffix:
            ptx, facts = by_suffix.get(".ptx"), by_suffix.get(".json")
            yield _Cubin(
                by_suffix[".cubin"].read_bytes(),
                ptx.read_text(errors="replace") if ptx else "",
                json.loads(facts.read_text()) if facts else None,
            )
    for path in sorted((work / _CACHES["CUPY_CACHE_DIR"]).rglob("*")):
        code = path.read_bytes() if path.is_file() else b""
        if (start := code.find(_ELF, 0, _MOST_HEADER)) >= 0:
            yield _Cubin(_whole(code[start:]))


def _whole(elf: bytes) -> bytes:
    """Returns a cubin with the zeros that are missing at its end: CuPy 14 leaves out the last byte of what NVRTC makes.

    The driver loads such a cubin, but cuobjdump finds no device code in it.
    """
    if len(elf) < _ELF_HEADER.size:
        return elf
    programs, sections, program_size, program_count, section_size, section_count = _ELF_HEADER.unpack_from(
        elf
    )
    end = max(programs + program_size * program_count, sections + section_size * section_count)
    return elf.ljust(min(end, len(elf) + _MOST_MISSING), b"\0")


def _kernels(cubins: Sequence[_Cubin], arch: str, cuobjdump: Tool, folder: Path) -> list[KernelCode]:
    """Returns the resources and opcode counts of all kernels, and writes kernel.sass and kernel.ptx."""
    kernels, dumps = [], []
    file = folder / ".compiling" / "kernel.cubin"
    for cubin in cubins:
        file.write_bytes(cubin.code)
        dump = _dumped(cuobjdump, "-sass", file)
        opcodes = sass.parse(dump)
        dumps.append(dump)
        for kernel in usage.parse(_dumped(cuobjdump, "-res-usage", file), arch):
            counts: Mapping[str, int] = opcodes.get(kernel.mangled, {})
            shared = (cubin.facts or {}).get("shared")
            code = kernel_record(usage.with_spills(kernel, counts), counts)
            kernels.append(replace(code, dynamic_shared_bytes=shared if isinstance(shared, int) else None))
    write_text(folder / "kernel.sass", "".join(dumps))
    write_text(folder / "kernel.ptx", "".join(cubin.ptx for cubin in cubins))
    return kernels


def _dumped(cuobjdump: Tool, option: str, file: Path) -> str:
    if cuobjdump.path is None:
        raise WarplogError(f"cuobjdump: not found; {cuobjdump.remedy}")
    log = file.with_suffix(".txt")
    done = run([str(cuobjdump.path), option, str(file)], timeout_s=_DUMP_S, env=minimal_env(), log=log)
    if not done.ok:
        raise WarplogError(
            f"cuobjdump {option} failed ({explain_exit(done)}): {done.output_tail[-300:].strip()}"
        )
    return log.read_text(errors="replace")
