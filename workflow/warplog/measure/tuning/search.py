"""Searches the best parameters of a variant on this GPU.

A search has two phases: the look checks and briefly times every setting; the final times the best ones longer.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from warplog.catalog.space import Setting, name_of
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_of
from warplog.core.records import Record
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job
from warplog.measure.supervise import Task, discard, finished, run_cases
from warplog.measure.tuning.builds import Builds


@dataclass(frozen=True)
class Finding:
    """What a search knows about one setting.

    Attributes:
        build: the build record; {} if the setting was not compiled.
        look: the result of the look; {} if it was not timed.
        final: the results of the final, one per round; empty if it did not take part.
    """

    setting: Setting
    build: Record
    look: Record
    final: tuple[Record, ...] = ()

    @property
    def verdict(self) -> tuple[str, str]:
        """Status and reason of the setting."""
        if not self.build:
            return "skipped", "not tried: out of time"
        worst = self.build if self.build["status"] != "ok" else self.look
        worst = next((round_ for round_ in self.final if round_["status"] != "ok"), worst)
        return (worst["status"], worst["reason"]) if worst else ("skipped", "not tried: out of time")

    @property
    def score_us(self) -> float | None:
        """The score in microseconds: of the final if the setting took part, else of the look; None without one."""
        if self.verdict[0] != "ok":
            return None
        return median(score(record) for record in self.final) if self.final else score(self.look)


def score(result: Record) -> float:
    """Returns the geometric mean of the cases' median cold times in microseconds, each at least 1 ns."""
    medians = [max(case["cold"]["median_us"], 1e-3) for case in result["times"]]
    return float(prod(medians) ** (1 / len(medians)))


LOOK_TIME: Mapping[str, Any] = {
    "min_samples": 7,
    "max_samples": 15,
    "max_seconds": 0.25,
    "rel_error": 0.004,
    "warmup_launches": 2,
    "warmup_ms": 10,
    "hot_seconds": 0.02,
    "hot_cases": "all",
}
CHECK_ROUNDS = 1
FINAL_ROUNDS = 2
FINAL_SHARE = 0.1  # of the time limit
FINAL_SECONDS = 1.0  # maximum for one case in one round
FINALISTS = 8
WITHIN = 1.05  # finalists: at most this multiple of the best score
_BATCH_PER_CORE = 4
_BATCH = (16, 64)  # smallest and largest; a library stays loaded until its worker ends
_QUIET_S = 10.0


