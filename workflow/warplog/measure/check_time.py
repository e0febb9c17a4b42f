"""Stages check and time: one worker runs all variants of a family.

Variants that must not be measured get a record with the reason. Records with unchanged inputs are kept.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from warplog.core.hashing import sha256_of
from warplog.core.records import Record, worst
from warplog.measure.job import (
    Job,
    Refusal,
    family_task,
    keep,
    own_results,
    proofs,
    refuse_build,
    refuse_unproven,
    task_of,
)
from warplog.measure.pooling import missing_runs, missing_sustained, pooled
from warplog.measure.supervise import discard, run_cases
from warplog.measure.worker.main import parts_of, process_of

Pair = tuple[str, str]  # variant and case
_NEAR_FASTEST = 1.05


class Measurement:
    """One stage of one variant.

    Args:
        job: the variant's job.
        stage: check or time.
        cases: names of the cases.
        refusal: status and reason if the variant must not be measured, else None.
        more: further keys of the record.
    """

    def __init__(
        self, job: Job, stage: str, cases: Sequence[str], refusal: Refusal | None, **more: Any
    ) -> None:
        self.job, self.stage, self.cases, self.refusal = job, stage, tuple(cases), refusal
        self.more = more
        contract = (dict(job.variant.memory), job.family.measuring)
        self.inputs_sha256 = sha256_of(
            stage, job.inputs_sha256, job.build, self.cases, refusal, more, contract
        )

    @property
    def runnable(self) -> tuple[str, ...]:
        """The cases that the worker runs: the supported ones; none if the variant is refused."""
        return () if self.refusal else self.job.fitting(self.cases)

    def record(self, results: Mapping[str, Record], session: Record) -> Record:
        """Returns the variant's record, given the results by case."""
        job = self.job
        entries = [job.entry(case, results, self.refusal) for case in self.cases]
        status, reason = self.refusal or _over_cases(entries)
        return {
            **job.head(self.stage, job.build, session),
            "status": status,
            "reason": reason,
            "session": session,
            "settings": dict(job.settings),
            "cases": entries,
            "inputs_sha256": self.inputs_sha256,
            **self.more,
        }


def check_family(jobs: Sequence[Job]) -> None:
    """Runs all check cases of all variants; a record has the status of its first supported case that is not ok.

    Raises:
        WarplogError: A build record is missing, or the worker failed for a reason other than a kernel.
    """
    stages = [
        Measurement(job, "check", tuple(job.family.check_cases), refuse_build(job.build)) for job in jobs
    ]
    running, made = _stale(stages)
    if not running:
        keep(jobs[0], made)
        return
    first = next(iter(running.values())).job
    parts = [(one.job, one.runnable) for one in running.values()]
    task = family_task(parts, "check", {"rounds": first.settings["rounds"]})
    show = first.progress("check", len(task.cases))
    results, session = run_cases(task, first.settings["timeout_s"], show, ("crashed", "timeout"))
    made += [one.record(own_results(name, results), session) for name, one in running.items()]
    keep(first, made)
    discard(task.folder)


def time_family(jobs: Sequence[Job], check: Path, timer: Path, cases: Sequence[str]) -> None:
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
    stages = [
        Measurement(job, "time", cases, refuse_unproven(proof, job.build), check=proof["status"])
        for job, proof in zip(jobs, proofs(check, jobs), strict=True)
    ]
    running, made = _stale(stages)
    if not running:
        keep(jobs[0], made)
        return
    processes = _Processes(running, timer)
    results, session = processes.measure()
    made += [one.record(results[name], session) for name, one in running.items()]
    keep(jobs[0], made)
    processes.discard()


