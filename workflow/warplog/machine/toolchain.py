"""The programs of CUDA that warplog calls: where they are, which version, what to do where one is missing."""

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warplog.core import process
from warplog.core.errors import WarplogError
from warplog.machine import wheels
from warplog.machine.wheels import Extra

TOOLS = ("nvcc", "cuobjdump", "nvdisasm", "ncu", "nsys", "compute-sanitizer")
OLDEST_NVCC = (12, 0)

_ROOT = Path("/")
_ASK_S = 60.0
_VERSIONS = {
    "nvcc": r"\bV(\d+\.\d+\.\d+)",
    "cuobjdump": r"\bV(\d+\.\d+\.\d+)",
    "nvdisasm": r"\bV(\d+\.\d+\.\d+)",
    "ncu": r"Version (\d{4}\.\d+[.\d]*)",
    "nsys": r"version (\d{4}\.\d+[.\d]*)",
    "compute-sanitizer": r"Version (\d{4}\.\d+[.\d]*)",
}
# Where installers put them, beside PATH and CUDA_HOME; of several versions the newest is asked first.
_PLACES = {
    "ncu": ("opt/nvidia/nsight-compute/*", "usr/local/cuda/bin", "usr/local/cuda-*/bin"),
    "nsys": (
        "opt/nvidia/nsight-systems/*/bin",
        "opt/nvidia/nsight-systems/*/target-linux-x64",
        "opt/nvidia/nsight-systems-cli/*/bin",
        "opt/nvidia/nsight-systems-cli/*/target-linux-x64",
        "usr/local/cuda/bin",
        "usr/local/cuda-*/bin",
    ),
    "compute-sanitizer": ("usr/local/cuda/bin", "usr/local/cuda/compute-sanitizer", "usr/local/cuda-*/bin"),
}
_CUDA_PLACES = ("usr/local/cuda/bin", "usr/local/cuda-*/bin")
_LIBRARY_PLACES = (
    "usr/local/cuda/lib64",
    "usr/local/cuda/lib",
    "usr/local/cuda-*/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib64",
)
_REMEDIES = {
    "nvcc": "uv sync --inexact --extra cuda, or install CUDA 13.0",
    "cuobjdump": "uv sync --inexact (its wheel nvidia-cuda-cuobjdump is a dependency)",
    "nvdisasm": "uv sync --inexact (its wheel nvidia-cuda-nvdisasm is a dependency)",
    "ncu": "install NVIDIA Nsight Compute; without it there are times but no counters",
    "nsys": "install NVIDIA Nsight Systems; without it there are times but no timeline",
    "compute-sanitizer": "install the CUDA toolkit (package cuda-sanitizer); only the memory checks need it",
    "host compiler": "install g++ (Debian, Ubuntu: apt install g++), or name one in NVCC_CCBIN",
}


@dataclass(frozen=True)
class Tool:
    """A program; path is None where it is missing, version where it does not answer.

    remedy is empty where the program can be used, else what to do.
    """

    name: str
    path: Path | None
    version: str | None
    remedy: str

    @property
    def ok(self) -> bool:
        """True where it is there, answers, and is new enough."""
        return not self.remedy


def find(name: str) -> Tool:
    """One of TOOLS: the first that answers with a version that will do.

    Asked in order: PATH, $CUDA_HOME, $CUDA_PATH, NVIDIA's usual folders, the PyPI wheels; for cuobjdump and
    nvdisasm the wheels come first, since they are locked and read the code of older compilers.
    """
    found = Tool(name, None, None, _REMEDIES[name])
    for path in dict.fromkeys(_candidates(name)):
        version = _version(path, path.stat().st_mtime_ns, _VERSIONS[name])
        if version is None:
            found = found if found.path else Tool(name, path, None, f"{path} does not run; {_REMEDIES[name]}")
        elif name == "nvcc" and _numbers(version)[:2] < OLDEST_NVCC:
            found = Tool(name, path, version, f"nvcc {version} is too old; {_REMEDIES[name]}")
        else:
            return Tool(name, path, version, "")
    return found


