"""The search for the best parameters of a variant on this GPU."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from warplog.catalog.space import Setting, name_of
from warplog.core.errors import WarplogError
from warplog.core.records import Record, sha256_of
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job
from warplog.measure.supervise import Task, discard, finished, run_cases
from warplog.measure.tuning.builds import Builds


@dataclass(frozen=True)
class Finding:
    """What is known of one setting; `build` and `look` are records or {}, `final` one record a round."""

    setting: Setting
    build: Record
    look: Record
    final: tuple[Record, ...] = ()

    @property
    def verdict(self) -> tuple[str, str]:
        """Status and reason."""
        if not self.build:
            return "skipped", "not tried: the time was over"
        worst = self.build if self.build["status"] != "ok" else self.look
        worst = next((round_ for round_ in self.final if round_["status"] != "ok"), worst)
        return (worst["status"], worst["reason"]) if worst else ("skipped", "not tried: the time was over")

    @property
    def score_us(self) -> float | None:
        """Geometric mean over the cases of the median cold time, of the final where it took part; None: no time."""
        if self.verdict[0] != "ok":
            return None
        return median(score(record) for record in self.final) if self.final else score(self.look)


def score(result: Record) -> float:
    """Geometric mean over the cases of the median cold time in microseconds, never under a nanosecond."""
    medians = [max(case["cold"]["median_us"], 1e-3) for case in result["times"]]
    return float(prod(medians) ** (1 / len(medians)))


LOOK_TIME: Mapping[str, Any] = {
    "min_samples": 7,
    "max_samples": 15,
    "max_seconds": 0.25,
    "rel_spread": 0.01,
    "warmup_launches": 2,
    "warmup_ms": 10,
    "hot_seconds": 0.02,
    "hot_cases": "all",
    "settle_ms": 100,
}
CHECK_ROUNDS = 1
FINAL_ROUNDS = 2
FINAL_SHARE = 0.1  # of the minutes
FINAL_SECONDS = 1.0  # most for one round of one case
FINALISTS = 8
WITHIN = 1.05  # of the best of the look
_BATCH_PER_CORE = 4
_BATCH = (16, 64)  # a library stays loaded until its worker ends: no more than 64 in one
_QUIET_S = 10.0


@dataclass(frozen=True)
class Search:
    """One search. `job.settings` is config: tune, `time_policy` config: time."""

    job: Job
    builds: Builds
    task: Task
    time_policy: Mapping[str, Any]
    campaign: str
    findings: dict[str, Finding] = field(default_factory=dict)
    session: Record = field(default_factory=dict)

    def run(self) -> None:
        """Looks at as many settings as the time allows, and decides among the best."""
        seconds = 60 * self.job.settings["minutes"]
        begin = time.monotonic()
        fresh = self._look(begin + (1 - FINAL_SHARE) * seconds)
        self._final(begin + seconds, fresh)

    @property
    def complete(self) -> bool:
        """Whether every setting was tried."""
        return all(f.verdict[0] != "skipped" for f in self.findings.values())

    def discard(self) -> None:
        """Removes the working files, where nothing is left that a later search with more time could go on from."""
        if self.complete:
            shutil.rmtree(self.job.scratch, ignore_errors=True)

    def ranking(self) -> list[Finding]:
        """The settings that have a time, best first; only one that went through the final can be the first."""
        timed = [f for f in self.findings.values() if f.score_us is not None]
        timed.sort(key=lambda f: f.score_us or 0.0)
        winner = next((f for f in timed if f.final), None)
        return sorted(timed, key=lambda f: f is not winner)

    def _look(self, deadline: float) -> bool:
        """The look at all settings; whether any of them was new."""
        settings = {name_of(s): s for s in self.builds.space.settings()}
        task = replace(self.task, cases=tuple(settings), folder=self.job.scratch / "look", deadline=deadline)
        done = finished(task)
        self.findings.update({name: Finding(s, {}, {}) for name, s in settings.items()})
        for name in settings.keys() & done.keys():
            self._note(name, build=self.builds.known(settings[name]), look=done[name])
        say = self._progress("look", len(settings), len(done))
        for batch in _batches([s for n, s in settings.items() if n not in done], self.builds.cores):
            if task.is_over():
                break
            made = self.builds.make(batch)
            for name, record in made.items():
                self._note(name, build=record)
                if record["status"] != "ok":
                    say({"case": name, **record})
            good = [s for s in batch if made[name_of(s)]["status"] == "ok"]
            for name, result in self._measure(task, {name_of(s): s for s in good}, say).items():
                self._note(name, look=result)
            self.builds.drop_libraries(batch)
        return len(done) < sum(bool(f.look) for f in self.findings.values())

    def _final(self, deadline: float, fresh: bool) -> None:
        """The final; rounds of an earlier run count only where the look brought nothing new since."""
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
        wanted = [*(name_of(f.setting) for f in near), *(n for n in named if n in timed)]
        return [timed[name] for name in dict.fromkeys(wanted)]

    def _measure(
        self, task: Task, settings: Mapping[str, Setting], say: Callable[[Record], None]
    ) -> dict[str, Record]:
        if not settings:
            return {}
        libraries = {name: self.builds.library(s) for name, s in settings.items()}
        wanted = replace(task, cases=tuple(settings), libraries=libraries)
        found, session = run_cases(wanted, self.job.settings["timeout_s"], say)
        self.session.update(session)
        return {result["case"]: result for result in found}

    def _note(self, name: str, **found: Any) -> None:
        self.findings[name] = replace(self.findings[name], **found)

    def _progress(self, phase: str, total: int, done: int = 0) -> Callable[[Record], None]:
        """Says every new best, what is not ok, and every ten seconds how far it is."""
        started = said = time.monotonic()
        best = float("inf")

        def say(result: Record) -> None:
            nonlocal done, best, said
            done += 1
            time_us = score(result) if result["status"] == "ok" else float("inf")
            now = time.monotonic()
            if time_us >= best and result["status"] == "ok" and now - said < _QUIET_S and done < total:
                return
            words = result["reason"] if result["status"] != "ok" else f"{time_us:.5g} us"
            words += "  best so far" if time_us < best else ""
            best, said = min(best, time_us), now
            line = f"  tune    {self.job.family.name}/{self.job.variant.name}  {phase}  {result['case']}"
            line += f"  {result['status']}  {words}  ({done}/{total}, {(now - started) / 60:.1f} min)"
            print(line, file=sys.stderr, flush=True)

        return say


def make_search(
    job: Job,
    campaign: str,
    arch: str,
    tools: tuple[Tool, Tool],
    timer: Path,
    time_policy: Mapping[str, Any],
    cores: int,
) -> Search:
    """The search of a job's variant; `tools` are nvcc and cuobjdump.

    Raises:
        WarplogError: the variant has no `tune`, or supports none of its cases.
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
        settings=_look_settings(job, space.cases),
        timer=timer,
        environment=job.gpu.environment,
        gpu_lock=job.gpu.uuid,
    )
    return Search(job, builds, task, time_policy, campaign)


def _look_settings(job: Job, cases: Sequence[str]) -> Record:
    return {
        "rounds": CHECK_ROUNDS,
        "check_cases": list(job.fitting(tuple(job.family.check_cases))),
        "cases": list(cases),
        "time": dict(LOOK_TIME),
        "default_mhz": job.gpu.max_sm_mhz,
    }


def _batches(settings: list[Setting], cores: int) -> Iterator[list[Setting]]:
    size = min(max(_BATCH_PER_CORE * cores, _BATCH[0]), _BATCH[1])
    for start in range(0, len(settings), size):
        yield settings[start : start + size]
