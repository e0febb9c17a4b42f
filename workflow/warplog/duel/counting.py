"""The hardware counters of both sides, for a difference that was found: which of them changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warplog.analysis.counters import counted, totals
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
    found = []
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
            found.append(totals((row.metric, row.value) for row in read_any(stage.output(job))))
        except (WarplogError, OSError) as error:
            return Counted(why_not=diagnose(Path(task.folder) / "worker.log", str(error))[1])
    _, changes = counted(*found)
    return Counted(tuple(Counter(name=one.counter, a=one.before, b=one.after) for one in changes))