class _Processes:
    """The processes that measure the variants of a family, in both regimes."""

    def __init__(self, running: Mapping[str, Measurement], timer: Path) -> None:
        self._running, self._timer = running, timer
        self._job = next(iter(running.values())).job
        self._folders: set[Path] = set()
        self._rest: dict[Pair, list[Record]] = {
            (n, c): [] for n, one in running.items() for c in one.runnable
        }
        self._sustained: dict[Pair, list[Record]] = {pair: [] for pair in self._rest}
        self._session: Record = {}

    def measure(self) -> tuple[dict[str, dict[str, Record]], Record]:
        """Returns the record of each case by variant and case, and facts about the session."""
        settings = self._job.settings
        first, most = settings["processes"], settings["most_processes"]
        self._run("time", {number: list(self._rest) for number in range(1, first + 1)}, self._rest)
        # The spread of a few processes says little about how many are needed, so that it is estimated twice.
        self._run("time", self._again(first + 1, min(2 * first, most), self._missing), self._rest)
        self._run("time", self._again(2 * first + 1, most, self._missing), self._rest)
        self._run("sustain", dict.fromkeys(range(1, first + 1), self._to_sustain()), self._sustained)
        self._run("sustain", self._again(first + 1, 2 * first, self._missing_sustained), self._sustained)
        results: dict[str, dict[str, Record]] = {name: {} for name in self._running}
        for (name, case), found in self._rest.items():
            combined = pooled(found, self._sustained[name, case], dict(settings), self._job.gpu.power_limit_w)
            results[name][case] = {"case": case, **combined}
        return results, self._session

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
        spent_s = sum(one.get("seconds", 0.0) for one in found[settings["processes"] :])
        return missing_runs(found, settings["run_error"], max(settings["further_seconds"] - spent_s, 0.0))

    def _missing_sustained(self, pair: Pair) -> int:
        """Returns in how many more processes a case must be measured sustained; 0 if it was not measured so."""
        limit_w = self._job.gpu.power_limit_w
        return missing_sustained(self._sustained[pair], self._job.settings["run_error"], limit_w)

    def _to_sustain(self) -> list[Pair]:
        """Returns what is measured sustained: cases whose clock a limit lowers, or all of a family with `hot_seconds`.

        Of a case that the profilers do not capture, these are the baseline and the variants near the fastest at rest.
        """
        family = self._job.family
        at_rest = {
            pair: median(one["cold"]["median_us"] for one in found)
            for pair, found in self._rest.items()
            if all(one["status"] == "ok" for one in found)
        }
        fastest: dict[str, float] = {}
        for (_, case), us in at_rest.items():
            fastest[case] = min(us, fastest.get(case, us))

        def is_wanted(variant: str, case: str) -> bool:
            if family.measuring.hot_seconds:
                return True
            if not self._rest[variant, case][0].get("limited", False):
                return False
            near = at_rest[variant, case] <= _NEAR_FASTEST * fastest[case]
            return near or variant == family.baseline or case in family.profile_cases

        return [pair for pair in at_rest if is_wanted(*pair)]

    def discard(self) -> None:
        """Removes the files of the finished work."""
        for folder in self._folders:
            discard(folder)

    def _run(self, mode: str, runs: Mapping[int, Sequence[Pair]], into: dict[Pair, list[Record]]) -> None:
        """Measures the pairs of each process, by its number, and adds the results to `into`."""
        job = self._job
        seed = zlib.crc32(f"{job.campaign}/{job.record}".encode())
        names = self._names(runs, f"{seed}/{mode}")
        if not names:
            return
        jobs = [one.job for one in self._running.values()]
        policy = {key: value for key, value in job.settings.items() if key != "timeout_s"}
        policy |= {"default_mhz": job.gpu.max_sm_mhz, "seed": seed}
        task = task_of(jobs, names, mode, policy, timer=self._timer)
        self._folders.add(task.folder)
        show = job.progress(mode, len(names))
        results, session = run_cases(task, job.settings["timeout_s"], show, ("crashed", "timeout"))
        for result in results:
            into[parts_of(result["case"])].append(result)
        start_s = self._session.get("start_seconds", 0.0) + session["start_seconds"]
        self._session |= session | {"start_seconds": start_s, "seed": seed}

    def _names(self, runs: Mapping[int, Sequence[Pair]], seed: str) -> list[str]:
        """Returns the names of all cases to measure, by process and case, and within these in random order.

        Variants thus share the inputs of a case.
        """
        order = list(self._job.family.cases)
        names = [f"{run}/{variant}:{case}" for run, pairs in runs.items() for variant, case in pairs]
        mixed = Random(seed).sample(names, len(names))  # noqa: S311 - no secret
        return sorted(mixed, key=lambda name: (process_of(name), order.index(parts_of(name)[1])))


def _stale(stages: Sequence[Measurement]) -> tuple[dict[str, Measurement], list[Record]]:
    """Returns the stages to run, by variant, and the records of changed ones that must not run."""
    # A check is valid on every board of the model; times are compared with each other, so they come from one board.
    stale = [one for one in stages if not one.job.is_fresh(one.inputs_sha256, one.stage == "check")]
    running = {one.job.variant.name: one for one in stale if one.runnable}
    return running, [one.record({}, {}) for one in stale if not one.runnable]


def _over_cases(entries: list[Record]) -> tuple[str, str]:
    """Returns status and reason of the first supported case that is not ok; skipped cases come last."""
    counted = [e for e in entries if e["status"] != "unsupported"]
    status = worst(e["status"] for e in counted)
    bad = next((e for e in counted if e["status"] == status != "ok"), None)
    return status, f"case {bad['case']}: {bad['reason']}" if bad else ""
