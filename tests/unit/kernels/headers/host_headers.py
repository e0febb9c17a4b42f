"""Compiles headers of the GEMM kernels to a host library, so that tests can call their index computations."""

import ctypes
from pathlib import Path

import pytest

from warplog.core.process import minimal_env, run
from warplog.machine import toolchain

KERNELS = Path(__file__).parents[4] / "kernels"


def host_library(source: str, folder: Path) -> ctypes.CDLL:
    """Compiles `source`, which may include headers of kernels/include and kernels/bf16_gemm; skips without nvcc."""
    nvcc = toolchain.find("nvcc")
    if not nvcc.ok:
        pytest.skip(f"nvcc: {nvcc.remedy}")
    (folder / "source.cu").write_text(source)
    command = [*toolchain.nvcc_command(nvcc), "-std=c++17", "-shared", "-Xcompiler", "-fPIC"]
    command += ["-gencode", "arch=compute_90a,code=sm_90a"]
    command += [f"-I{KERNELS / name}" for name in ("include", "bf16_gemm")]
    library = folder / "source.so"
    done = run([*command, str(folder / "source.cu"), "-o", str(library)], timeout_s=120, env=minimal_env())
    assert done.ok, done.output_tail
    return ctypes.CDLL(str(library))
