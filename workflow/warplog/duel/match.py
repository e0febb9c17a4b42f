"""A duel from its two sides to its record: builds, the worker process with its time limit, and the verdicts."""

import math
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from msgspec.structs import replace

from warplog.analysis.verdicts import FASTER, SLOWER, Verdict
from warplog.catalog.space import name_of
from warplog.core import paths
from warplog.core.errors import WarplogError, say
from warplog.core.files import temporary_folder
from warplog.core.locks import PATIENCE_S, is_held
from warplog.core.numbers import signed_percent
from warplog.core.process import Completed, explain_exit, run
from warplog.duel import counting, evidence, making
from warplog.duel.evidence import Rule
from warplog.duel.making import Made
from warplog.duel.sides import Corner
from warplog.duel.task import Doing, DuelTask, Failed, Found, Note, Opened, SideTask, notes
from warplog.machine import device, toolchain
from warplog.measure import provenance
from warplog.measure.job import Job
from warplog.measure.supervise import environment
from warplog.measure.worker.main import BROKEN
from warplog.records import door
from warplog.records.campaign import Gpu
from warplog.records.measured import Session
from warplog.records.requested.duel import Duel, Judged, Ratio, Regime, Window

BACKEND = "cupy"
TIMER = "timer.so"  # in a pack
_WINDOW_S, _WINDOW_APART_S = 0.75, 3.0
_QUIET_S = 180.0  # of a process, for large inputs and their reference
_LONGEST_S = 2 * 3600.0
_SHOW_AFTER_S = 5.0
_LOG_TAIL = 400


@dataclass(frozen=True)
class Options:
    """How two sides duel.

    Attributes:
        seconds: of turns at rest, at most, in all processes together.
        margin: the relative gap up to which two times are SAME.
        sustained: whether they also duel back to back, if a limit acts.
        seed: for inputs, addresses and the order of turns; None for a random one.
        counters: whether hardware counters are captured if the times differ at rest.
    """

    case: str
    seconds: float = 9.0
    margin: float = 0.005
    sustained: bool = True
    seed: int | None = None
    counters: bool = True


def duel(corners: Sequence[Corner], options: Options, project: Path) -> Duel:
    """Builds both sides, lets them take turns and returns the record with the verdicts.

    Raises:
        WarplogError: There is no GPU, a tool is missing, or the worker failed for a reason other than a kernel.
    """
    gpu = free_gpu()
    packed = corners[0].packed
    sides = [making.make(one, gpu, project) for one in corners]
    return _fought(Match(project, options, gpu, sides), packed / TIMER if packed else None)


def of_jobs(a: Job[Any], b: Job[Any], case: str) -> Duel:
    """Lets the builds of two jobs take turns at rest, on the GPU of the first one, and returns the record.

    Raises:
        WarplogError: As for `duel`.
    """
    sides = [
        Made(
            Corner(f"{job.variant.name} {name_of(job.build.parameters)}".strip(), job.family, variant),
            job.library,
            None if job.variant.is_python else job.build,
        )
        for job in (a, b)
        for variant in [replace(job.variant, parameters=job.build.parameters)]
    ]
    return _fought(Match(paths.project(), Options(case, sustained=False, counters=False), a.gpu, sides))


def _fought(match: "Match", timer: Path | None = None) -> Duel:
    """Lets two sides take turns, with this timing core if it is compiled already."""
    toolchain.ensure("gpu")
    for side in match.sides:
        if side.build and (why := side.why_not()):
            failed = Failed(status=side.build.status, reason=f"{side.corner.name}: {why}")
            return match.record([failed], 0.0)
    timer = timer or making.make_timer(match.gpu, match.project)
    begin, options = time.monotonic(), match.options
    with temporary_folder() as folder:
        said = _run(match.task(timer, folder), match.rules, folder, match.gpu)
        found = match.record(said, time.monotonic() - begin)
        if not options.counters or not found.judged or found.judged[0].time.word not in (FASTER, SLOWER):
            return found
        counted = counting.compare(match.sides, options.case, match.gpu, BACKEND, folder)
    return replace(found, counters=counted.counters, no_counters=counted.why_not)


