"""Writes the results of a search: its record, the tables made from it, and the file with the best setting."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from msgspec.structs import asdict

from warplog.catalog import winners
from warplog.catalog.space import name_of
from warplog.core.columns import TUNE, Column
from warplog.core.errors import WarplogError
from warplog.core.records import Record, write_json
from warplog.measure.tuning.search import CHECK_ROUNDS, LOOK_TIME, Finding, Search
from warplog.metrics import occupancy
from warplog.tables.files import write_table

Row = dict[str, Any]


def write(search: Search) -> Record:
    """Writes the record, <variant>.csv and .parquet beside it, and the file with the best setting, if any.

    Raises:
        WarplogError: A file cannot be written.
    """
    job, ranking, minutes = search.job, search.ranking(), search.job.settings["minutes"]
    seen = sum(f.verdict[0] != "skipped" for f in search.findings.values())
    total = len(search.findings)
    status, reason = (
        "ok",
        "" if search.complete else f"{seen} of {total} settings measured in {minutes:g} minutes",
    )
    if not ranking:
        tried = (f.verdict for f in search.findings.values() if f.verdict[0] != "skipped")
        status, why = next(tried, ("skipped", "no setting was tried"))
        reason = f"no setting has a time; the first: {why}"
    head = job.head("tune", {"source_sha256": winners.fingerprint(job.variant)}, search.session)
    record = {
        **head,
        "status": status,
        "reason": reason,
        "campaign": search.campaign,
        "minutes": minutes,
        "check": {"cases": search.task.settings["check_cases"], "rounds": CHECK_ROUNDS},
        "look": dict(LOOK_TIME),
        "parameters": list(search.builds.space.values),
        "cases": list(search.task.settings["cases"]),
        "seen": seen,
        "settings": [_entry(search, finding) for finding in search.findings.values()],
        "ranking": [name_of(f.setting) for f in ranking],
    }
    write_json(job.record, record, "record")
    flops = {n: job.family.value(job.family.work.flops, job.family.cases[n]) for n in record["cases"]}
    write_tables(record, flops, job.record)
    if ranking:
        path = winners.winner_file(job.family, job.variant.name, job.gpu.slug)
        winners.write_winner(path, _winner(search, ranking, record))
    return record


def write_tables(record: Record, flops: Mapping[str, float], record_file: Path) -> None:
    """Writes the rows of a record as <variant>.csv and <variant>.parquet beside `record_file`."""
    parameters = {name: Column("int", "", "parameter") for name in record["parameters"]}
    write_table(rows(record, flops), {**TUNE, **parameters}, record_file.with_suffix(""))


def rows(record: Record, flops: Mapping[str, float]) -> list[Row]:
    """Returns the rows of the table, one per setting and case.

    Args:
        record: the record of the search.
        flops: floating-point operations of the algorithm by case; 0 if it has none.
    """
    ranks = {name: rank for rank, name in enumerate(record["ranking"], 1)}
    shared = {key: record[key] for key in ("family", "variant", "gpu")}
    found = []
    for entry in record["settings"]:
        kept = {k: v for k, v in entry.items() if k not in ("cases", "parameters")}
        base = {**shared, **entry["parameters"], **kept, "rank": ranks.get(entry["setting"])}
        timed = {case["case"]: case for case in entry["cases"]}
        for case in record["cases"]:
            row: Row = {**base, "case": case}
            if case in timed:
                row |= timed[case]
                time_us = row.get("final_us") or row["median_us"]
                row["gflops"] = flops[case] / time_us / 1e3 if flops[case] and time_us > 0 else None
            found.append(row)
    return found


def _entry(search: Search, finding: Finding) -> Record:
    status, reason = finding.verdict
    return {
        "setting": name_of(finding.setting),
        "parameters": dict(finding.setting),
        "is_default": finding.setting == search.builds.space.default(),
        "status": status,
        "reason": reason,
        "score_us": finding.score_us,
        **_resources(search, finding),
        "cases": _times(finding) if status == "ok" else [],
    }


def _times(finding: Finding) -> list[Record]:
    kept = ("median_us", "q1_us", "q3_us", "rel_spread", "samples")
    found = []
    for number, case in enumerate(finding.look["times"]):
        final = [record["times"][number]["cold"]["median_us"] for record in finding.final]
        found.append(
            {
                "case": case["case"],
                **{key: case["cold"][key] for key in kept},
                "hot_us": case["hot_us"],
                "final_us": median(final) if final else None,
            }
        )
    return found


def _resources(search: Search, finding: Finding) -> Record:
    kernels = finding.build.get("kernels", ())
    space = search.builds.space
    if not kernels:
        return {}
    threads = space.block_threads(finding.setting)
    largest = max(kernels, key=lambda k: k["registers_per_thread"])
    static = max(k["static_shared_bytes"] for k in kernels)
    shared = static + space.block_dynamic_shared_bytes(finding.setting)
    registers = largest["registers_per_thread"]
    try:
        held = occupancy.theoretical(registers, threads, shared, search.job.gpu.compute_capability)
        share: float | None = held.occupancy_pct
    except WarplogError:  # the chip's limits are unknown, or no SM can hold a block
        share = None
    return {
        "registers_per_thread": registers,
        "spill_bytes": sum(k["spill_store_bytes"] + k["spill_load_bytes"] for k in kernels),
        "block_threads": threads,
        "shared_bytes": shared,
        "theoretical_occupancy_pct": share,
    }


def _winner(search: Search, ranking: list[Finding], record: Record) -> winners.Winner:
    default = search.builds.space.default()
    of_default = next((f for f in ranking if f.setting == default), None)
    origin = record["provenance"]
    return winners.Winner(
        **asdict(_scored(ranking[0])),
        cases=record["cases"],
        default=_scored(of_default) if of_default else None,
        runner_up=_scored(ranking[1]) if len(ranking) > 1 else None,
        seen=record["seen"],
        settings=len(record["settings"]),
        source_sha256=record["source_sha256"],
        gpu_name=origin["gpu_name"],
        driver=origin["driver"],
        nvcc=search.builds.nvcc.version or "",
        campaign=record["campaign"],
        commit=origin["commit"],
        found=origin["finished"],
    )


def _scored(finding: Finding) -> winners.Scored:
    return winners.Scored(parameters=finding.setting, score_us=finding.score_us or 0.0)
