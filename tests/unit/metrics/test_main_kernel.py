"""The kernel that represents a launch is the longest one, even if the durations of others are unknown."""

import math

import pytest

from warplog.metrics.kernels import longest_kernel


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
