"""The kernels that a library launches per case: which kernels cuBLAS or CUB chose, and the time of each."""

from collections.abc import Mapping
from math import prod
from typing import Any

from warplog.core.records import Record
from warplog.metrics.kernels import SPLIT_K, short_name

Row = dict[str, Any]
_Key = tuple[str, str]  # case and kernel
_NCU = {
    "ncu_us": "duration_us",
    "grid_blocks": "grid_blocks",
    "block_threads": "block_threads",
    "registers_per_thread": "registers_per_thread",
    "ncu_shared_bytes": "shared_bytes_per_block",
}


def library_kernels(extract: Record) -> list[Row]:
    """Returns one row per distinct kernel or copy of each captured case, in launch order.

    The launch configuration comes from ncu if nsys captured none of the case.
    """
    launched = {(k["case"], k["kernel"]): k for k in extract["kernels"]}
    kinds = {(e["case"], e["name"]): e["kind"] for e in extract["timeline"] if e["kind"] != "api"}
    whole = {r["case"]: r["value"] for r in extract["rows"] if r["metric"] == "nsys_duration_us"}
    counted = _ncu_values(extract)
    rows = []
    for case, order, name, nsys_us in _parts(extract, counted):
        key = (case, name)
        rows.append(
            {
                "case": case,
                "order": order,
                "kind": "kernel" if key in launched else kinds.get(key, "kernel"),
                "kernel": name,
                "short_name": short_name(name),
                "is_split_k": bool(SPLIT_K.search(name)),
                **counted.get(key, _namesake(counted, key, order)),
                **_launch(launched.get(key)),
                "nsys_us": nsys_us,
                "share_pct": 100 * nsys_us / whole[case] if nsys_us and whole.get(case) else None,
            }
        )
    return rows


def _parts(extract: Record, counted: Mapping[_Key, Row]) -> list[tuple[str, int, str, float | None]]:
    """Returns case, order, name and nsys time of each part of a launch; cases without nsys come from ncu."""
    found: list[tuple[str, int, str, float | None]] = [
        (r["case"], r["launch"], r["kernel"], r["value"])
        for r in extract["rows"]
        if r["metric"] == "nsys_kernel_duration_us" and r["value"] is not None
    ]
    in_nsys = {case for case, *_ in found}
    for case in dict.fromkeys(case for case, _ in counted if case not in in_nsys):
        names = [name for other, name in counted if other == case]
        found += [(case, order, name, None) for order, name in enumerate(names)]
    return found


def _namesake(counted: Mapping[_Key, Row], key: _Key, order: int) -> Row:
    """Returns the ncu values of the kernel with the same position and short name, else {}.

    The full names differ, because ncu and nsys print types differently.
    """
    names = [name for case, name in counted if case == key[0]]
    same = order < len(names) and short_name(names[order]) == short_name(key[1])
    return counted[key[0], names[order]] if same else {}


def _launch(kernel: Mapping[str, Any] | None) -> Row:
    if kernel is None:
        return {}
    return {
        "grid": "x".join(map(str, kernel["grid"])),
        "grid_blocks": prod(kernel["grid"]),
        "block": "x".join(map(str, kernel["block"])),
        "block_threads": prod(kernel["block"]),
        "registers_per_thread": kernel["registers_per_thread"],
        "shared_bytes": kernel["shared_bytes"],
    }


def _ncu_values(extract: Record) -> dict[_Key, Row]:
    """Returns the ncu values by case and kernel; durations of a kernel that runs twice in a launch are added."""
    found: dict[_Key, Row] = {}
    for row in extract["rows"]:
        column = next((c for c, metric in _NCU.items() if metric == row["metric"]), None)
        if row["tool"] != "ncu" or column is None or row["value"] is None:
            continue
        values = found.setdefault((row["case"], row["kernel"]), {})
        if column == "ncu_us":
            values[column] = values.get(column, 0.0) + row["value"]
        else:
            values.setdefault(column, int(row["value"]))
    return found
