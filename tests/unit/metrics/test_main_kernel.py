"""The kernel that represents a launch is the longest one, even if the durations of others are unknown."""

import math
from types import SimpleNamespace

import pytest

from warplog.metrics.kernels import compiled_kernel, longest_kernel


def row(kernel, launch, value, metric="duration_us"):
    return {"kernel": kernel, "launch": launch, "metric": metric, "value": value}


@pytest.mark.parametrize(
    ("rows", "main"),
    [
        ([row("a", 0, 1.0), row("b", 1, 5.0), row("c", 2, 2.0)], ("b", 1)),
        ([row("a", 0, 1.0), row("a", 1, 5.0)], ("a", 1)),
        ([row("a", 0, math.nan), row("b", 1, 1.0), row("c", 2, None)], ("b", 1)),
        ([row("a", 0, math.nan), row("b", 1, math.nan)], ("a", 0)),
        ([row("a", 0, 2.0), row("b", 1, 2.0)], ("a", 0)),
        ([row("a", 0, 1.0), row("b", 1, 9e9, "dram_bytes")], ("a", 0)),
        ([row("a", 0, 1.0, "nsys_kernel_duration_us"), row("b", 1, 2.0, "nsys_kernel_duration_us")], ("b", 1)),
        ([], None),
    ],
)  # fmt: skip
def test_the_longest_kernel_or_the_first(rows, main):
    assert longest_kernel(rows) == main


def code(kernel, registers, instructions):
    return SimpleNamespace(kernel=kernel, registers_per_thread=registers, sass_instructions=instructions)


BUILT = [code("void k<128, true>(int)", 8, 50), code("void k<64, true>(int)", 40, 90), code("j()", 40, 70)]


@pytest.mark.parametrize(
    ("launched", "registers", "index"),
    [
        ("void ns::k<(int)128, (bool)1>(int)", None, 0),
        ("k(int)", 16, 0),
        ("k(int)", 40, 1),
        ("j()", 99, 2),
        ("", None, 1),
        ("ampere_sgemm_128x64_nn", 40, None),
    ],
)
def test_the_compiled_kernel_is_told_by_name_arguments_registers_and_size(launched, registers, index):
    assert compiled_kernel(BUILT, launched, registers) is (None if index is None else BUILT[index])
