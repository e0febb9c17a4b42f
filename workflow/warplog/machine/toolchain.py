"""Finds the CUDA programs that warplog calls: paths, versions, and remedies if one is missing."""

import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warplog.core import process
from warplog.core.errors import WarplogError
from warplog.core.locks import locked
from warplog.machine import packages, wheels
from warplog.machine.wheels import Extra

TOOLS = ("nvcc", "cuobjdump", "nvdisasm", "ncu", "nsys", "compute-sanitizer")
OLDEST_NVCC = (12, 0)

_ROOT = Path("/")
_VERSION_S = 60.0
_VERSIONS = {
    "nvcc": r"\bV(\d+\.\d+\.\d+)",
    "cuobjdump": r"\bV(\d+\.\d+\.\d+)",
    "nvdisasm": r"\bV(\d+\.\d+\.\d+)",
    "ncu": r"Version (\d{4}\.\d+[.\d]*)",
    "nsys": r"version (\d{4}\.\d+[.\d]*)",
    "compute-sanitizer": r"Version (\d{4}\.\d+[.\d]*)",
}
# Installation folders besides PATH and CUDA_HOME; newer versions are tried first.
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
_TOOLKITS = ("usr/local/cuda", "usr/local/cuda-*")
_CUDA_PLACES = tuple(f"{toolkit}/bin" for toolkit in _TOOLKITS)
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
    "ncu": "install NVIDIA Nsight Compute; without it, campaigns have times but no counters",
    "nsys": "install NVIDIA Nsight Systems; without it, campaigns have times but no trace",
    "compute-sanitizer": "install the CUDA toolkit (package cuda-sanitizer); only `snakemake sanitize` requires it",
    "host compiler": "install g++ (Debian, Ubuntu: apt install g++), or set NVCC_CCBIN",
}


