"""The time of a campaign by stage and variant: building, checking, timing and profiling."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from warplog.core.columns import Cell, Row
from warplog.records.build import Build
from warplog.records.check import Check
from warplog.records.measured import Absent
from warplog.records.profile import Profile
from warplog.records.time import Time
from warplog.tables.verified_records import Source, VariantRecords


def stage_rows(records: VariantRecords, source: Source, family: str, variant: str) -> Iterator[Row]:
    """Yields one row per stage with a record; the `seconds` of a stage add up over variants."""
    stages = (("build", records.build), ("check", records.check), ("time", records.time))
    for stage, record in (*stages, *records.captures.items()):
        if record.status != "missing":
            key: Row = {"family": family, "variant": variant, "stage": stage, "status": record.status}
            yield {**key, **_cost(record), **source.labels()}


def _cost(record: Build | Check | Time | Profile | Absent) -> Row:
    if isinstance(record, Absent):
        return {"seconds": 0.0}
    if isinstance(record, Build):
        return {"seconds": record.seconds}
    ran = [case.seconds for case in record.cases if case.seconds is not None]
    made = record.provenance
    return {
        "cases": len(ran),
        "seconds": sum(ran),
        "start_seconds": record.session.start_seconds or None,
        **{"board": made.gpu_uuid, "commit": made.commit, "finished": made.finished},
    }


def summary(rows: Iterable[Row]) -> str:
    """Summarises a campaign's time in one line: seconds per GPU stage, including session starts, and of compiling."""
    totals: dict[str, float] = defaultdict(float)
    for row in rows:
        totals[str(row["stage"])] += _number(row["seconds"]) + _number(row.get("start_seconds"))
    compiler = totals.pop("build", 0.0)
    parts = ", ".join(f"{stage} {seconds:.0f}" for stage, seconds in totals.items())
    return f"{sum(totals.values()):.0f} s on the GPU ({parts}); {compiler:.0f} s of compiler"


def _number(cell: Cell) -> float:
    return float(cell) if isinstance(cell, (int, float)) else 0.0
