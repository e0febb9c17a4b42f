"""Readable kernel names, and the kernel that represents a launch of several kernels."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

SPLIT_K = re.compile(r"split_?k", re.IGNORECASE)
_XMMA = re.compile(
    r"^(sm\d+)_xmma_gemm_(\w+?)_([nt]{2})_n_tilesize(\w+?)_(stage\d+)_warpsize(\w+?)_(.*?)_?execute_(.*)$"
)
# CUTLASS wrappers: their first template argument is the actual kernel.
_WRAPPERS = ("Kernel", "Kernel2", "device_kernel")


def bare_name(kernel: str) -> str:
    """Returns the function name without return type, namespaces, template arguments and parameters."""
    name = _without_prefixes(kernel)
    return re.split(r"[<(]", name, maxsplit=1)[0].rsplit("::", 1)[-1].strip() or kernel


def short_name(kernel: str) -> str:
    """Returns a short name for display.

    For kernels generated for cuBLAS it is architecture, layout, tile, stages and warps; for CUTLASS wrappers the
    wrapped kernel; otherwise the bare name.
    """
    if found := _XMMA.match(kernel):
        arch, _, layout, tile, stages, warps, _, rest = found.groups()
        part = " split_k" if SPLIT_K.search(rest) else ""
        return f"{arch}_xmma_gemm_{layout} {tile} {stages} warps{warps}{part}"
    name = bare_name(kernel)
    inner = re.match(r"[^<]*<\s*([\w:]+)", _without_prefixes(kernel))
    return inner[1].rsplit("::", 1)[-1] if name in _WRAPPERS and inner else name


def _without_prefixes(kernel: str) -> str:
    return kernel.removeprefix("void ").replace("(anonymous namespace)::", "")


Key = tuple[str, int]


def kernel_key(row: Mapping[Any, Any]) -> Key:
    """Returns the kernel name and launch number of a row of the table `metrics`."""
    return str(row["kernel"]), int(row["launch"])


def longest_kernel(rows: Iterable[Mapping[Any, Any]]) -> Key | None:
    """Returns the kernel with the longest duration among rows of one variant, case and tool; None without rows.

    The duration is `duration_us` for ncu and `nsys_kernel_duration_us` for nsys. If no duration is known, or
    several are equal, the first kernel is returned.
    """
    times: dict[Key, float] = {}
    for row in rows:
        is_duration, value = str(row["metric"]).endswith("duration_us"), row["value"]
        known = is_duration and isinstance(value, (int, float)) and not math.isnan(value)
        times[kernel_key(row)] = max(times.get(kernel_key(row), -1.0), value if known else -1.0)
    return max(times, key=lambda key: times[key], default=None)