@dataclass(frozen=True)
class Tool:
    """A program: path is None if it is missing, version is None if it does not run.

    remedy is empty if the program is usable. libraries are folders whose libraries are linked before those of this
    environment: those of a compiler that was named.
    """

    name: str
    path: Path | None
    version: str | None
    remedy: str
    libraries: tuple[Path, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the program exists, runs and is new enough."""
        return not self.remedy


def find(name: str) -> Tool:
    """Finds one of TOOLS: the first installation that runs and is new enough.

    Searches PATH, $CUDA_HOME, $CUDA_PATH, NVIDIA's default folders and the PyPI wheels, in this order. For
    cuobjdump and nvdisasm the wheels come first, since they are locked and can read code of older compilers.
    """
    best = Tool(name, None, None, _REMEDIES[name])
    for path in dict.fromkeys(_candidates(name)):
        version = _version(path, path.stat().st_mtime_ns, _VERSIONS[name])
        if version is None:
            best = best if best.path else Tool(name, path, None, f"{path} does not run; {_REMEDIES[name]}")
        elif name == "nvcc" and (too_old := _too_old(version)):
            best = Tool(name, path, version, too_old)
        else:
            return Tool(name, path, version, "")
    return best


def compiler(version: str, cache: Path, link: Sequence[str] = ()) -> Tool:
    """Returns the nvcc of a version, 13.0 or 13.0.88: one of this machine, else from wheels.

    Searches where `find` does, and then installs the wheels into a folder of `cache`, once for each version, with those
    of CUDA's libraries among `link`, short names.

    Raises:
        WarplogError: It is too old, or not here and cannot be installed; the text says where it was looked for.
    """
    if too_old := _too_old(version):
        raise WarplogError(too_old)
    if found := _of_version(version, _candidates("nvcc")):
        return found
    extras = sorted({wheels.LIBRARIES[name] for name in link if name in wheels.LIBRARIES})
    folder = cache / "+".join([version, *extras])
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / f".{folder.name}.lock", f"waiting: another process is installing nvcc {version}"):
        try:
            if not folder.is_dir():
                wheels.fetch_toolkit(version, extras, folder)
            in_wheels = wheels.program("nvcc", folder)
            if found := _of_version(version, [in_wheels] if in_wheels else []):
                return found
            why = f"{folder} has another one, or none that runs; delete it"
        except WarplogError as error:
            why = str(error)
    others = ", ".join(dict.fromkeys(filter(None, map(_nvcc_version, _candidates("nvcc"))))) or "none"
    raise WarplogError(
        f"no nvcc {version}: PATH, CUDA_HOME, CUDA_PATH, /usr/local/cuda* and the installed wheels have {others},"
        f" and {why}; install CUDA {version} and set CUDA_HOME to its folder"
    )


def _too_old(version: str) -> str:
    return f"nvcc {version} is too old; {_REMEDIES['nvcc']}" if _numbers(version)[:2] < OLDEST_NVCC else ""


def _of_version(version: str, candidates: Iterable[Path]) -> Tool | None:
    """Returns the first nvcc of a version; 13.0 stands for all of its patches."""
    for path in candidates:
        found = _nvcc_version(path)
        if found and f"{found}.".startswith(f"{version}."):
            home = path.resolve().parent.parent
            return Tool("nvcc", path, found, "", (home / "lib64", home / "lib"))
    return None


def _nvcc_version(path: Path) -> str | None:
    return _version(path, path.stat().st_mtime_ns, _VERSIONS["nvcc"])


def host_compiler() -> Tool:
    """Returns the C++ compiler that nvcc calls: $NVCC_CCBIN or g++."""
    name = "host compiler"
    command = os.environ.get("NVCC_CCBIN") or "g++"
    if Path(command).is_dir():
        command = str(Path(command) / "g++")
    path = shutil.which(command)
    if path is None:
        return Tool(name, None, None, _REMEDIES[name])
    version = _version(Path(path), Path(path).stat().st_mtime_ns, r"\b(\d+\.\d+\.\d+)")
    return Tool(name, Path(path), version, "" if version else f"{path} does not run; {_REMEDIES[name]}")


def nvcc_command(tool: Tool) -> list[str]:
    """Returns the start of a compiler command, with -L for the wheels, whose `lib` nvcc does not search.

    Raises:
        WarplogError: nvcc is missing or not usable.
    """
    if tool.path is None or not tool.ok:
        raise WarplogError(f"nvcc is not usable: {tool.remedy}")
    home = tool.path.parent.parent
    apart = (home / "lib" / "libcudadevrt.a").exists() and not (home / "lib64").exists()
    return [str(tool.path), *([f"-L{home / 'lib'}"] if apart else [])]


@dataclass(frozen=True)
class SanitizerApi:
    """The API on which the tracer of accesses stands: the folder of its headers, and its library."""

    headers: Path
    library: Path


def sanitizer_api() -> SanitizerApi | None:
    """Finds the Sanitizer API: in the wheels, beside nvcc, or in NVIDIA's default folders; None if there is none."""
    nvcc = find("nvcc").path
    beside = [nvcc.resolve().parent.parent / "compute-sanitizer"] if nvcc else []
    toolkits = [folder / "compute-sanitizer" for pattern in _TOOLKITS for folder in _newest_first(pattern)]
    places = [(folder, folder / "lib") for folder in wheels.folders()]
    places += [(folder, folder) for folder in (*beside, *toolkits)]
    for folder, libraries in places:
        api = SanitizerApi(folder / "include", libraries / "libsanitizer-public.so")
        if api.library.is_file() and (api.headers / "sanitizer.h").is_file():
            return api
    return None


def ensure(extra: Extra, project: Path | None = None) -> None:
    """Installs the compiler ("cuda"), CuPy with its libraries ("gpu") or the Sanitizer API ("tracer") if it is missing.

    Installs the versions in uv.lock into the running environment without removing anything; a later `uv run`
    keeps them. Prints the start and the end on stderr.

    Raises:
        WarplogError: It is missing and cannot be installed.
    """
    if not _missing(extra):
        return
    command = wheels.fetch_command(extra, project)
    with locked(Path(sys.prefix) / ".warplog-fetch.lock", f"waiting: another process is installing {extra}"):
        if not _missing(extra):
            return
        wheels.fetch(extra, command)
        if missing := _missing(extra):
            raise wheels.useless(extra, missing)


def _missing(extra: Extra) -> list[str]:
    if extra == "cuda":
        return [] if find("nvcc").ok else ["nvcc"]
    if extra == "tracer":
        return [] if sanitizer_api() else ["libsanitizer-public.so"]
    missing = [] if importlib.util.find_spec("cupy") else ["cupy"]
    return missing + [name for name in ("cublas", "nvrtc") if library(name) is None]


def library(name: str) -> Path | None:
    """Finds a shared library of CUDA 12 or 13 by its short name ("cublas", "nvrtc"); None if there is none.

    Searches the wheels, LD_LIBRARY_PATH, the toolkit and the system, in this order.
    """
    if (path := wheels.library(name)) is not None:
        return path
    places = [Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    places += [folder for pattern in _LIBRARY_PLACES for folder in _newest_first(pattern)]
    paths = (path for place in places for path in sorted(place.glob(f"lib{name}.so.1[23]"), reverse=True))
    return next(paths, None)


def linkable(name: str, first: Sequence[Path] = ()) -> Path | None:
    """Finds a shared library to link by its short name in the folders `first`, else in the wheels.

    None leaves the search to the linker.
    """
    places = [*first, *(folder / "lib" for folder in wheels.folders())]
    return next((path for place in places for path in sorted(place.glob(f"lib{name}.so*"))), None)


def snapshot() -> dict[str, str]:
    """Returns versions by tool for a record's provenance; "" if one is missing. Does not import CuPy."""
    versions = {name: find(name).version or "" for name in TOOLS}
    versions["host_compiler"] = host_compiler().version or ""
    versions["python"] = platform.python_version()
    versions["cupy"] = cupy_version()
    return versions


def cupy_version() -> str:
    """Returns the version of the installed CuPy; "" if it is not installed."""
    return packages.version("cupy")


def _candidates(name: str) -> Iterator[Path]:
    in_wheels = wheels.program(name)
    if in_wheels and name in ("cuobjdump", "nvdisasm"):
        yield in_wheels
    on_path = [Path(folder) for folder in os.get_exec_path() if folder]
    named = (os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH"))
    homes = [Path(home) / "bin" for home in named if home]
    defaults = [folder for pattern in _PLACES.get(name, _CUDA_PLACES) for folder in _newest_first(pattern)]
    files = (folder / name for folder in on_path + homes + defaults)
    yield from (file for file in files if file.is_file() and os.access(file, os.X_OK))
    if in_wheels:
        yield in_wheels


def _newest_first(pattern: str) -> list[Path]:
    return sorted(_ROOT.glob(pattern), key=lambda path: _numbers(str(path)), reverse=True)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


@cache
def _version(path: Path, _changed: int, pattern: str) -> str | None:
    done = process.run([path, "--version"], timeout_s=_VERSION_S, env=process.minimal_env())
    match = re.search(pattern, done.output_tail) if done.ok else None
    return match.group(1).rstrip(".") if match else None
