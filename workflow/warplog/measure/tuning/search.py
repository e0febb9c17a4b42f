"""Searches the best parameters of a variant on this GPU.

A search has two phases: the look checks and briefly times every setting; the final times the best ones longer.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from statistics import median

from msgspec import structs

from warplog.catalog.space import Setting, name_of
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_of
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job, Refusal
from warplog.measure.results import Result, Tuned
from warplog.measure.supervise import discard, finished, run_cases
from warplog.measure.task import CaseRun, Task, TuneWork
from warplog.measure.tuning.builds import Builds
from warplog.records.build import Build
from warplog.records.config import TimeSettings, TuneSettings
from warplog.records.measured import Session
from warplog.records.requested.tune import TunedCase


@dataclass(frozen=True)
class Finding:
    """What a search knows about one setting.

    Attributes:
        build: the build record; None if the setting was not compiled.
        look: the result of the look; None if it was not timed.
        final: the results of the final, one per round; empty if it did not take part.
    """

    setting: Setting
    build: Build | None = None
    look: Result | None = None
    final: tuple[Result, ...] = ()

    @property
    def verdict(self) -> Refusal:
        """Status and reason of the setting."""
        worst: Build | Result | None = self.build
        if self.build and self.build.status == "ok":
            worst = next((result for result in self.final if result.status != "ok"), self.look)
        return (worst.status, worst.reason) if worst else ("skipped", "not tried: out of time")

    @property
    def score_us(self) -> float | None:
        """The score in microseconds: of the final if the setting took part, else of the look; None without one."""
        if self.look is None or self.verdict[0] != "ok":
            return None
        return median(map(score, self.final)) if self.final else score(self.look)


def times(result: Result) -> Sequence[TunedCase]:
    """Returns the times of a setting with status ok, one per case."""
    assert isinstance(result.found, Tuned)
    return result.found.cases


def score(result: Result) -> float:
    """Returns the geometric mean of the cases' median cold times in microseconds, each at least 1 ns."""
    medians = [max(case.median_us, 1e-3) for case in times(result)]
    return float(prod(medians) ** (1 / len(medians)))


LOOK_TIME = TimeSettings(
    min_samples=7,
    max_samples=15,
    max_seconds=0.25,
    rel_error=0.004,
    warmup_launches=2,
    warmup_ms=10.0,
    hot_seconds=0.02,
    hot_cases="all",
)
CHECK_ROUNDS = 1
FINAL_ROUNDS = 2
FINAL_SHARE = 0.1  # of the time limit
FINAL_SECONDS = 1.0  # maximum for one case in one round
FINALISTS = 8
WITHIN = 1.05  # finalists: at most this multiple of the best score
_BATCH_PER_CORE = 4
_BATCH = (16, 64)  # smallest and largest; a library stays loaded until its worker ends
_QUIET_S = 10.0


