"""The timing core with a second launcher compiles and has what the package calls."""

import ctypes
from pathlib import Path

import pytest

from warplog.duel.timer import SOURCE
from warplog.machine import toolchain
from warplog.measure.building import build

CALLED = ("pair", "part", "enter", "leave", "turns", "create", "cold", "prepare", "run", "error")


@pytest.mark.nvcc
def test_the_core_compiles_and_has_the_functions_that_are_called(tmp_path: Path) -> None:
    nvcc = toolchain.find("nvcc")
    if not nvcc.ok:
        pytest.skip(nvcc.remedy)
    build.build_timer(nvcc, "sm_90", tmp_path / "timer.so", SOURCE)
    library = ctypes.CDLL(str(tmp_path / "timer.so"))
    assert [name for name in CALLED if not hasattr(library, f"warplog_timer_{name}")] == []
