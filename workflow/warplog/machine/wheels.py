"""CUDA wheels from PyPI: finds them in this environment and installs the locked ones if they are missing.

The wheels of CUDA 13 share one folder, site-packages/nvidia/cu13, which is laid out like a toolkit but with
`lib` instead of `lib64`; their programs get no script in the environment's `bin`.
"""

# Jobs run `uv sync` because machines with GPUs often have no CUDA toolkit, and one command must be enough to run a
# campaign there. `toolchain.ensure` holds a lock and checks under it whether anything is missing: one job installs,
# the others wait. Each extra is therefore installed at most once per environment.

import importlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from warplog.core import paths, process
from warplog.core.errors import WarplogError

Extra = Literal["cuda", "gpu", "tracer"]

WHAT = {
    "cuda": "the CUDA 13.0 compiler (about 100 MB)",
    "gpu": "CuPy, NVRTC and cuBLAS (about 600 MB)",
    "tracer": "the Sanitizer API (about 14 MB)",
}
OTHERWISE = {
    "cuda": "install CUDA 13.0 so that nvcc is on the PATH",
    "gpu": "pip install cupy-cuda13x nvidia-cublas nvidia-cuda-nvrtc",
    "tracer": "install the CUDA toolkit (package cuda-sanitizer)",
}
# What compiles and links; the metapackage pins all of them to one release, which nvcc alone does not.
_COMPILER = ("nvcc", "cudart", "crt", "nvvm", "cccl")
# The extras of the metapackage that have libraries to link, by their short names.
LIBRARIES = {
    **{name: name for name in ("cublas", "cufft", "curand", "cusolver", "cusparse", "nvrtc")},
    "cublasLt": "cublas",
    "nvJitLink": "nvjitlink",
}
_FIRST_COMPILER = (13, 0)  # earlier wheels have no nvcc
_NO_UV = "uv, which would install it, was not found"
_FETCH_S = 3600.0
# Offline, dozens of jobs would retry one after the other: for this time they reuse the first failure.
_RETRY_AFTER_S = 120.0
_COMPILER_PARTS = (
    "bin/nvcc",
    "bin/ptxas",
    "bin/fatbinary",
    "bin/cudafe++",
    "bin/nvcc.profile",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
    "include/cuda_runtime.h",
    "include/crt/host_config.h",
    "lib/libcudadevrt.a",
    "lib/libcudart_static.a",
)


def folders(place: Path | None = None) -> list[Path]:
    """Returns the folders of NVIDIA's wheels on sys.path, or in `place`, newest CUDA first (nvidia/cu13)."""
    wheels = [
        folder
        for entry in ([place] if place else _entries())
        if (home := entry / "nvidia").is_dir()
        for folder in home.iterdir()
        if folder.is_dir()
    ]
    return sorted(wheels, key=lambda folder: (folder.name.startswith("cu1"), folder.name), reverse=True)


def _entries() -> list[Path]:
    return [Path(entry or ".") for entry in dict.fromkeys(sys.path)]


def program(name: str, place: Path | None = None) -> Path | None:
    """Finds a program in the wheels; nvcc counts only if all parts that it calls are installed.

    Args:
        place: a folder that wheels were installed into; None for this environment.
    """
    for folder in folders(place):
        path = folder / "bin" / name
        if path.is_file() and (name != "nvcc" or all((folder / part).exists() for part in _COMPILER_PARTS)):
            return path
    return None


def library(name: str) -> Path | None:
    """Finds a shared library of CUDA 12 or 13 in the wheels by its short name ("cublas")."""
    pattern = f"lib{name}.so.1[23]"
    files = (path for folder in folders() for path in sorted((folder / "lib").glob(pattern), reverse=True))
    return next(files, None)


def fetch_command(extra: Extra, project: Path | None) -> list[str]:
    """Returns the command that adds the locked packages of one extra to this environment.

    Args:
        project: folder of pyproject.toml and uv.lock; None for the checkout or the working directory.

    Raises:
        WarplogError: uv, the lock file or a writable virtual environment is missing; the text gives the remedy.
    """
    uv = _uv()
    if uv is None:
        raise _refusal(extra, _NO_UV)
    places = [project] if project else [paths.WORKFLOW.parent, Path.cwd()]
    home = next((place for place in places if (place / "uv.lock").is_file()), None)
    if home is None:
        raise _refusal(extra, f"{places[-1]} has no uv.lock")
    if not (Path(sys.prefix) / "pyvenv.cfg").is_file() or not os.access(sys.prefix, os.W_OK):
        raise _refusal(extra, f"{sys.prefix} is not a writable virtual environment")
    command = [uv, "sync", "--project", str(home), "--python", sys.executable, "--frozen", "--inexact"]
    return [*command, "--no-default-groups", "--no-install-project", "--extra", extra]


