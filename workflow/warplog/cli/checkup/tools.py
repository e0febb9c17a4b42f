"""Checks compilers, disassemblers, profilers, CuPy and cuBLAS by running or loading each of them."""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from warplog.cli.checkup.finding import Finding
from warplog.core import process
from warplog.core.errors import WarplogError
from warplog.core.files import temporary_folder
from warplog.machine import toolchain, wheels
from warplog.machine.toolchain import Tool
from warplog.measure.building.tracer import build_tracer
from warplog.records.campaign import Gpu

_DEFAULT_ARCH = "sm_90"
_TRY_S = 120.0
_KERNEL = """
__global__ void nothing() {}
extern "C" int launch(cudaStream_t stream) {
    nothing<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}
"""

# What the tracer says after the driver had the occasion to load it; the last line of output is the reason.
_TRACE = """\
import ctypes, sys
ctypes.CDLL("libcuda.so.1").cuInit(0)
tracer = ctypes.CDLL(sys.argv[1])
tracer.warplog_unready.restype = ctypes.c_char_p
sys.exit(tracer.warplog_unready().decode() or 0)
"""
_NO_TRACER = "`snakemake accesses` says the same of each variant; everything else works without it"


def compilers(arch: str | None, project: Path) -> list[Finding]:
    """Checks nvcc, by compiling a kernel for `arch`, and its host compiler; `arch` is None if there is no GPU."""
    host = toolchain.host_compiler()
    return [_nvcc(toolchain.find("nvcc"), arch, project), _tool(host, needed=arch is not None)]


def _nvcc(tool: Tool, arch: str | None, project: Path) -> Finding:
    if not tool.ok:
        why = f"{tool.path} is not usable" if tool.path else "not installed"
        return _installed_on_demand("nvcc", "cuda", why, arch is not None, project)
    failure = try_nvcc(tool, arch or _DEFAULT_ARCH)
    text = f"{tool.version}, {tool.path}"
    if failure:
        remedy = "install CUDA 12.8 or newer, and a host compiler that it supports"
        return Finding("nvcc", _missing(arch is not None), f"{text}: {failure}", remedy)
    return Finding("nvcc", "ok", f"{text}; compiles for {arch or _DEFAULT_ARCH}")


def try_nvcc(tool: Tool, arch: str) -> str:
    """Compiles and links an empty kernel; returns "", or the first error on one line."""
    with temporary_folder() as folder:
        source = folder / "nothing.cu"
        source.write_text(_KERNEL)
        target = f"arch={arch.replace('sm_', 'compute_')},code={arch}"
        command = [*toolchain.nvcc_command(tool), "-shared", "-Xcompiler", "-fPIC", "-gencode", target]
        command += [str(source), "-o", str(source.with_suffix(".so"))]
        done = process.run(command, timeout_s=_TRY_S, env=process.minimal_env({"TMPDIR": str(folder)}))
    if done.ok:
        return ""
    lines = [line for line in done.output_tail.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line.lower() or "fatal" in line.lower()), "")
    return f"{process.explain_exit(done)}: {first or ' '.join(lines[-1:])}"


def disassemblers(gpu_present: bool) -> list[Finding]:
    """Checks cuobjdump and nvdisasm, which read machine code."""
    return [_tool(toolchain.find(name), needed=gpu_present) for name in ("cuobjdump", "nvdisasm")]


def profilers(gpu_present: bool) -> list[Finding]:
    """Checks ncu, nsys and compute-sanitizer; a campaign runs without them, but has no counters or trace."""
    findings = []
    for name in ("ncu", "nsys", "compute-sanitizer"):
        tool = toolchain.find(name)
        if not tool.ok and not gpu_present:
            findings.append(Finding(name, "info", "not required without a GPU"))
        elif name == "nsys" and tool.path and not importer(tool.path):
            remedy = (
                "install the complete Nsight Systems; the copy inside Nsight Compute lacks host-linux-x64"
            )
            text = f"{tool.version}, {tool.path}: cannot write reports, because its QdstrmImporter is missing"
            findings.append(Finding(name, "warn", text, remedy))
        else:
            findings.append(_tool(tool, needed=False))
    return findings


