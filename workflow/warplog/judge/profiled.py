"""A report of ncu, or a trace of nsys, as a campaign to compare: each kernel configuration is a case.

The samples are the durations of its launches. A report has few of them, so most verdicts on time are AMBIGUOUS; the
counters of ncu reports are compared with the same tolerances as those of campaigns. Reports do not record the driver
and the clock settings, so these are not compared.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

from warplog.analysis.counters import TOLERANCES
from warplog.core.errors import WarplogError
from warplog.judge.samples import CONDITIONS, Campaign, Key, Measured, Samples
from warplog.parsers.nsys import sqlite, tables
from warplog.parsers.nsys.sqlite import NsysReport
from warplog.parsers.reports import read_any
from warplog.parsers.rows import Row

_ABSENT = "not recorded"
_NEEDED = frozenset(("duration_us", "sm_mhz_in_ncu", "grid_blocks", "block_threads", *TOLERANCES))


def load(path: Path) -> Campaign:
    """Loads the kernels of an ncu report or page, or of an SQLite export of nsys.

    Raises:
        WarplogError: the report cannot be read, or contains no durations of launches.
    """
    try:
        with path.open("rb") as file:
            is_trace = tables.is_sqlite(file.read(len(tables.MAGIC)))
    except OSError as error:
        raise WarplogError(f"{path}: cannot be read ({error.strerror})") from None
    cases = _of_trace(sqlite.read(path)) if is_trace else _of_launches(read_any(path))
    if not cases:
        raise WarplogError(
            f"{path}: contains no durations of single launches; compare ncu reports or SQLite exports"
        )
    return Campaign(str(path), cases)


def _of_trace(report: NsysReport) -> dict[Key, Measured]:
    times: dict[tuple[Key, str], list[float]] = defaultdict(list)
    for kernel in report.kernels:
        case = _case(math.prod(kernel.grid), math.prod(kernel.block))
        times[("nsys", kernel.name, case), report.gpu(kernel.device).name].append(kernel.duration_ns * 1e-3)
    return {key: _measured(gpu, Samples(tuple(times_us))) for (key, gpu), times_us in times.items()}


def _of_launches(rows: Iterable[Row]) -> dict[Key, Measured]:
    """Returns the launches of an ncu report; counters are averages over the launches of a case."""
    launches: dict[tuple[int, str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.tool == "ncu" and row.metric in _NEEDED and row.value is not None:
            launches[row.launch, row.kernel, row.gpu][row.metric] = row.value
    grouped: dict[tuple[Key, str], list[dict[str, float]]] = defaultdict(list)
    for (_, kernel, gpu), values in launches.items():
        if values.get("duration_us", 0.0) > 0:
            case = _case(values.get("grid_blocks"), values.get("block_threads"))
            grouped[("ncu", kernel, case), gpu].append(values)
    return {key: _averaged(gpu, launches) for (key, gpu), launches in grouped.items()}


def _averaged(gpu: str, launches: list[dict[str, float]]) -> Measured:
    clocks = tuple(values["sm_mhz_in_ncu"] for values in launches if "sm_mhz_in_ncu" in values)
    samples = Samples(
        tuple(values["duration_us"] for values in launches), clocks if len(clocks) == len(launches) else None
    )
    shared = [name for name in TOLERANCES if all(name in values for values in launches)]
    return _measured(gpu, samples, {name: fmean(values[name] for values in launches) for name in shared})


def _measured(gpu: str, samples: Samples, counters: Mapping[str, float] | None = None) -> Measured:
    conditions = dict.fromkeys(CONDITIONS, _ABSENT) | {"gpu_name": gpu or _ABSENT}
    return Measured("ok", "", conditions, {}, (samples,), counters=counters or {})


def _case(blocks: float | None, threads: float | None) -> str:
    return "any size" if blocks is None or threads is None else f"{blocks:.0f} blocks of {threads:.0f}"
