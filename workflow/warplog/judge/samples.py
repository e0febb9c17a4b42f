"""Reads what the comparison of campaigns requires: times per process, counters and conditions of each case."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median

from warplog.analysis.counters import totals
from warplog.analysis.verdicts import Timed
from warplog.core import store
from warplog.core.errors import WarplogError
from warplog.records import campaign, door
from warplog.records.check import Check
from warplog.records.extract import Extract, MetricRow
from warplog.records.family_file import FamilyRecord
from warplog.records.measured import Absent
from warplog.records.stages import CHECK, EXTRACT, ROUND, START, TIME
from warplog.records.time import Cold, Process, Time, TimeCase
from warplog.records.verification import manifest
from warplog.records.verification.invariants import shown_correct

CONDITIONS = ("gpu_name", "driver", "clocks")
_REMARKED = ("gpu_uuid", "nvcc", "cuda_runtime")
_MOST_VALUE = 1e12

_NO_CHECK = Absent(status="missing", reason="the campaign has no check of it")

# Rest: cold launches with pauses, so that no limit acts. Sustained: back to back until a limit lowers the clock.
REST, SUSTAINED = REGIMES = ("rest", "sustained")

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Samples:
    """Times of one case in one process in microseconds, and the SM clock of each in MHz if it was recorded."""

    times_us: tuple[float, ...]
    sm_mhz: tuple[float, ...] | None = None

    @cached_property
    def median_us(self) -> float:
        """The median time in microseconds."""
        return median(self.times_us)

    @cached_property
    def median_cycles(self) -> float | None:
        """The median number of SM cycles, None without clocks."""
        if self.sm_mhz is None:
            return None
        return median(us * mhz for us, mhz in zip(self.times_us, self.sm_mhz, strict=True))


@dataclass(frozen=True)
class Measured:
    """The measurement of one case of one variant.

    Attributes:
        status: "ok", or that of the first stage that is not ok; `reason` states why.
        conditions: what must be equal for a comparison (gpu_name, driver, clocks), as recorded.
        remarks: what may differ but is reported (board, compiler, throttle reasons).
        processes: the cold samples of each process, with SM clocks if recorded; empty if the status is not ok.
        sustained_us: mean time per launch of each process in the sustained regime; empty if not measured.
        counters: those of SUMMED and LARGEST that the profiler could read.
        source: fingerprint of the measured source, its headers and parameters.
        times: by regime the time that is compared; see floors.with_times.
    """

    status: str
    reason: str
    conditions: Mapping[str, str]
    remarks: Mapping[str, str]
    processes: tuple[Samples, ...]
    sustained_us: tuple[float, ...] = ()
    counters: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    times: Mapping[str, Timed] = field(default_factory=dict)

    @property
    def cycles(self) -> float | None:
        """The median of the processes' medians in SM cycles; None without clocks."""
        per_process = [process.median_cycles for process in self.processes]
        return (
            median(cycles for cycles in per_process if cycles) if per_process and all(per_process) else None
        )

    def numbers(self, regime: str = REST) -> tuple[float, ...]:
        """Returns one time per process in microseconds: the medians at rest, or the means when sustained."""
        return (
            self.sustained_us
            if regime == SUSTAINED
            else tuple(process.median_us for process in self.processes)
        )


@dataclass(frozen=True)
class Campaign:
    """The measurements of a campaign, by family, variant and case.

    Attributes:
        failed: status and reason of variants that have no cases.
        rounds: its A/A rounds, each a whole measurement of the same variants in fresh processes; may be empty.
        started: start time, ISO 8601 UTC; commit: the measured commit; "" if unknown.
    """

    name: str
    cases: Mapping[Key, Measured]
    failed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    rounds: tuple["Campaign", ...] = ()
    started: str = ""
    commit: str = ""


