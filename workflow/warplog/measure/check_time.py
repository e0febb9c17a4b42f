"""Stages check and time: one worker runs all variants of a family.

Variants that must not be measured get a record with the reason. Records with unchanged inputs are kept.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Generic

from msgspec.structs import replace

from warplog.core.hashing import sha256_of
from warplog.measure.job import (
    Job,
    Refusal,
    Settings,
    family_task,
    keep,
    measured,
    own_results,
    proofs,
    refuse_build,
    refuse_unproven,
    task_of,
)
from warplog.measure.pooling import found_at_rest, missing_runs, missing_sustained, pooled
from warplog.measure.results import Result
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import CaseRun, CheckWork, SustainWork, TimeWork
from warplog.measure.trial import try_reference
from warplog.records import door
from warplog.records.check import Check, CheckCase
from warplog.records.config import CheckSettings, TimeSettings
from warplog.records.measured import Case, Session, worst
from warplog.records.time import NoSustained, Time, TimeCase

Pair = tuple[str, str]  # variant and case
_NEAR_FASTEST = 1.05


class Measurement(Generic[Settings]):
    """One stage of one variant.

    Args:
        job: the variant's job.
        stage: check or time.
        cases: names of the cases.
        refusal: status and reason if the variant must not be measured, else None.
    """

    def __init__(self, job: Job[Settings], stage: str, cases: Sequence[str], refusal: Refusal | None) -> None:
        self.job, self.cases, self.refusal = job, tuple(cases), refusal
        contract = (dict(job.variant.memory), job.family.measuring)
        self.inputs_sha256 = sha256_of(
            stage, job.inputs_sha256, door.plain(job.build), self.cases, refusal, contract
        )

    @property
    def runnable(self) -> tuple[str, ...]:
        """The cases that the worker runs: the supported ones; none if the variant is refused."""
        return () if self.refusal else self.job.fitting(self.cases)

    def over_cases(self, entries: Sequence[Case]) -> Refusal:
        """Returns status and reason of the record: those of the first supported case that is not ok.

        Skipped cases come last.
        """
        if self.refusal:
            return self.refusal
        counted = [entry for entry in entries if entry.status != "unsupported"]
        status = worst(entry.status for entry in counted)
        bad = next((entry for entry in counted if entry.status == status != "ok"), None)
        return status, f"case {bad.case}: {bad.reason}" if bad else ""


def check_family(jobs: Sequence[Job[CheckSettings]]) -> None:
    """Runs all check cases of all variants; a record has the status of its first supported case that is not ok.

    Raises:
        WarplogError: The reference is wrong, a build record is missing, or the worker failed for a reason other than a
            kernel.
    """
    try_reference(jobs[0].family)
    stages = [
        Measurement(job, "check", tuple(job.family.check_cases), refuse_build(job.build)) for job in jobs
    ]
    # A check is valid on every board of the model.
    stale = [one for one in stages if not one.job.is_fresh(Check, one.inputs_sha256, any_board=True)]
    running, session = [one for one in stale if one.runnable], Session()
    results: list[Result] = []
    if running:
        first = running[0].job
        work = CheckWork(rounds=first.settings.rounds)
        task = family_task([(one.job, one.runnable) for one in running], work)
        show = first.progress("check", len(task.runs))
        results, session = run_cases(task, first.settings.timeout_s, show, BREAKS)
    keep(jobs[0], Check, [_check(one, results, session if one.runnable else Session()) for one in stale])
    if running:
        discard(Path(task.folder))


def _check(one: Measurement[CheckSettings], results: Sequence[Result], session: Session) -> Check:
    job, own = one.job, own_results(one.job.variant.name, results)
    cases = tuple(
        job.not_run(CheckCase, case, one.refusal) or measured(CheckCase, own[case]) for case in one.cases
    )
    status, reason = one.over_cases(cases)
    return Check(
        **job.head(session),
        status=status,
        reason=reason,
        inputs_sha256=one.inputs_sha256,
        cases=cases,
        session=session,
        settings=job.settings,
    )


def time_family(jobs: Sequence[Job[TimeSettings]], check: Path, timer: Path, cases: Sequence[str]) -> None:
    """Times the variants whose checks passed; the records of the others state the reason.

    Each case is measured at rest in `processes` fresh processes. If these are too few for a median with a standard
    error of `run_error`, it is measured in further ones, up to `most_processes`, for up to `further_seconds`. If a
    power or thermal limit lowers the clock of back-to-back launches, it is also measured sustained, in as many
    processes, and in up to as many again if these differ too much. In each process, the variants run in a random
    order for each case. The seed of the order and of the addresses follows from campaign and file, so that an
    interrupted job goes on with the same one.

    Args:
        jobs: the variants of one family.
        check: the family's check records.
        timer: the compiled timing core.
        cases: names of the cases to time.

    Raises:
        WarplogError: A check or build record is missing, or the worker failed for a reason other than a kernel.
    """
    checks = {job.variant.name: proof for job, proof in zip(jobs, proofs(check, jobs), strict=True)}
    stages = [
        Measurement(job, "time", cases, refuse_unproven(checks[job.variant.name], job.build)) for job in jobs
    ]
    # Times are compared with each other, so they come from one board.
    stale = [one for one in stages if not one.job.is_fresh(Time, one.inputs_sha256)]
    running = [one for one in stale if one.runnable]
    processes = _Processes(running, timer) if running else None
    results, session = processes.measure() if processes else ({}, Session())
    made = []
    for one in stale:
        job = one.job
        entries = tuple(
            job.not_run(TimeCase, case, one.refusal) or results[job.variant.name, case] for case in one.cases
        )
        status, reason = one.over_cases(entries)
        record = Time(
            **job.head(session if one.runnable else Session()),
            status=status,
            reason=reason,
            inputs_sha256=one.inputs_sha256,
            check=checks[job.variant.name].status,
            cases=entries,
            session=session if one.runnable else Session(),
            settings=job.settings,
        )
        made.append(record)
    keep(jobs[0], Time, made)
    if processes:
        processes.discard()


class _Processes:
    """The processes that measure the variants of a family, in both regimes."""

    def __init__(self, running: Sequence[Measurement[TimeSettings]], timer: Path) -> None:
        self._jobs, self._timer = [one.job for one in running], timer
        self._job = self._jobs[0]
        self._folders: set[Path] = set()
        pairs = [(one.job.variant.name, case) for one in running for case in one.runnable]
        self._rest: dict[Pair, list[Result]] = {pair: [] for pair in pairs}
        self._sustained: dict[Pair, list[Result]] = {pair: [] for pair in pairs}
        self._session = Session()

    def measure(self) -> tuple[dict[Pair, TimeCase], Session]:
        """Returns the record's entries by variant and case, and facts about the session."""
        settings = self._job.settings
        first, most = settings.processes, settings.most_processes
        self._run(TimeWork, {number: list(self._rest) for number in range(1, first + 1)}, self._rest)
        # The spread of a few processes says little about how many are needed, so that it is estimated twice.
        self._run(TimeWork, self._again(first + 1, min(2 * first, most), self._missing), self._rest)
        self._run(TimeWork, self._again(2 * first + 1, most, self._missing), self._rest)
        why_not = self._why_not_sustained()
        wanted = [pair for pair, why in why_not.items() if not why]
        self._run(SustainWork, dict.fromkeys(range(1, first + 1), wanted), self._sustained)
        self._run(SustainWork, self._again(first + 1, 2 * first, self._missing_sustained), self._sustained)
        limit_w = self._job.gpu.power_limit_w
        entries = {
            pair: pooled(found, self._sustained[pair], why_not.get(pair, ""), settings, limit_w)
            for pair, found in self._rest.items()
        }
        return entries, self._session

    def _again(self, first: int, last: int, missing: Callable[[Pair], int]) -> dict[int, list[Pair]]:
        """Returns the pairs that the processes `first` to `last` measure: each in as many of them as it misses."""
        counts = {pair: missing(pair) for pair in self._rest}
        return {
            number: [pair for pair, count in counts.items() if number - first < count]
            for number in range(first, last + 1)
        }

    def _missing(self, pair: Pair) -> int:
        """Returns in how many more processes a case must be measured at rest, within the time for them."""
        settings, found = self._job.settings, self._rest[pair]
        spent_s = sum(one.seconds or 0.0 for one in found[settings.processes :])
        return missing_runs(found, settings.run_error, max(settings.further_seconds - spent_s, 0.0))

    def _missing_sustained(self, pair: Pair) -> int:
        """Returns in how many more processes a case must be measured sustained; 0 if it was not measured so."""
        limit_w = self._job.gpu.power_limit_w
        return missing_sustained(self._sustained[pair], self._job.settings.run_error, limit_w)

    def _why_not_sustained(self) -> dict[Pair, NoSustained]:
        """Returns why a case is not measured sustained, "" if it is, for all cases that have times at rest.

        It is if a limit lowers its clock, or if the family has `hot_seconds`; of a case that the profilers do not
        capture, only the baseline and the variants near the fastest at rest.
        """
        family = self._job.family
        at_rest = {
            pair: median(one.cold.median_us for one in found_at_rest(found))
            for pair, found in self._rest.items()
            if all(one.status == "ok" for one in found)
        }
        fastest: dict[str, float] = {}
        for (_, case), us in at_rest.items():
            fastest[case] = min(us, fastest.get(case, us))

        def why_not(variant: str, case: str) -> NoSustained:
            first = found_at_rest(self._rest[variant, case])[0]
            if family.measuring.hot_seconds:
                return ""
            if not first.limited:
                return "not_limited" if first.hot else "no_hot"
            near = at_rest[variant, case] <= _NEAR_FASTEST * fastest[case]
            kept = near or variant == family.baseline or case in family.profile_cases
            return "" if kept else "not_near_fastest"

        return {pair: why_not(*pair) for pair in at_rest}

    def discard(self) -> None:
        """Removes the files of the finished work."""
        for folder in self._folders:
            discard(folder)

    def _run(
        self, kind: type[TimeWork], pairs: Mapping[int, Sequence[Pair]], into: dict[Pair, list[Result]]
    ) -> None:
        """Measures the pairs of each process, by its number, and adds the results to `into`."""
        job = self._job
        seed = zlib.crc32(f"{job.campaign}/{job.record}".encode())
        # The result of a case does not depend on how long it may take.
        work = kind(settings=replace(job.settings, timeout_s=TimeSettings().timeout_s), seed=seed)
        runs = self._order(pairs, f"{seed}/{work.mode}")
        if not runs:
            return
        task = task_of(self._jobs, runs, work, self._timer)
        self._folders.add(Path(task.folder))
        show = job.progress(work.mode, len(runs))
        results, session = run_cases(task, job.settings.timeout_s, show, BREAKS)
        for result in results:
            into[result.run.variant, result.run.case].append(result)
        start_s = self._session.start_seconds + session.start_seconds
        self._session = replace(session, start_seconds=start_s, seed=seed)

    def _order(self, pairs: Mapping[int, Sequence[Pair]], seed: str) -> list[CaseRun]:
        """Returns all cases to measure, by process and case, and within these in random order.

        Variants thus share the inputs of a case.
        """
        order = list(self._job.family.cases)
        runs = [
            CaseRun(variant=variant, case=case, process=process)
            for process, own in pairs.items()
            for variant, case in own
        ]
        mixed = Random(seed).sample(runs, len(runs))  # noqa: S311 - no secret
        return sorted(mixed, key=lambda run: (run.process, order.index(run.case)))