@dataclass
class Search:
    """One search.

    Attributes:
        job: the variant's job.
        builds: compiles settings.
        task: template of the worker's tasks, with the work of the look.
        work: that work.
        time_policy: the section `time` of the configuration, which the final follows.
        campaign: name of the campaign.
        findings: what is known about each setting, by name.
        session: facts about the last session.
    """

    job: Job[TuneSettings]
    builds: Builds
    task: Task
    work: TuneWork
    time_policy: TimeSettings
    campaign: str
    findings: dict[str, Finding] = field(default_factory=dict)
    session: Session = field(default_factory=Session)

    def run(self) -> None:
        """Runs the look over as many settings as time allows, then the final among the best."""
        seconds = 60 * self.job.settings.minutes
        begin = time.monotonic()
        fresh = self._look(begin + (1 - FINAL_SHARE) * seconds)
        self._final(begin + seconds, fresh)

    @property
    def complete(self) -> bool:
        """Whether all settings were tried."""
        return all(f.verdict[0] != "skipped" for f in self.findings.values())

    def discard(self) -> None:
        """Removes the working files if the search is complete, else only libraries, so that a later one can resume."""
        if self.complete:
            shutil.rmtree(self.job.scratch, ignore_errors=True)
        else:
            self.builds.drop_libraries([finding.setting for finding in self.findings.values()])

    def ranking(self) -> list[Finding]:
        """Returns the settings with a time, best first; the first took part in the final, if any did."""
        timed = [f for f in self.findings.values() if f.score_us is not None]
        timed.sort(key=lambda f: f.score_us or 0.0)
        winner = next((f for f in timed if f.final), None)
        return sorted(timed, key=lambda f: f is not winner)

    def _look(self, deadline: float) -> bool:
        """Runs the look; returns whether it timed a setting that an earlier run had not."""
        settings = {name_of(s): s for s in self.builds.space.settings()}
        runs = tuple(CaseRun(variant=name, case="look") for name in settings)
        folder = str(self.job.scratch / "look")
        task = structs.replace(self.task, runs=runs, folder=folder, deadline=deadline)
        done = {run.variant: result for run, result in finished(task).items()}
        self.findings.update({name: Finding(s) for name, s in settings.items()})
        for name in settings.keys() & done.keys():
            self._note(name, build=self.builds.known(settings[name]), look=done[name])
        show = self._progress(len(settings), len(done))
        for batch in _batches([s for n, s in settings.items() if n not in done], self.builds.cores):
            if task.is_over():
                break
            made = self.builds.make(batch)
            for name, record in made.items():
                self._note(name, build=record)
                if record.status != "ok":
                    run = CaseRun(variant=name, case="look")
                    show(Result(run=run, status=record.status, reason=record.reason))
            good = {name_of(s): s for s in batch if made[name_of(s)].status == "ok"}
            runs = tuple(CaseRun(variant=name, case="look") for name in good)
            for result in self._measure(structs.replace(task, runs=runs), good, show):
                self._note(result.run.variant, look=result)
            self.builds.drop_libraries(batch)
        return len(done) < sum(f.look is not None for f in self.findings.values())

    def _final(self, deadline: float, fresh: bool) -> None:
        """Runs the final; discards an earlier one if the look was `fresh`, that is, timed new settings."""
        settings = {name_of(s): s for s in self._finalists()}
        if not settings:
            return
        self.builds.make(list(settings.values()))
        policy = structs.replace(
            self.time_policy,
            max_seconds=min(self.time_policy.max_seconds, FINAL_SECONDS),
            hot_cases="all",
            timeout_s=TimeSettings().timeout_s,
        )
        folder, names = self.job.scratch / "final", list(settings)
        rounds = [names if turn % 2 == 0 else names[::-1] for turn in range(FINAL_ROUNDS)]
        task = structs.replace(
            self.task,
            work=structs.replace(self.work, check_cases=(), time=policy),
            runs=tuple(
                CaseRun(variant=name, case=f"final {turn}")
                for turn, order in enumerate(rounds, 1)
                for name in order
            ),
            folder=str(folder),
            deadline=deadline,
        )
        if fresh:
            discard(folder)
        results = self._measure(task, settings, self._progress(len(task.runs)))
        for name in names:
            own = tuple(result for result in results if result.run.variant == name)
            if len(own) == FINAL_ROUNDS:
                self._note(name, final=own)

    def _finalists(self) -> list[Setting]:
        ranked = self.ranking()
        best = ranked[0].score_us if ranked else None
        near = [f for f in ranked if best and f.score_us and f.score_us <= WITHIN * best][:FINALISTS]
        space = self.builds.space
        named = [name_of(s) for s in (space.default(), *space.first)]
        timed = {name_of(f.setting): f.setting for f in ranked}
        chosen = [*(name_of(f.setting) for f in near), *(n for n in named if n in timed)]
        return [timed[name] for name in dict.fromkeys(chosen)]

    def _measure(
        self, task: Task, settings: Mapping[str, Setting], show: Callable[[Result], None]
    ) -> list[Result]:
        if not settings:
            return []
        libraries = {name: str(self.builds.library(s)) for name, s in settings.items()}
        task = structs.replace(task, libraries=libraries)
        results, self.session = run_cases(task, self.job.settings.timeout_s, show)
        return results

    def _note(
        self,
        name: str,
        build: Build | None = None,
        look: Result | None = None,
        final: tuple[Result, ...] = (),
    ) -> None:
        before = self.findings[name]
        self.findings[name] = Finding(
            before.setting, build or before.build, look or before.look, final or before.final
        )

    def _progress(self, total: int, done: int = 0) -> Callable[[Result], None]:
        """Returns a function that prints new bests and failures, and otherwise a line every ten seconds."""
        started = printed = time.monotonic()
        best = float("inf")

        def show(result: Result) -> None:
            nonlocal done, best, printed
            done += 1
            time_us = score(result) if result.status == "ok" else float("inf")
            now = time.monotonic()
            if time_us >= best and result.status == "ok" and now - printed < _QUIET_S and done < total:
                return
            outcome = result.reason if result.status != "ok" else f"{time_us:.5g} us"
            outcome += "  best so far" if time_us < best else ""
            best, printed = min(best, time_us), now
            run = result.run
            line = f"  tune    {self.job.family.name}/{self.job.variant.name}  {run.case}  {run.variant}"
            line += f"  {result.status}  {outcome}  ({done}/{total}, {(now - started) / 60:.1f} min)"
            print(line, file=sys.stderr, flush=True)

        return show


def make_search(
    job: Job[TuneSettings],
    campaign: str,
    arch: str,
    tools: tuple[Tool, Tool],
    timer: Path,
    time_policy: TimeSettings,
    cores: int,
) -> Search:
    """Returns the search over the settings of a job's variant.

    Args:
        job: the variant's job.
        campaign: name of the campaign.
        arch: architecture to compile for, such as `sm_90`.
        tools: nvcc and cuobjdump.
        timer: the compiled timing core.
        time_policy: the section `time` of the configuration.
        cores: number of compilers that run in parallel.

    Raises:
        WarplogError: The variant has no `tune`, or does not support one of its cases.
    """
    space = job.variant.tune
    if space is None:
        raise WarplogError(f"{job.family.file}: variant {job.variant.name!r} has no key `tune`")
    if misfit := next(filter(None, map(job.misfit, space.cases)), ""):
        raise WarplogError(f"{job.family.file}: variant {job.variant.name!r}: tune.cases: {misfit}")
    builds = Builds(job.family, job.variant, space, arch, *tools, job.build_folder, cores)
    work = TuneWork(
        check_cases=job.fitting(job.family.check_cases),
        rounds=CHECK_ROUNDS,
        cases=space.cases,
        time=LOOK_TIME,
    )
    task = Task(
        work=work,
        backend=job.backend,
        family_file=str(job.family.file),
        libraries={},
        library_sha256=sha256_of(builds.fingerprint, campaign),
        runs=(),
        folder=str(job.scratch),
        timer=str(timer),
        default_mhz=job.gpu.max_sm_mhz,
        environment=job.gpu.environment,
        gpu_lock=job.gpu.uuid,
    )
    return Search(job, builds, task, work, time_policy, campaign)


def _batches(settings: list[Setting], cores: int) -> Iterator[list[Setting]]:
    size = min(max(_BATCH_PER_CORE * cores, _BATCH[0]), _BATCH[1])
    for start in range(0, len(settings), size):
        yield settings[start : start + size]
