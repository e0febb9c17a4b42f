"""The table of compare_timers.py: makes rows from times, and formats them as CSV and Markdown."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warplog.records.measured import worst
from warplog.records.remarks import agreement_words
from warplog.tables.agreement import agreement

TIMERS = ("nvbench_us", "warplog_cold_us", "ncu_us", "warplog_hot_us", "nsys_us")
RATIOS = {
    "nvbench_over_ncu": ("nvbench_us", "ncu_us"),
    "cold_over_ncu": ("warplog_cold_us", "ncu_us"),
    "hot_over_nsys": ("warplog_hot_us", "nsys_us"),
}
COLUMNS = ("kernel", "case", "megabytes", *TIMERS, *RATIOS, "status", "reason")
HEADINGS = {
    "megabytes": "MB",
    "nvbench_us": "NVBench",
    "warplog_cold_us": "warplog cold",
    "ncu_us": "ncu",
    "warplog_hot_us": "warplog hot",
    "nsys_us": "nsys",
    "nvbench_over_ncu": "NVBench/ncu",
    "cold_over_ncu": "cold/ncu",
    "hot_over_nsys": "hot/nsys",
}
_DIGITS = {"megabytes": 1, **dict.fromkeys(TIMERS, 2), **dict.fromkeys(RATIOS, 3)}

Row = dict[str, Any]


@dataclass(frozen=True)
class Timing:
    """Result of one timer for one case: the median in microseconds, or the status and reason if it has none."""

    us: float | None
    status: str = "ok"
    reason: str = ""


def make_row(kernel: str, case: str, megabytes: float, found: Mapping[str, Timing]) -> Row:
    """Returns one row of the table.

    The status is that of the first timer without a time; else 'disagree' if warplog's times differ from the
    profilers' by more than 3 % + 1 us, as in its own tables; else 'ok'. The reason contains all remarks.

    Args:
        kernel: name of the kernel.
        case: name of the case.
        megabytes: traffic of the case in MB.
        found: a Timing for each of TIMERS.
    """
    us = {name: found[name].us for name in TIMERS}
    remarks = [f"{name.split('_')[0]}: {found[name].reason}" for name in TIMERS if found[name].reason]
    status = worst(found[name].status for name in TIMERS)
    cold, hot = us["warplog_cold_us"], us["warplog_hot_us"]
    if cold is not None and hot is not None:
        verdict = agreement([cold], [hot], us["ncu_us"], us["nsys_us"])
        if verdict.code == "disagree":
            remarks.append(f"disagree: {agreement_words(verdict.notes)}")
            status = "disagree" if status == "ok" else status
    row: Row = {"kernel": kernel, "case": case, "megabytes": megabytes, **us}
    for ratio, (over, under) in RATIOS.items():
        row[ratio] = us[over] / us[under] if us[over] and us[under] else None
    return row | {"status": status, "reason": "; ".join(dict.fromkeys(remarks))}


def as_csv(rows: Sequence[Row]) -> str:
    """Returns the rows as CSV with COLUMNS, in full precision; missing numbers are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_markdown(rows: Sequence[Row], about: str) -> str:
    """Returns the rows as an aligned Markdown table below the line `about`, followed by the reasons."""
    columns = [c for c in COLUMNS if c != "reason"]
    cells = [[HEADINGS.get(c, c) for c in columns], *([_cell(c, row[c]) for c in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    numeric = [c in _DIGITS for c in columns]
    rule = [f"{'-' * (w - 1)}:" if n else "-" * w for w, n in zip(widths, numeric, strict=True)]
    lines = [
        [text.rjust(w) if n else text.ljust(w) for text, w, n in zip(line, widths, numeric, strict=True)]
        for line in (cells[0], rule, *cells[1:])
    ]
    table = [f"| {' | '.join(line)} |" for line in lines]
    concerned: dict[str, list[str]] = {}
    for row in rows:
        concerned.setdefault(row["reason"], []).append(f"{row['kernel']} {row['case']}")
    notes = [f"- {', '.join(cases)}: {reason}" for reason, cases in concerned.items() if reason]
    return "\n".join([about, "", *table, *(["", *notes] if notes else []), ""])


def _cell(column: str, value: Any) -> str:
    if column not in _DIGITS:
        return str(value)
    return "n/a" if value is None else f"{value:.{_DIGITS[column]}f}"