def free_gpu() -> Gpu:
    """Returns the first GPU on which nobody measures; the first one if there is none.

    Raises:
        WarplogError: There is no GPU.
    """
    boards = device.boards()
    if not boards:
        raise WarplogError(f"no GPU: {device.why_not()}; run on a machine with a GPU")
    return next((board for board in boards if not is_held(board.uuid)), boards[0])


def side_task(side: Made, folder: Path) -> SideTask:
    """Returns what a process loads of a side; a copy of its library is made in `folder`."""
    return SideTask(
        family_file=str(side.corner.family.file.resolve()),
        variant=side.corner.variant.name,
        file=str(making.copied(side, folder).resolve()),
        libraries=tuple(making.loaded_by(side).values()),
        memory=dict(side.corner.variant.memory),
    )


@dataclass(frozen=True)
class Match:
    """Two sides that are built, and how they duel."""

    project: Path
    options: Options
    gpu: Gpu
    sides: Sequence[Made]

    @cached_property
    def apart(self) -> str:
        """Why they cannot share a process; "" if they can."""
        return making.why_apart(self.sides)

    @property
    def window_s(self) -> float:
        """Seconds of turns at rest in each process."""
        return _WINDOW_APART_S if self.apart else _WINDOW_S

    @property
    def looks(self) -> int:
        """How often the ratio at rest may be judged."""
        return evidence.looks_within(self.options.seconds, self.window_s)

    @property
    def rules(self) -> dict[Regime, Rule]:
        """When to judge and when to stop, by regime."""
        return evidence.rules(bool(self.apart), self.options.margin, self.looks)

    def task(self, timer: Path, folder: Path) -> DuelTask:
        """Returns the work of the processes; copies of the libraries are made in `folder`."""
        a, b = (side_task(side, folder / name) for side, name in zip(self.sides, "ab", strict=True))
        return DuelTask(
            backend=BACKEND,
            sides=(a, b),
            apart=bool(self.apart),
            case=self.options.case,
            timer=str(timer.resolve()),
            default_mhz=self.gpu.max_sm_mhz,
            gpu_lock=self.gpu.uuid,
            seed=secrets.randbits(32) if self.options.seed is None else self.options.seed,
            window_s=self.window_s,
            margin=self.options.margin,
            looks=self.looks,
            sustained=self.options.sustained,
            journal=str(folder / "journal.jsonl"),
        )

    def record(self, said: Sequence[Note], seconds: float) -> Duel:
        """Returns the record of what the processes said."""
        failed = next((one for one in said if isinstance(one, Failed)), None)
        session = next((one.session for one in said if isinstance(one, Opened)), Session())
        windows: dict[Regime, list[Window]] = {}
        for one in said:
            if isinstance(one, Found):
                windows.setdefault(one.regime, []).append(one.window)
        a, b = (side.record() for side in self.sides)
        memories = [dict(side.corner.variant.memory) for side in self.sides]
        commit = provenance.commit_of(self.project)
        return Duel(
            status=failed.status if failed else "ok",
            reason=failed.reason if failed else "",
            case=self.options.case,
            a=a,
            b=b,
            differs=making.differences(*self.sides),
            margin=self.options.margin,
            apart="" if failed else self.apart,
            same_arrays=memories[0] == memories[1] and not failed and not self.apart,
            seconds=seconds,
            judged=()
            if failed
            else tuple(_judged(name, self.rules[name], windows[name]) for name in windows),
            provenance=provenance.of_job(self.gpu, {}, commit, "", session),
        )


