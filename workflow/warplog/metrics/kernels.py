"""Kernel names for people, and the kernel that represents a launch of several."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

SPLIT_K = re.compile(r"split_?k", re.IGNORECASE)
_XMMA = re.compile(
    r"^(sm\d+)_xmma_gemm_(\w+?)_([nt]{2})_n_tilesize(\w+?)_(stage\d+)_warpsize(\w+?)_(.*?)_?execute_(.*)$"
)
_WRAPPERS = ("Kernel", "Kernel2", "device_kernel")  # of CUTLASS: their first template argument is the kernel


def bare_name(kernel: str) -> str:
    """The function's name without return type, namespaces, template arguments and parameters."""
    name = _undressed(kernel)
    return re.split(r"[<(]", name, maxsplit=1)[0].rsplit("::", 1)[-1].strip() or kernel


def short_name(kernel: str) -> str:
    """The tile of cuBLAS' generated kernels, the kernel inside of CUTLASS' wrappers, else the bare name."""
    if found := _XMMA.match(kernel):
        arch, _, layout, tile, stages, warps, _, rest = found.groups()
        part = " split_k" if SPLIT_K.search(rest) else ""
        return f"{arch}_xmma_gemm_{layout} {tile} {stages} warps{warps}{part}"
    name = bare_name(kernel)
    inner = re.match(r"[^<]*<\s*([\w:]+)", _undressed(kernel))
    return inner[1].rsplit("::", 1)[-1] if name in _WRAPPERS and inner else name


def _undressed(kernel: str) -> str:
    return kernel.removeprefix("void ").replace("(anonymous namespace)::", "")


Key = tuple[str, int]


def kernel_key(row: Mapping[Any, Any]) -> Key:
    """Name and number of the kernel that a row of the table `metrics` is about."""
    return str(row["kernel"]), int(row["launch"])


def longest_kernel(rows: Iterable[Mapping[Any, Any]]) -> Key | None:
    """The kernel with the longest duration among rows of one variant, case and tool; None without rows.

    The duration is `duration_us` of ncu, `nsys_kernel_duration_us` of nsys. Where none is known, or several are
    equal, it is the first kernel.
    """
    times: dict[Key, float] = {}
    for row in rows:
        told, value = str(row["metric"]).endswith("duration_us"), row["value"]
        known = told and isinstance(value, (int, float)) and not math.isnan(value)
        times[kernel_key(row)] = max(times.get(kernel_key(row), -1.0), value if known else -1.0)
    return max(times, key=lambda key: times[key], default=None)
