"""The time of a campaign by stage and variant: building, checking, timing and profiling."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from warplog.core.records import Record
from warplog.tables.records import Source, VariantRecords


def stage_rows(
    records: VariantRecords, captures: Mapping[str, Record], source: Source, family: str, variant: str
) -> Iterator[dict[str, Any]]:
    """Yields one row per stage with a record; the `seconds` of a stage add up over variants."""
    for stage, record in {
        "build": records.build,
        "check": records.check,
        "time": records.time,
        **captures,
    }.items():
        if record["status"] != "missing":
            yield {"family": family, "variant": variant, "stage": stage, **_cost(record), **source.labels()}


def _cost(record: Record) -> dict[str, Any]:
    if "seconds" in record:
        return {"status": record["status"], "seconds": record["seconds"]}
    ran = [case["seconds"] for case in record["cases"] if "seconds" in case]
    start = record.get("session", {}).get("start_seconds")
    return {"status": record["status"], "cases": len(ran), "seconds": sum(ran), "start_seconds": start}


def summary(rows: list[dict[str, Any]]) -> str:
    """Summarises a campaign's time in one line: seconds per GPU stage, including session starts, and of compiling."""
    totals: dict[str, float] = defaultdict(float)
    for row in rows:
        totals[row["stage"]] += row["seconds"] + (row.get("start_seconds") or 0.0)
    compiler = totals.pop("build", 0.0)
    parts = ", ".join(f"{stage} {seconds:.0f}" for stage, seconds in totals.items())
    return f"{sum(totals.values()):.0f} s on the GPU ({parts}); {compiler:.0f} s of compiler"
