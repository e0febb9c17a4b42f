"""Writes the results of a search: its record, the tables made from it, and the file with the best setting."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from msgspec import structs

from warplog.catalog import winners
from warplog.catalog.family import load_family
from warplog.catalog.space import name_of
from warplog.core.columns import TUNE, Cell, Column
from warplog.core.errors import WarplogError
from warplog.machine import toolchain
from warplog.measure.family_board import board_of
from warplog.measure.job import Refusal, make_jobs
from warplog.measure.tuning.finalists import Decision, Fight, decide
from warplog.measure.tuning.search import CHECK_ROUNDS, LOOK_TIME, Finding, Search, make_search, times
from warplog.metrics import occupancy
from warplog.records import door
from warplog.records.config import TimeSettings, TuneSettings
from warplog.records.requested.tune import Look, Setting, Tune, TuneCheck, TunedCase
from warplog.tables.files import write_table

Row = dict[str, Cell]
_LOOK = (
    *("min_samples", "max_samples", "max_seconds", "rel_error"),
    *("warmup_launches", "warmup_ms", "hot_seconds", "hot_cases"),
)


def tune_variant(
    *,
    family_file: Path,
    variant: str,
    gpu: str,
    arch: str,
    settings: TuneSettings,
    time: TimeSettings,
    campaign: Path,
    timer: Path,
    record: Path,
    cores: int,
    fight: Fight,
) -> None:
    """Searches the best parameters of a variant within its time limit, lets the best duel, and writes the results.

    Args:
        gpu: slug of the campaign's GPU; arch: the architecture to compile for.
        time: the settings of timing, which the last comparison of the best settings follows.
        campaign: the campaign record; timer: the compiled timing core; record: the file of the results.
        cores: how many compilers run at once.
        fight: the duel of two builds.

    Raises:
        WarplogError: a tool or the GPU is missing, or a file cannot be written.
    """
    toolchain.ensure("cuda")
    tools = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    family = load_family(family_file)
    scratch = record.with_name(f".{family.name}.{variant}.work")
    (job,) = make_jobs(
        family=family,
        variants=[variant],
        gpu=board_of(family.name, gpu, campaign.parents[1]),
        builds=[scratch / "settings" / "record.json"],
        campaign=campaign,
        settings=settings,
        record=record,
    )
    search = make_search(job, job.campaign, arch, tools, timer, time, cores)
    search.run()
    write(search, decide(search, fight))
    search.discard()


def write(search: Search, decision: Decision) -> Tune:
    """Writes the record, <variant>.csv and .parquet beside it, and the file with the best setting, if any.

    Raises:
        WarplogError: A file cannot be written.
    """
    job, ranking, minutes = search.job, decision.ranking, search.job.settings.minutes
    tried = [f.verdict for f in search.findings.values() if f.verdict[0] != "skipped"]
    total = len(search.findings)
    outcome: Refusal = "ok", ""
    if not ranking:
        status, why = tried[0] if tried else ("skipped", "no setting was tried")
        outcome = status, f"no setting has a time; the first: {why}"
    elif not search.complete:
        outcome = "ok", f"{len(tried)} of {total} settings measured in {minutes:g} minutes"
    record = Tune(
        **job.head(search.session, outcome, source_sha256=winners.fingerprint(job.variant)),
        campaign=search.campaign,
        minutes=minutes,
        check=TuneCheck(cases=search.work.check_cases, rounds=CHECK_ROUNDS),
        look=Look(**{name: getattr(LOOK_TIME, name) for name in _LOOK}),
        parameters=tuple(search.builds.space.values),
        cases=search.work.cases,
        seen=len(tried),
        settings=tuple(_entry(search, finding) for finding in search.findings.values()),
        ranking=_names(ranking),
        picked=next(iter(_names(search.ranking())), ""),
        finalists=_names(decision.finalists),
        duels=decision.duels,
        decided_by="search" if decision.no_duel else "duels",
        no_duel=decision.no_duel,
    )
    door.write(job.record, record)
    formula, cases = job.family.work.flops, job.family.cases
    flops = {n: job.family.amount(formula, cases[n], job.gpu.sms) for n in record.cases}
    write_tables(record, flops, job.record)
    if ranking:
        path = winners.winner_file(job.family, job.variant.name, job.gpu.slug)
        winners.write_winner(path, _winner(search, ranking, record))
    return record


def write_tables(record: Tune, flops: Mapping[str, float], record_file: Path) -> None:
    """Writes the rows of a record as <variant>.csv and <variant>.parquet beside `record_file`."""
    parameters = {name: Column("int", "", "parameter") for name in record.parameters}
    write_table(rows(record, flops), {**TUNE, **parameters}, record_file.with_suffix(""))


def rows(record: Tune, flops: Mapping[str, float]) -> list[Row]:
    """Returns the rows of the table, one per setting and case.

    Args:
        record: the record of the search.
        flops: floating-point operations of the algorithm by case; 0 if it has none.
    """
    ranks = {name: rank for rank, name in enumerate(record.ranking, 1)}
    rows_of_settings = []
    for entry in record.settings:
        kept = {k: v for k, v in structs.asdict(entry).items() if k not in ("cases", "parameters")}
        base: Row = {"family": record.family, "variant": record.variant, "gpu": record.gpu}
        base |= {**entry.parameters, **kept, "rank": ranks.get(entry.setting)}
        timed = {case.case: case for case in entry.cases}
        for name in record.cases:
            row: Row = {**base, "case": name}
            if case := timed.get(name):
                row |= structs.asdict(case)
                time_us = case.final_us or case.median_us
                row["gflops"] = flops[name] / time_us / 1e3 if flops[name] and time_us > 0 else None
            rows_of_settings.append(row)
    return rows_of_settings


def _names(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(name_of(finding.setting) for finding in findings)


def _entry(search: Search, finding: Finding) -> Setting:
    status, reason = finding.verdict
    entry = Setting(
        setting=name_of(finding.setting),
        parameters=dict(finding.setting),
        is_default=finding.setting == search.builds.space.default(),
        status=status,
        reason=reason,
        score_us=finding.score_us,
        cases=_times(finding) if status == "ok" else (),
    )
    return _with_resources(entry, search, finding)


def _times(finding: Finding) -> tuple[TunedCase, ...]:
    assert finding.look is not None
    finals = [[case.median_us for case in times(result)] for result in finding.final]
    return tuple(
        structs.replace(case, final_us=median(cases[number] for cases in finals) if finals else None)
        for number, case in enumerate(times(finding.look))
    )


def _with_resources(entry: Setting, search: Search, finding: Finding) -> Setting:
    if finding.build is None or not finding.build.kernels:
        return entry
    kernels, space = finding.build.kernels, search.builds.space
    threads = space.block_threads(finding.setting)
    registers = max(kernel.registers_per_thread for kernel in kernels)
    static = max(kernel.static_shared_bytes for kernel in kernels)
    shared = static + space.block_dynamic_shared_bytes(finding.setting)
    try:
        held = occupancy.theoretical(registers, threads, shared, search.job.gpu.compute_capability)
        share: float | None = held.occupancy_pct
    except WarplogError:  # the chip's limits are unknown, or no SM can hold a block
        share = None
    return structs.replace(
        entry,
        registers_per_thread=registers,
        spill_bytes=sum((k.spill_store_bytes or 0) + (k.spill_load_bytes or 0) for k in kernels),
        block_threads=threads,
        shared_bytes=shared,
        theoretical_occupancy_pct=share,
    )


def _winner(search: Search, ranking: Sequence[Finding], record: Tune) -> winners.Winner:
    default = search.builds.space.default()
    of_default = next((f for f in ranking if f.setting == default), None)
    origin = record.provenance
    return winners.Winner(
        **structs.asdict(_scored(ranking[0])),
        cases=record.cases,
        default=_scored(of_default) if of_default else None,
        runner_up=_scored(ranking[1]) if len(ranking) > 1 else None,
        seen=record.seen,
        settings=len(record.settings),
        source_sha256=record.source_sha256,
        gpu_name=origin.gpu_name,
        driver=origin.driver,
        nvcc=search.builds.nvcc.version or "",
        campaign=record.campaign,
        commit=origin.commit,
        found=origin.finished,
    )


def _scored(finding: Finding) -> winners.Scored:
    return winners.Scored(parameters=finding.setting, score_us=finding.score_us or 0.0)