def fetch(extra: Extra, command: list[str]) -> None:
    """Runs a `fetch_command`, which removes no packages; a later `uv run` keeps the new ones.

    Raises:
        WarplogError: uv failed or installed nothing useful, now or within the last two minutes; the text quotes uv and
            gives the remedy.
    """
    failure = _failure(extra)
    if failure.is_file() and time.time() - failure.stat().st_mtime < _RETRY_AFTER_S:
        raise _refusal(extra, failure.read_text(errors="replace"))
    if why := _run(WHAT[extra], command, Path(sys.prefix), {"UV_PROJECT_ENVIRONMENT": sys.prefix}):
        failure.write_text(why)
        raise _refusal(extra, why)
    failure.unlink(missing_ok=True)
    importlib.invalidate_caches()


def fetch_toolkit(version: str, libraries: Sequence[str], folder: Path) -> None:
    """Installs the wheels of nvcc of a version, such as 13.0 or 13.0.88, and of libraries, into a new folder.

    Raises:
        WarplogError: uv is missing, failed or installed no nvcc; the text quotes uv.
    """
    release = version.split(".")[:2]
    if tuple(map(int, release)) < _FIRST_COMPILER:
        raise WarplogError("the wheels on PyPI have nvcc from CUDA 13.0 on")
    uv = _uv()
    if uv is None:
        raise WarplogError(_NO_UV)
    extras = ",".join((*_COMPILER, *libraries))
    wanted = [f"cuda-toolkit[{extras}]=={'.'.join(release)}.*"]
    wanted += [f"nvidia-cuda-nvcc=={version}"] if version.count(".") > 1 else []
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as name:
        new = Path(name) / folder.name
        command = [uv, "pip", "install", "--python", sys.executable, "--target", str(new)]
        command += ["--only-binary", ":all:", *wanted]
        what = " and ".join([f"the CUDA {version} compiler (about 100 MB)", *libraries])
        why = _run(what, command, folder, {})
        if why or not program("nvcc", new):
            raise WarplogError(why or "nvcc: still missing after uv installed it")
        new.replace(folder)


def _uv() -> str | None:
    uv = os.environ.get("UV") or shutil.which("uv")
    return uv if uv and Path(uv).is_file() else None


def _run(what: str, command: Sequence[str], into: Path, settings: Mapping[str, str]) -> str:
    """Runs uv and says so; returns why it failed, in its own words; "" if it did not."""
    print(f"warplog: installing {what} into {into} (once)", file=sys.stderr, flush=True)
    start = time.monotonic()
    done = process.run(command, timeout_s=_FETCH_S, env={**os.environ, **settings})
    if not done.ok:
        return f"uv could not install it ({process.explain_exit(done)}: {_error_of(done.output_tail)})"
    print(f"warplog: installed in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return ""


def useless(extra: Extra, missing: Sequence[str]) -> WarplogError:
    """Returns the error for programs or packages that are missing after `fetch`, which the next jobs get as well."""
    why = f"{', '.join(missing)}: still missing after uv installed it into {sys.prefix}"
    _failure(extra).write_text(why)
    return _refusal(extra, why)


def _failure(extra: Extra) -> Path:
    """Returns the file with the reason of the last failure."""
    return Path(sys.prefix) / f".warplog-fetch-{extra}-failed"


def _error_of(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith("error")), max(0, len(lines) - 1))
    return re.sub(r":? https?://\S+", "", " ".join(lines[first : first + 2]))


def _refusal(extra: Extra, why: str) -> WarplogError:
    return WarplogError(
        f"{WHAT[extra]}: not installed, and {why}; with network access and uv: "
        f"uv sync --inexact --extra {extra}; otherwise: {OTHERWISE[extra]}"
    )
