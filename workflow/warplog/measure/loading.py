"""Loads a compiled library once, in a process of its own, so that a missing symbol is known before any GPU is used."""

import re
import sys
from pathlib import Path

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
_REMEDY = (
    "only the CUDA runtime is linked: define it in the source or in a header, or look it up at run time, as"
    " kernels/include/cublas.cuh does"
)


def why_not_loaded(library: Path) -> str:
    """Returns why the dynamic linker cannot load a library, in its own words and with the remedy; '' if it can."""
    cublas = toolchain.library("cublas") or ""
    command = [sys.executable, "-I", "-S", "-c", _SCRIPT, str(library.resolve()), LAUNCHER, str(cublas)]
    done = run(command, timeout_s=_LOAD_S, env=minimal_env())
    if done.ok:
        return ""
    words = done.output_tail.strip().removeprefix(f"{library.resolve()}: ") or explain_exit(done)
    missing = _MISSING.search(words)
    if missing is None:
        return f"the library cannot be loaded: {words}"
    (name,) = demangle((missing[1],))
    return f"the library cannot be loaded: {words}{'' if name == missing[1] else f', {name}'}; {_REMEDY}"
