"""The hardware counters of both sides, for a difference that was found: which of them changed."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from warplog.analysis.counters import Change, counted, totals
from warplog.core import paths
from warplog.core.errors import WarplogError, say
from warplog.duel.making import Made, own_copy
from warplog.machine import toolchain
from warplog.measure.job import Job
from warplog.measure.stages.capture import NcuStage, diagnose
from warplog.measure.stages.family_stage import Part, family_task
from warplog.measure.supervise import BREAKS, run_cases
from warplog.measure.task import CaptureWork
from warplog.parsers.reports import read_any
from warplog.parsers.rows import Row
from warplog.records.campaign import Gpu
from warplog.records.config import ProfileSettings
from warplog.records.requested.duel import Counter

_SETTINGS = ProfileSettings(metrics="lean", timeout_s=120.0)


@dataclass(frozen=True)
class Counted:
    """The counters that differ beyond their tolerance, or why they are not known."""

    counters: tuple[Counter, ...] = ()
    why_not: str = ""


def compare(sides: Sequence[Made], case: str, gpu: Gpu, backend: str, folder: Path) -> Counted:
    """Captures one launch of each side with Nsight Compute, and returns which counters differ."""
    ncu = toolchain.find("ncu")
    if ncu.path is None:
        return Counted(why_not=f"ncu was not found; {ncu.remedy}")
    found: list[list[Row]] = []
    for side, name in zip(sides, "ab", strict=True):
        if side.build is None:
            return Counted(why_not=f"{side.corner.name} is a Python module, which only a campaign profiles")
        if own := own_copy(side):
            return Counted(why_not=f"{side.corner.name} links another {own} than a profiled process loads")
        say(f"  counters of {side.corner.name}")
        job = Job(
            family=side.corner.family,
            variant=side.corner.variant,
            gpu=gpu,
            build_folder=side.file.parent,
            record=folder / f"counters-{name}.json",
            scratch=folder / f"counters-{name}" / "work",
            settings=_SETTINGS,
            tools={},
            commit="",
            content_sha256="",
            backend=backend,
        )
        stage = NcuStage(folder / "check.json", ncu, {})
        paths.captures(job.record).mkdir()
        work = CaptureWork(tool="ncu", launches=1)
        task = family_task([Part(job, (case,))], work, wrapper=stage.command(job))
        try:
            (result,), _ = run_cases(task, _SETTINGS.timeout_s, lambda _: None, BREAKS, stop_all=True)
            if result.status != "ok":
                return Counted(why_not=f"{side.corner.name}: {result.reason}")
            found.append(read_any(stage.output(job)))
        except (WarplogError, OSError) as error:
            return Counted(why_not=diagnose(Path(task.folder) / "worker.log", str(error))[1])
    return Counted(tuple(_changes(*found)))


def _changes(a: Sequence[Row], b: Sequence[Row]) -> Iterator[Counter]:
    """Yields the counters that differ, of all kernels of the launch together and then of one alone.

    A sum hides what a short kernel does beside a long one. So each counter whose sum is the same is compared kernel by
    kernel, if both sides launch as many, and the kernel that differs most is named.
    """
    together = _counted(a, b)
    yield from (Counter(name=one.counter, a=one.before, b=one.after) for one in together)
    kernels = [[list(rows) for _, rows in groupby(side, attrgetter("launch"))] for side in (a, b)]
    if len(kernels[0]) != len(kernels[1]) or len(kernels[0]) == 1:
        return
    most: dict[str, tuple[Change, int]] = {}
    for number, pair in enumerate(zip(*kernels, strict=True), 1):
        for change in _counted(*pair):
            if change.counter not in most or _size(change) > _size(most[change.counter][0]):
                most[change.counter] = change, number
    for one, number in most.values():
        if one.counter not in [change.counter for change in together]:
            name = kernels[1][number - 1][0].kernel
            yield Counter(name=one.counter, a=one.before, b=one.after, kernel=name, number=number)


def _counted(a: Iterable[Row], b: Iterable[Row]) -> Sequence[Change]:
    return counted(*(totals((row.metric, row.value) for row in side) for side in (a, b)))[1]


def _size(change: Change) -> float:
    return max(change.ratio, 1 / change.ratio) if change.ratio else math.inf