def load(folder: Path, gpu: str = "", counted: bool = True) -> Campaign:
    """Loads the timings and counters in `folder` and its A/A rounds, for its only GPU or the one with slug `gpu`.

    Without `counted`, no counters are read, which takes half as long.

    Raises:
        WarplogError: the folder has no timings, or timings of several GPUs but not of `gpu`; a record is not readable;
            a file is not as the manifest of a recorded campaign says.
    """
    manifest.check(folder)
    slugs = gpus(folder)
    if len(slugs) != 1 and gpu not in slugs:
        problem = f"several GPUs ({', '.join(slugs)}); name one with --gpu" if slugs else "no timings"
        raise WarplogError(f"{folder}/time: {problem}")
    gpu = gpu if gpu in slugs else slugs[0]
    cases: dict[Key, Measured] = {}
    failed: dict[tuple[str, str], str] = {}
    for path in TIME.files(folder, gpu=gpu):
        counts = EXTRACT.at(folder, gpu=gpu, family=path.stem)
        extracted = FamilyRecord.read_if_there(counts, Extract).variants if counted else {}
        checked = CHECK.at(folder, gpu=gpu, family=path.stem)
        checks = FamilyRecord.read(checked, Check).variants if store.is_file(checked) else None
        for variant, timed in FamilyRecord.read(path, Time).variants.items():
            key = (path.stem, variant)
            record = timed
            if checks is not None:  # A/A rounds have no checks of their own
                record = shown_correct(timed, checks.get(variant, _NO_CHECK))
            counters = _counters(extracted[variant]) if variant in extracted else {}
            if not record.cases:
                failed[key] = f"{record.status}: {record.reason}".rstrip(": ")
            for case in record.cases:
                where = f"{path}: {variant}: case {case.case}"
                cases[(*key, case.case)] = _measured(record, case, counters.get(case.case, {}), where)
    about = about_campaign(folder, gpu)
    rounds = load_rounds(folder, gpu, counted)
    if about is None:
        return Campaign(str(folder), cases, failed, rounds)
    return Campaign(about.campaign, cases, failed, rounds, about.started, about.commit)


def about_campaign(folder: Path, gpu: str) -> campaign.Campaign | None:
    """Returns the record of the campaign in `folder`; None if it has none, as an A/A round.

    Raises:
        WarplogError: it is not readable.
    """
    path = START.at(folder, gpu=gpu)
    return door.read(path, campaign.Campaign) if path.is_file() else None


def load_rounds(folder: Path, gpu: str, counted: bool = True) -> tuple[Campaign, ...]:
    """Loads the A/A rounds of a GPU below `folder`, in order; each is a results folder, aa/round<n>.

    Raises:
        WarplogError: a record is not readable.
    """
    folders = {path.parents[2] for path in ROUND.files(folder, gpu=gpu)}
    return tuple(load(path, gpu, counted) for path in sorted(folders, key=lambda p: (len(p.name), p.name)))


def gpus(folder: Path) -> list[str]:
    """Returns the slugs of the GPUs with timings in the folder."""
    return sorted({path.parent.name for path in TIME.files(folder)})


def _measured(record: Time, case: TimeCase, counters: Mapping[str, float], where: str) -> Measured:
    made = record.provenance
    # The driver reports a limit for a while after it acted; the clock that was set says more.
    clocks = any(process.set_mhz for process in case.processes)
    throttle = "" if clocks or case.board is None else ", ".join(case.board.throttle_reasons)
    return Measured(
        case.status,
        case.reason,
        {name: getattr(made, name) for name in CONDITIONS},
        {**{name: getattr(made, name) for name in _REMARKED}, "throttle": throttle},
        tuple(_processes(case.cold, case.processes, where)) if case.cold else (),
        _positive([run.mean_us for run in case.sustained_runs], f"{where}: the sustained times"),
        counters,
        record.source_sha256,
    )


def _processes(cold: Cold, processes: Sequence[Process], where: str) -> Iterator[Samples]:
    """Yields the cold samples of each process: their parts of the list of all samples, in its order.

    The clock of a process is the set one if it was recorded: what the clock generator skips below it is the kernel's
    own doing.
    """
    times = cold.samples_us
    counted = sum(process.samples for process in processes)
    if counted != len(times):
        why = f"its processes have {counted} samples, the case has {len(times)}"
        raise WarplogError(f"{where}: {why}; time the variant again")
    clocks = cold.sm_mhz_samples if len(cold.sm_mhz_samples) == len(times) else None
    start = 0
    for process in processes:
        end = start + process.samples
        mhz = (process.set_mhz,) * process.samples if process.set_mhz else clocks and clocks[start:end]
        if process.samples:
            samples = Samples(times[start:end], mhz)
            # A single one may be 0 or less: a copy can be as short as the empty interval that is subtracted.
            _positive([samples.median_us], f"{where}: the medians of its processes")
            yield samples
        start = end


def _positive(us: Sequence[float], subject: str) -> tuple[float, ...]:
    if not all(0 < time_us < _MOST_VALUE for time_us in us):
        raise WarplogError(f"{subject} are not all positive numbers; time the variant again")
    return tuple(us)


def _counters(record: Extract) -> dict[str, dict[str, float]]:
    """Returns the counters by case."""
    by_case: dict[str, list[MetricRow]] = {}
    for row in record.rows:
        if row.tool == "ncu":
            by_case.setdefault(row.case, []).append(row)
    found = {case: totals((row.metric, row.value) for row in rows) for case, rows in by_case.items()}
    return {case: counters for case, counters in found.items() if counters}
