"""The rows of `warplog extract`: one per kernel launch and metric, with the same columns for every tool."""

import re
from typing import NamedTuple

from warplog.metrics import METRICS
from warplog.records.fields import Status


class Row(NamedTuple):
    """The value of a metric of one launch; `source` is the report as the user named it, "" until that is known."""

    source: str
    tool: str
    tool_version: str
    gpu: str
    cc: str
    kernel: str
    launch: int
    metric: str
    value: float | None
    unit: str
    status: Status
    reason: str


COLUMNS = Row._fields


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
    if value is not None:
        return Row("", tool, version, gpu, cc, kernel, launch, metric, value, unit, "ok", "")
    why = absent or f"{tool} does not report it"
    return Row("", tool, version, gpu, cc, kernel, launch, metric, None, unit, "missing", why)


def capability_of(arch: str) -> str:
    """Returns `9.0` for `sm_90a`; "" if `arch` is empty."""
    digits = "".join(re.findall(r"[0-9]", arch))
    return f"{digits[:-1]}.{digits[-1]}" if len(digits) > 1 else ""
