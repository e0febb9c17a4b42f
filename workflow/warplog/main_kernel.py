"""The kernel that stands for a launch of several in figures, claims and MLflow: the one that ran longest."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

Key = tuple[str, int]


def key_of(row: Mapping[Any, Any]) -> Key:
    """Name and number of the kernel that a row of the table `metrics` is about."""
    return str(row["kernel"]), int(row["launch"])


def longest(rows: Iterable[Mapping[Any, Any]]) -> Key | None:
    """The kernel with the longest duration among rows of one variant, case and tool; None without rows.

    The duration is `duration_us` of ncu, `nsys_kernel_duration_us` of nsys. Where none is known, or several are
    equal, it is the first kernel.
    """
    times: dict[Key, float] = {}
    for row in rows:
        told, value = str(row["metric"]).endswith("duration_us"), row["value"]
        known = told and isinstance(value, (int, float)) and not math.isnan(value)
        times[key_of(row)] = max(times.get(key_of(row), -1.0), value if known else -1.0)
    return max(times, key=lambda key: times[key], default=None)
