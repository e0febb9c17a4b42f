"""The kernels that a library launches, case by case: what cuBLAS or CUB chose, and what each part costs."""

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
    """One row for each different kernel or copy of each captured case, in the order of the launch.

    Where an extract record holds no launch configuration of nsys (`kernels`), that of ncu serves.
    """
    seen = {(k["case"], k["kernel"]): k for k in extract.get("kernels", ())}
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
                "kind": "kernel" if key in seen else kinds.get(key, "kernel"),
                "kernel": name,
                "short_name": short_name(name),
                "is_split_k": bool(SPLIT_K.search(name)),
                **counted.get(key, _namesake(counted, key, order)),
                **_launch(seen.get(key)),
                "nsys_us": nsys_us,
                "share_pct": 100 * nsys_us / whole[case] if nsys_us and whole.get(case) else None,
            }
        )
    return rows


def _parts(extract: Record, counted: Mapping[_Key, Row]) -> list[tuple[str, int, str, float | None]]:
    """Case, order, kernel and nsys' time of each part of a launch; by ncu alone where nsys has none."""
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
    """ncu's values of the kernel at the same place with the same short name: tools write types differently."""
    names = [name for case, name in counted if case == key[0]]
    same = order < len(names) and short_name(names[order]) == short_name(key[1])
    return counted[key[0], names[order]] if same else {}


def _launch(seen: Mapping[str, Any] | None) -> Row:
    if seen is None:
        return {}
    return {
        "grid": "x".join(map(str, seen["grid"])),
        "grid_blocks": prod(seen["grid"]),
        "block": "x".join(map(str, seen["block"])),
        "block_threads": prod(seen["block"]),
        "registers_per_thread": seen["registers_per_thread"],
        "shared_bytes": seen["shared_bytes"],
    }


def _ncu_values(extract: Record) -> dict[_Key, Row]:
    """ncu's values by case and kernel; of a kernel that runs twice in a launch the durations are added."""
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