def host_compiler() -> Tool:
    """The C++ compiler that nvcc calls: $NVCC_CCBIN or g++."""
    name = "host compiler"
    wanted = os.environ.get("NVCC_CCBIN") or "g++"
    if Path(wanted).is_dir():
        wanted = str(Path(wanted) / "g++")
    path = shutil.which(wanted)
    if path is None:
        return Tool(name, None, None, _REMEDIES[name])
    version = _version(Path(path), Path(path).stat().st_mtime_ns, r"\b(\d+\.\d+\.\d+)")
    return Tool(name, Path(path), version, "" if version else f"{path} does not run; {_REMEDIES[name]}")


def nvcc_command(tool: Tool) -> list[str]:
    """The start of a compiler command; the wheels keep their libraries in `lib`, where nvcc does not look.

    Raises:
        WarplogError: there is no usable nvcc.
    """
    if tool.path is None or not tool.ok:
        raise WarplogError(f"nvcc: cannot be used: {tool.remedy}")
    home = tool.path.parent.parent
    apart = (home / "lib" / "libcudadevrt.a").exists() and not (home / "lib64").exists()
    return [str(tool.path), *([f"-L{home / 'lib'}"] if apart else [])]


def ensure(extra: Extra, project: Path | None = None) -> None:
    """Fetches the compiler ("cuda") or CuPy with its libraries ("gpu") where this machine has none.

    What is fetched is what uv.lock says, into the running environment, beside what is there; a later `uv run`
    keeps it. One line on stderr says so.

    Raises:
        WarplogError: it is missing and cannot be fetched.
    """
    if not _lacks(extra):
        return
    command = wheels.fetch_command(extra, project)
    import filelock

    with filelock.FileLock(Path(sys.prefix) / ".warplog-fetch.lock"):
        if not _lacks(extra):
            return
        wheels.fetch(extra, command)
    if lacking := _lacks(extra):
        raise WarplogError(f"{', '.join(lacking)}: still missing after a fetch; {wheels.OTHERWISE[extra]}")


def _lacks(extra: Extra) -> list[str]:
    if extra == "cuda":
        return [] if find("nvcc").ok else ["nvcc"]
    lacking = [] if importlib.util.find_spec("cupy") else ["cupy"]
    return lacking + [name for name in ("cublas", "nvrtc") if library(name) is None]


def library(name: str) -> Path | None:
    """A shared library of CUDA 12 or 13 by its short name ("cublas", "nvrtc"); None where there is none.

    It is looked for in the wheels, LD_LIBRARY_PATH, the toolkit and the system, in this order.
    """
    if (path := wheels.library(name)) is not None:
        return path
    places = [Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    places += [folder for pattern in _LIBRARY_PLACES for folder in _newest_first(pattern)]
    found = (path for place in places for path in sorted(place.glob(f"lib{name}.so.1[23]"), reverse=True))
    return next(found, None)


def snapshot() -> dict[str, str]:
    """Versions for a record's provenance, by tool; "" where one is missing. Imports neither CuPy nor CUDA."""
    versions = {name: find(name).version or "" for name in TOOLS}
    versions["host_compiler"] = host_compiler().version or ""
    versions["python"] = platform.python_version()
    versions["cupy"] = cupy_version()
    return versions


def cupy_version() -> str:
    """The version of the installed CuPy, "" where there is none."""
    for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def _candidates(name: str) -> Iterator[Path]:
    in_wheels = wheels.program(name)
    if in_wheels and name in ("cuobjdump", "nvdisasm"):
        yield in_wheels
    if path := shutil.which(name):
        yield Path(path)
    named = (os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH"))
    homes = [Path(home) / "bin" for home in named if home]
    usual = [folder for pattern in _PLACES.get(name, _CUDA_PLACES) for folder in _newest_first(pattern)]
    yield from (folder / name for folder in homes + usual if os.access(folder / name, os.X_OK))
    if in_wheels:
        yield in_wheels


def _newest_first(pattern: str) -> list[Path]:
    return sorted(_ROOT.glob(pattern), key=lambda path: _numbers(str(path)), reverse=True)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


@cache
def _version(path: Path, _changed: int, pattern: str) -> str | None:
    done = process.run([path, "--version"], timeout_s=_ASK_S, env=process.minimal_env())
    match = re.search(pattern, done.output_tail) if done.ok else None
    return match.group(1).rstrip(".") if match else None
