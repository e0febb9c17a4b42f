"""The kernels that a library launches per case: which kernels cuBLAS or CUB chose, and the time of each."""

from collections.abc import Iterator, Mapping
from math import prod

from warplog.core.columns import Cell, Row
from warplog.metrics.kernels import SPLIT_K, short_name
from warplog.records.extract import Extract, Launched

_Key = tuple[str, str]  # case and kernel
_NCU = {
    "duration_us": "ncu_us",
    "grid_blocks": "grid_blocks",
    "block_threads": "block_threads",
    "registers_per_thread": "registers_per_thread",
    "shared_bytes_per_block": "ncu_shared_bytes",
}


def library_kernels(extract: Extract) -> Iterator[Row]:
    """Yields one row per distinct kernel or copy of each captured case, in launch order.

    The launch configuration comes from ncu if nsys captured none of the case.
    """
    launched = {(kernel.case, kernel.kernel): kernel for kernel in extract.kernels}
    kinds = {(event.case, event.name): event.kind for event in extract.trace if event.kind != "api"}
    whole = {row.case: row.value for row in extract.rows if row.metric == "nsys_duration_us"}
    counted = _ncu_values(extract)
    for case, order, name, nsys_us in _parts(extract, counted):
        key, total_us = (case, name), whole.get(case)
        yield {
            "case": case,
            "order": order,
            "kind": "kernel" if key in launched else kinds.get(key, "kernel"),
            "kernel": name,
            "short_name": short_name(name),
            "is_split_k": bool(SPLIT_K.search(name)),
            **counted.get(key, _namesake(counted, key, order)),
            **(_launch(launched[key]) if key in launched else {}),
            "nsys_us": nsys_us,
            "share_pct": 100 * nsys_us / total_us if nsys_us and total_us else None,
        }


def _parts(extract: Extract, counted: Mapping[_Key, Row]) -> list[tuple[str, int, str, float | None]]:
    """Returns case, order, name and nsys time of each part of a launch; cases without nsys come from ncu."""
    parts: list[tuple[str, int, str, float | None]] = [
        (row.case, row.launch, row.kernel, row.value)
        for row in extract.rows
        if row.metric == "nsys_kernel_duration_us" and row.value is not None
    ]
    in_nsys = {case for case, *_ in parts}
    for case in dict.fromkeys(case for case, _ in counted if case not in in_nsys):
        names = [name for other, name in counted if other == case]
        parts += [(case, order, name, None) for order, name in enumerate(names)]
    return parts


def _namesake(counted: Mapping[_Key, Row], key: _Key, order: int) -> Row:
    """Returns the ncu values of the kernel with the same position and short name, else {}.

    The full names differ, because ncu and nsys print types differently.
    """
    names = [name for case, name in counted if case == key[0]]
    same = order < len(names) and short_name(names[order]) == short_name(key[1])
    return counted[key[0], names[order]] if same else {}


def _launch(kernel: Launched) -> Row:
    return {
        "grid": "x".join(map(str, kernel.grid)),
        "grid_blocks": prod(kernel.grid),
        "block": "x".join(map(str, kernel.block)),
        "block_threads": prod(kernel.block),
        "registers_per_thread": kernel.registers_per_thread,
        "shared_bytes": kernel.shared_bytes,
    }


def _ncu_values(extract: Extract) -> Mapping[_Key, Row]:
    """Returns the ncu values by case and kernel; durations of a kernel that runs twice in a launch are added."""
    by_kernel: dict[_Key, dict[str, Cell]] = {}
    total_us: dict[_Key, float] = {}
    for row in extract.rows:
        if row.tool != "ncu" or row.metric not in _NCU or row.value is None:
            continue
        key = row.case, row.kernel
        values = by_kernel.setdefault(key, {})
        if row.metric == "duration_us":
            total_us[key] = values["ncu_us"] = total_us.get(key, 0.0) + row.value
        else:
            values.setdefault(_NCU[row.metric], int(row.value))
    return by_kernel
