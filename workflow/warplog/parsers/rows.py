"""The rows of `warplog extract`: one per kernel launch and metric, with the same columns for every tool."""

import re
from typing import Any

from warplog.metrics import METRICS

Row = dict[str, Any]
COLUMNS = (
    "source",
    "tool",
    "tool_version",
    "gpu",
    "cc",
    "kernel",
    "launch",
    "metric",
    "value",
    "unit",
    "status",
    "reason",
)


def row(
    tool: str,
    kernel: str,
    launch: int,
    metric: str,
    value: float | None,
    version: str = "",
    gpu: str = "",
    cc: str = "",
    absent: str = "",
) -> Row:
    """Returns a row without its source; without a value it has the status "missing" and the reason `absent`."""
    unit = METRICS[metric].unit if metric in METRICS else "inst"
    status, reason = ("ok", "") if value is not None else ("missing", absent or f"{tool} does not report it")
    return {
        "tool": tool,
        "tool_version": version,
        "gpu": gpu,
        "cc": cc,
        "kernel": kernel,
        "launch": launch,
        "metric": metric,
        "value": value,
        "unit": unit,
        "status": status,
        "reason": reason,
    }


def capability_of(arch: str) -> str:
    """Returns `9.0` for `sm_90a`; "" if `arch` is empty."""
    digits = "".join(re.findall(r"[0-9]", arch))
    return f"{digits[:-1]}.{digits[-1]}" if len(digits) > 1 else ""