def tracer(gpu: Gpu | None, project: Path) -> Finding:
    """Checks the tracer of memory accesses, by building it and loading it into a process that uses the GPU."""
    api = toolchain.sanitizer_api()
    if gpu is None:
        return Finding("tracer", "info", "not required without a GPU")
    if api is None:
        return _installed_on_demand("tracer", "tracer", "the Sanitizer API is not installed", False, project)
    try:
        with temporary_folder() as folder:
            library = folder / "tracer.so"
            build_tracer(toolchain.find("nvcc"), api, gpu.arch, library)
            environment = {**gpu.environment, "CUDA_INJECTION64_PATH": str(library)}
            failure = _try_python(_TRACE, str(library), environment=environment)
    except WarplogError as error:
        failure = str(error)
    if failure:
        return Finding("tracer", "warn", f"{api.library}: {failure}", _NO_TRACER)
    return Finding("tracer", "ok", f"{api.library}; traces memory accesses here without counters")


def importer(nsys: Path) -> bool:
    """Returns whether the installation of nsys has QdstrmImporter, which converts recordings into reports."""
    home = nsys.resolve().parent
    if not home.name.startswith("target-linux"):
        return True  # a start script or an unknown layout: assume that it is complete
    hosts = home.parent.glob("host-linux*/QdstrmImporter")
    return any(hosts) or (home / "QdstrmImporter").exists()


def libraries(gpu_present: bool, project: Path) -> list[Finding]:
    """Checks CuPy and cuBLAS by loading them; neither is required without a GPU."""
    if not gpu_present:
        return [Finding("CuPy, cuBLAS", "info", "not required without a GPU")]
    return [_cupy(project), _cublas(project)]


def _cupy(project: Path) -> Finding:
    if importlib.util.find_spec("cupy") is None:
        return _installed_on_demand("CuPy", "gpu", "not installed", True, project)
    failure = _try_python("import cupy")
    if failure:
        return Finding("CuPy", "fail", f"cannot be imported: {failure}", wheels.OTHERWISE["gpu"])
    return Finding("CuPy", "ok", toolchain.cupy_version() or "found")


def _cublas(project: Path) -> Finding:
    path = toolchain.library("cublas")
    if path is None:
        return _installed_on_demand("cuBLAS", "gpu", "not installed", True, project)
    failure = _try_python("import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(path))
    if failure:
        return Finding("cuBLAS", "fail", f"{path} cannot be loaded: {failure}", wheels.OTHERWISE["gpu"])
    return Finding("cuBLAS", "ok", str(path))


def _try_python(code: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    env = process.minimal_env(environment or {})
    done = process.run([sys.executable, "-c", code, *arguments], timeout_s=_TRY_S, env=env)
    return "" if done.ok else (done.output_tail.strip().splitlines() or [process.explain_exit(done)])[-1]


def _tool(tool: Tool, *, needed: bool) -> Finding:
    if tool.ok:
        return Finding(tool.name, "ok", f"{tool.version}, {tool.path}")
    text = f"{tool.path} does not run" if tool.path and not tool.version else "not found"
    return Finding(tool.name, _missing(needed), text, tool.remedy)


def _missing(needed: bool) -> Literal["fail", "warn"]:
    return "fail" if needed else "warn"


def _installed_on_demand(topic: str, extra: wheels.Extra, why: str, needed: bool, project: Path) -> Finding:
    try:
        wheels.fetch_command(extra, project)
    except WarplogError as error:
        text, _, remedy = str(error).partition("; with ")
        return Finding(topic, _missing(needed), f"{why}; {text}", f"with {remedy}")
    return Finding(topic, "info", f"{why}; a campaign installs it if required")
