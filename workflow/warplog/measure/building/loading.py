"""Links shared libraries, and loads a compiled one once, in a process of its own.

So a missing library or symbol is known before any GPU is used.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.process import explain_exit, minimal_env, run
from warplog.machine import toolchain
from warplog.parsers.ptxas import demangle

LAUNCHER = "warplog_launch"
_LOAD_S = 60.0
# The worker loads cuBLAS for everybody; so a library that calls it directly is loaded too where cuBLAS is installed.
_SCRIPT = """
import ctypes, os, sys
library, launcher, cublas = sys.argv[1:]
try:
    try:
        loaded = ctypes.CDLL(library, mode=os.RTLD_NOW)
    except OSError:
        if not cublas:
            raise
        ctypes.CDLL(cublas, mode=ctypes.RTLD_GLOBAL)
        loaded = ctypes.CDLL(library, mode=os.RTLD_NOW)
    getattr(loaded, launcher)
except (OSError, AttributeError) as error:
    sys.exit(str(error))
"""
_MISSING = re.compile(r"undefined symbol: (\w+)")
# Which library has the functions with a prefix; the longer ones first.
_PREFIXES = {
    "cublasLt": "cublasLt",
    "cublas": "cublas",
    "cufft": "cufft",
    "curand": "curand",
    "cusolver": "cusolver",
    "cusparse": "cusparse",
    "cutensor": "cutensor",
    "cudnn": "cudnn",
    "nccl": "nccl",
    "nvrtc": "nvrtc",
    "nvJitLink": "nvJitLink",
    "nvml": "nvidia-ml",
    "nvshmem": "nvshmem_host",
}
_DRIVER = re.compile(r"cu[A-Z]")
_NO_DRIVER = "libcuda.so.1: cannot open shared object file"
_REMEDY = (
    "only the CUDA runtime is linked: define it in the source or in a header, name the source that has it under"
    " `compile: {sources: [...]}`, or the library under `compile: {link: [...]}`"
)


def link_options(names: Sequence[str], folder: Path, first: Sequence[Path] = ()) -> list[str]:
    """Returns nvcc's options that link shared libraries by their short names.

    A library in a wheel has no name that the linker looks for, so it gets one in `folder`/link. The driver's library
    need not be installed: an empty one with its name is linked, and the real one is loaded at run time.

    Args:
        names: of the libraries.
        folder: of the build.
        first: folders that are searched before the wheels.

    Raises:
        WarplogError: the empty library cannot be made.
    """
    if not names:
        return []
    links, places = folder.absolute() / "link", []
    links.mkdir(exist_ok=True)
    for name in names:
        link = links / f"lib{name}.so"
        link.unlink(missing_ok=True)
        if name == "cuda":
            _make_driver_stub(link)
        elif library := toolchain.linkable(name, first):
            link.symlink_to(library)
            places.append(library.parent)
    paths = [word for place in dict.fromkeys(places) for word in ("-Xlinker", f"-rpath={place}")]
    # The stub defines nothing, so the linker would leave it out as not needed.
    return [f"-L{links}", *paths, "-Xlinker", "--no-as-needed", *(f"-l{name}" for name in names)]


def _make_driver_stub(path: Path) -> None:
    compiler = toolchain.host_compiler()
    if compiler.path is None:
        raise WarplogError(f"the host compiler is missing: {compiler.remedy}")
    command = [str(compiler.path), "-shared", "-nostdlib", "-x", "c", "/dev/null", "-Wl,-soname,libcuda.so.1"]
    done = run([*command, "-o", str(path)], timeout_s=_LOAD_S, env=minimal_env())
    if not done.ok:
        raise WarplogError(
            f"{path}: {compiler.path} failed: {done.output_tail.strip() or explain_exit(done)}"
        )


def why_not_loaded(library: Path, launcher: str = LAUNCHER, driver: bool = False) -> str:
    """Returns why the dynamic linker cannot load a library, in its own words and with the remedy; '' if it can.

    Args:
        launcher: a function that the library must have.
        driver: whether the library was linked with the driver's; it then cannot be loaded on machines without a GPU,
            where nothing is known against it.
    """
    cublas = toolchain.library("cublas") or ""
    command = [sys.executable, "-I", "-S", "-c", _SCRIPT, str(library.resolve()), launcher, str(cublas)]
    done = run(command, timeout_s=_LOAD_S, env=minimal_env())
    if done.ok:
        return ""
    words = done.output_tail.strip().removeprefix(f"{library.resolve()}: ") or explain_exit(done)
    if driver and _NO_DRIVER in words:
        return ""
    missing = _MISSING.search(words)
    if missing is None:
        return f"the library cannot be loaded: {words}"
    (name,) = demangle((missing[1],))
    readable = "" if name == missing[1] else f", {name}"
    return f"the library cannot be loaded: {words}{readable}; {_remedy(missing[1], launcher, library)}"


def _remedy(symbol: str, launcher: str, library: Path) -> str:
    if symbol == launcher:
        # As C++ names a function without extern "C".
        mangled = re.search(rf"_Z{len(launcher)}{launcher}\w+".encode(), library.read_bytes())
        got = f"; got {demangle((mangled[0].decode(),))[0]} of C++" if mangled else ""
        return f'it must define extern "C" int {launcher}, with the arguments in family.yaml and a cudaStream_t{got}'
    owner = next((name for prefix, name in _PREFIXES.items() if symbol.startswith(prefix)), "")
    owner = owner or ("cuda" if _DRIVER.match(symbol) else "")
    if owner:
        return f"lib{owner} has it: add `compile: {{link: [{owner}]}}` to the variant or its family"
    return _REMEDY