@dataclass(frozen=True)
class Search:
    """One search.

    Attributes:
        job: the variant's job; `job.settings` is the section `tune` of the configuration.
        builds: compiles settings.
        task: template of the worker's tasks.
        time_policy: the section `time` of the configuration, which the final follows.
        campaign: name of the campaign.
        findings: what is known about each setting, by name.
        session: facts about the workers' sessions.
    """

    job: Job
    builds: Builds
    task: Task
    time_policy: Mapping[str, Any]
    campaign: str
    findings: dict[str, Finding] = field(default_factory=dict)
    session: Record = field(default_factory=dict)

    def run(self) -> None:
        """Runs the look over as many settings as time allows, then the final among the best."""
        seconds = 60 * self.job.settings["minutes"]
        begin = time.monotonic()
        fresh = self._look(begin + (1 - FINAL_SHARE) * seconds)
        self._final(begin + seconds, fresh)

    @property
    def complete(self) -> bool:
        """Whether all settings were tried."""
        return all(f.verdict[0] != "skipped" for f in self.findings.values())

    def discard(self) -> None:
        """Removes the working files if the search is complete; otherwise a later search can resume."""
        if self.complete:
            shutil.rmtree(self.job.scratch, ignore_errors=True)

    def ranking(self) -> list[Finding]:
        """Returns the settings with a time, best first; the first took part in the final, if any did."""
        timed = [f for f in self.findings.values() if f.score_us is not None]
        timed.sort(key=lambda f: f.score_us or 0.0)
        winner = next((f for f in timed if f.final), None)
        return sorted(timed, key=lambda f: f is not winner)

    def _look(self, deadline: float) -> bool:
        """Runs the look; returns whether it timed a setting that an earlier run had not."""
        settings = {name_of(s): s for s in self.builds.space.settings()}
        task = replace(self.task, cases=tuple(settings), folder=self.job.scratch / "look", deadline=deadline)
        done = finished(task)
        self.findings.update({name: Finding(s, {}, {}) for name, s in settings.items()})
        for name in settings.keys() & done.keys():
            self._note(name, build=self.builds.known(settings[name]), look=done[name])
        show = self._progress("look", len(settings), len(done))
        for batch in _batches([s for n, s in settings.items() if n not in done], self.builds.cores):
            if task.is_over():
                break
            made = self.builds.make(batch)
            for name, record in made.items():
                self._note(name, build=record)
                if record["status"] != "ok":
                    show({"case": name, **record})
            good = [s for s in batch if made[name_of(s)]["status"] == "ok"]
            for name, result in self._measure(task, {name_of(s): s for s in good}, show).items():
                self._note(name, look=result)
            self.builds.drop_libraries(batch)
        return len(done) < sum(bool(f.look) for f in self.findings.values())

    def _final(self, deadline: float, fresh: bool) -> None:
        """Runs the final; discards an earlier one if the look was `fresh`, that is, timed new settings."""
        settings = self._finalists()
        if not settings:
            return
        self.builds.make(settings)
        longest = min(self.time_policy["max_seconds"], FINAL_SECONDS)
        policy = {**self.time_policy, "max_seconds": longest, "hot_cases": "all"}
        policy.pop("timeout_s", None)
        task = replace(
            self.task,
            folder=self.job.scratch / "final",
            settings={**self.task.settings, "check_cases": [], "time": policy},
            deadline=deadline,
        )
        if fresh:
            discard(task.folder)
        rounds = [settings if turn % 2 == 0 else settings[::-1] for turn in range(FINAL_ROUNDS)]
        named = {f"{name_of(s)}.{turn}": s for turn, order in enumerate(rounds) for s in order}
        results = self._measure(task, named, self._progress("final", len(named)))
        for setting in settings:
            name = name_of(setting)
            own = [results.get(f"{name}.{turn}") for turn in range(FINAL_ROUNDS)]
            if all(own):
                self._note(name, final=tuple(own))
        self.builds.drop_libraries(settings)

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
        self, task: Task, settings: Mapping[str, Setting], show: Callable[[Record], None]
    ) -> dict[str, Record]:
        if not settings:
            return {}
        libraries = {name: self.builds.library(s) for name, s in settings.items()}
        batch = replace(task, cases=tuple(settings), libraries=libraries)
        found, session = run_cases(batch, self.job.settings["timeout_s"], show)
        self.session.update(session)
        return {result["case"]: result for result in found}

    def _note(self, name: str, **found: Any) -> None:
        self.findings[name] = replace(self.findings[name], **found)

    def _progress(self, phase: str, total: int, done: int = 0) -> Callable[[Record], None]:
        """Returns a function that prints new bests and failures, and otherwise a line every ten seconds."""
        started = printed = time.monotonic()
        best = float("inf")

        def show(result: Record) -> None:
            nonlocal done, best, printed
            done += 1
            time_us = score(result) if result["status"] == "ok" else float("inf")
            now = time.monotonic()
            if time_us >= best and result["status"] == "ok" and now - printed < _QUIET_S and done < total:
                return
            outcome = result["reason"] if result["status"] != "ok" else f"{time_us:.5g} us"
            outcome += "  best so far" if time_us < best else ""
            best, printed = min(best, time_us), now
            line = f"  tune    {self.job.family.name}/{self.job.variant.name}  {phase}  {result['case']}"
            line += f"  {result['status']}  {outcome}  ({done}/{total}, {(now - started) / 60:.1f} min)"
            print(line, file=sys.stderr, flush=True)

        return show


def make_search(
    job: Job,
    campaign: str,
    arch: str,
    tools: tuple[Tool, Tool],
    timer: Path,
    time_policy: Mapping[str, Any],
    cores: int,
) -> Search:
    """Returns the search over the settings of a job's variant.

    Args:
        job: the variant's job with the settings `tune`.
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
    task = Task(
        mode="tune",
        backend=job.backend,
        family_file=job.family.file,
        library=job.variant.file,
        library_sha256=sha256_of(builds.fingerprint, campaign),
        cases=(),
        folder=job.scratch,
        settings={
            "rounds": CHECK_ROUNDS,
            "check_cases": list(job.fitting(tuple(job.family.check_cases))),
            "cases": list(space.cases),
            "time": dict(LOOK_TIME),
            "default_mhz": job.gpu.max_sm_mhz,
        },
        timer=timer,
        environment=job.gpu.environment,
        gpu_lock=job.gpu.uuid,
    )
    return Search(job, builds, task, time_policy, campaign)


def _batches(settings: list[Setting], cores: int) -> Iterator[list[Setting]]:
    size = min(max(_BATCH_PER_CORE * cores, _BATCH[0]), _BATCH[1])
    for start in range(0, len(settings), size):
        yield settings[start : start + size]
