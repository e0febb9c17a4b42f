"""Headers of the GEMM kernels as a library of the host: what they compute with indices can be called from a test."""

import ctypes
from pathlib import Path

import pytest

from warplog.core.process import minimal_env, run
from warplog.machine import toolchain

KERNELS = Path(__file__).parents[2] / "kernels"


def host_library(source: str, folder: Path) -> ctypes.CDLL:
    """The functions of a source that includes headers of kernels/include and kernels/bf16_gemm; else a skip."""
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