def _run(task: DuelTask, rules: dict[Regime, Rule], folder: Path, gpu: Gpu) -> list[Note]:
    """Runs the worker to its end and returns what it said, the reason for a bad end included."""
    file = folder / "task.json"
    door.write(file, task)
    journal = Listener(Path(task.journal), rules)
    done = run(
        [sys.executable, "-m", "warplog.duel.worker", str(file)],
        timeout_s=_LONGEST_S,
        env=environment(gpu.environment),
        log=folder / "worker.log",
        stop=journal.is_overdue,
    )
    journal.is_overdue()  # reads the last lines
    return journal.said if done.ok else [*journal.said, post_mortem(done, journal.said)]


def post_mortem(done: Completed, said: Sequence[Note]) -> Failed:
    """Returns why the worker ended after it said this.

    Raises:
        WarplogError: It failed for a reason other than a kernel.
    """
    tail = " ".join(done.output_tail.split())[-_LOG_TAIL:]
    if done.returncode == BROKEN:
        raise WarplogError(f"the worker of the duel failed: {tail}")
    doing = [one.what for one in said if isinstance(one, Doing)][-1:]
    if done.timed_out:
        return Failed(status="timeout", reason=": ".join([*doing, f"no answer within {_QUIET_S:g} s"]))
    return Failed(status="crashed", reason=": ".join([*doing, explain_exit(done), tail]))


class Listener:
    """Reads the journal of the processes, shows what they find, and notices if they hang.

    Attributes:
        said: the notes so far.
    """

    def __init__(self, journal: Path, rules: Mapping[Regime, Rule]) -> None:
        """Shows the regimes of these rules."""
        self.said: list[Note] = []
        self._journal, self._rules = journal, rules
        self._since, self._shown = time.monotonic(), False

    def is_overdue(self) -> bool:
        """Reads on; returns whether nothing was said for too long."""
        new = notes(self._journal, len(self.said))
        self.said += new
        for one in new:
            self._since, self._shown = time.monotonic(), False
            if isinstance(one, Found) and one.regime in self._rules:
                sizes, ratio = self._rules[one.regime].sizes, math.exp(one.window.time.log_ratio)
                of = f"process {one.window.process} of {sizes[0]} to {sizes[-1]}"
                say(f"  {one.regime}: {of}: {signed_percent(ratio)}")
        quiet_s = time.monotonic() - self._since
        last = self.said[-1] if self.said else None
        if not isinstance(last, Doing):
            return quiet_s > _QUIET_S
        if quiet_s > _SHOW_AFTER_S and not self._shown:
            say(f"  {last.what}" + (f", process {last.process}" if last.process else ""))
            self._shown = True
        return quiet_s > (_QUIET_S if last.process else PATIENCE_S)


def _judged(regime: Regime, rule: Rule, windows: Sequence[Window]) -> Judged:
    a_us, b_us = (fmean(getattr(window, name) for window in windows) for name in ("a_us", "b_us"))
    step_us, turns = max(window.step_us for window in windows), 2 * sum(window.blocks for window in windows)
    cycles = [window.cycles for window in windows if window.cycles]
    known = len(cycles) == len(windows)
    in_cycles = evidence.judge(cycles, a_us, rule.prior, rule.margin, rule.looks) if known else None
    return Judged(
        regime=regime,
        time=_ratio(rule.judge(windows)),
        cycles=_ratio(in_cycles) if in_cycles else None,
        a_us=a_us,
        b_us=b_us,
        looks=sum(size <= len(windows) for size in rule.sizes),
        most_looks=rule.looks,
        resolution=step_us / (a_us * math.sqrt(turns)),
        windows=tuple(windows),
    )


def _ratio(verdict: Verdict) -> Ratio:
    return Ratio(
        word=verdict.word,  # type: ignore[arg-type]  # one of WORDS
        reason=verdict.reason,
        ratio=verdict.ratio,
        low=verdict.low,
        high=verdict.high,
        floor=verdict.floor,
        p=verdict.p,
    )
