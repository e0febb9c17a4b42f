"""How boards of one model differ: the times of the oracle's kernels on each, relative to the median board."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from warplog.core.records import FamilyRecord, Record

Row = dict[str, Any]


def rows(records: Iterable[FamilyRecord]) -> list[Row]:
    """Returns the rows of the table `boards`: one per kernel, case and board, in the order of the records."""
    found = [row for one in records for row in _rows(one)]
    times: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in found:
        if row["status"] == "ok":
            times[_kernel(row)].append(row["median_us"])
    for row in found:
        if row["status"] == "ok":
            row["ratio_to_median"] = row["median_us"] / statistics.median(times[_kernel(row)])
    return found


def summary(found: Sequence[Mapping[str, Any]]) -> str:
    """Returns one line: how many boards there are, and how far apart the slowest and the fastest kernel are."""
    ratios: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in found:
        if row["status"] == "ok":
            ratios[_kernel(row)].append(row["ratio_to_median"])
    count = len({row["board"] for row in found})
    apart = {kernel: max(values) / min(values) - 1 for kernel, values in ratios.items() if len(values) > 1}
    boards = "one board" if count == 1 else f"{count} boards"
    if not apart:
        return f"{boards}; nothing to compare"
    worst = max(apart, key=lambda kernel: apart[kernel])
    return (
        f"{boards}; {len(apart)} control kernels differ by at most {100 * apart[worst]:.2f} % ({worst[-1]})"
    )


def _kernel(row: Mapping[str, Any]) -> tuple[str, ...]:
    return str(row["family"]), str(row["variant"]), str(row["case"])


def _rows(records: FamilyRecord) -> Iterator[Row]:
    for variant, record in records.variants.items():
        for case in record["cases"]:
            key = {"family": record["family"], "variant": variant, "case": case["case"]}
            board = {"board": record["provenance"]["gpu_uuid"]}
            outcome = {"status": case["status"], "reason": case["reason"]}
            yield {**key, **board, **outcome, **(_times(case) if case["status"] == "ok" else {})}


def _times(case: Record) -> Row:
    medians = [one["median_us"] for one in case.get("processes", ())]
    spread = max(medians) / min(medians) - 1 if len(medians) > 1 and min(medians) > 0 else None
    cold = case["cold"]
    return {
        "median_us": cold["median_us"],
        "process_spread": spread,
        "sm_mhz": cold.get("sm_mhz"),
        "set_mhz": cold.get("set_mhz"),
        "power_w": case.get("power_w"),
    }
