"""Stage timeline: captures one launch of the builds with marks, and times these builds beside those without."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

import numpy as np
from msgspec import convert, structs

from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.extract import perfetto
from warplog.measure.job import Job
from warplog.measure.progress import show_results
from warplog.measure.results import Result
from warplog.measure.stages.family_stage import AfterCheck, Part, family_task, measured, refuse_build
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import TimelineWork
from warplog.metrics.tracks import shares
from warplog.parsers import timeline_buffer
from warplog.parsers.timeline_buffer import Launch
from warplog.records import door
from warplog.records.build import Build
from warplog.records.config import TimelineSettings
from warplog.records.measured import Session
from warplog.records.requested import timeline as records
from warplog.records.requested.timeline import Timeline, TimelineCase

_MOST_TRACE_EVENTS = 300_000  # about 3 MB when compressed
# What a record has from the launch as it is.
_AS_READ = ("sm_mhz", "step_ns", "span_us", "blocks", "threads", "events", "lost_events", "lost_warps")
_WAITING = ("wait", "lookback", "sync")


@dataclass(frozen=True)
class TimelineStage(AfterCheck[TimelineSettings, TimelineCase, Timeline]):
    """One launch of each variant that has a timeline, and the overhead of its marks; see `capture_timelines`."""

    timer: Path
    marked: Mapping[str, Path]
    name = "timeline"
    kind = Timeline

    @cached_property
    def _builds(self) -> Mapping[str, Build]:
        return {variant: door.read(path, Build) for variant, path in self.marked.items()}

    def part(self, job: Job[TimelineSettings]) -> Part[TimelineSettings]:
        """Returns what is done with a variant: one case, unless its check or its build with marks failed."""
        case, marked = job.family.timeline[job.variant.name], self._builds[job.variant.name]
        refusal = self.refuse(job) or refuse_build(marked)
        return self._part(job, [case], refusal, marked.library_sha256, case, refusal)

    def files(self, job: Job[TimelineSettings], entry: Timeline) -> Sequence[Path]:
        """Returns the trace of an entry."""
        return [trace_of(job)] if entry.status == "ok" else []

    def measure(self, parts: Sequence[Part[TimelineSettings]]) -> Iterator[list[Timeline]]:
        """Runs one variant after the other, and writes their traces."""
        first = parts[0].job
        work = TimelineWork(
            settings=first.settings,
            marked={part.variant: str(self.marked[part.variant].with_name("kernel.so")) for part in parts},
            marked_sha256=tuple(self._builds[part.variant].library_sha256 for part in parts),
        )
        task = family_task(parts, work, timer=self.timer)
        show = show_results(self.name, first, len(task.runs))
        results, session = run_cases(task, first.settings.timeout_s, show, BREAKS)
        folder, result_of = Path(task.folder), {result.run.variant: result for result in results}
        cases = {part.variant: _with_launch(part.job, result_of[part.variant], folder) for part in parts}
        yield [self.entry(part, {part.cases[0]: cases[part.variant]}, session) for part in parts]
        for buffer in folder.glob("*.npz"):
            buffer.unlink()
        discard(folder)

    def entry(
        self, part: Part[TimelineSettings], ran: Mapping[str, TimelineCase], session: Session
    ) -> Timeline:
        """Returns the timeline of a variant."""
        (case,) = part.all_cases(TimelineCase, ran)
        return Timeline(
            **part.job.head(session, (case.status, case.reason), part.inputs_sha256),
            marked_sha256=self._builds[part.variant].library_sha256,
            cases=(case,),
            session=session,
            settings=part.job.settings,
        )


def capture_timelines(
    jobs: Sequence[Job[TimelineSettings]], check: Path, timer: Path, marked: Sequence[Path]
) -> None:
    """Captures the timelines of the variants of one family whose checks passed; see `FamilyStage.run`.

    A trace for ui.perfetto.dev is written to <family>/<variant>.json.gz beside the record; an entry whose trace is
    gone is not fresh.

    Args:
        jobs: the variants of one family that have a timeline.
        check: the family's check records.
        timer: the compiled timing core.
        marked: record.json of each variant's build with marks, in the same order; kernel.so is beside it.
    """
    builds = {job.variant.name: record for job, record in zip(jobs, marked, strict=True)}
    TimelineStage(check, timer, builds).run(jobs)


def trace_of(job: Job[TimelineSettings]) -> Path:
    """Returns the trace of a variant, beside the family's record."""
    return paths.captures(job.record) / f"{job.variant.name}.json.gz"


def _with_launch(job: Job[TimelineSettings], result: Result, folder: Path) -> TimelineCase:
    """Returns what the entry says of the case: with the launch in the buffer of the worker; writes the trace."""
    if result.status != "ok":
        return measured(TimelineCase, result)
    try:
        launch = read_buffer(folder / f"{job.variant.name}.npz")
    except WarplogError as error:
        return measured(TimelineCase, structs.replace(result, status="error", reason=str(error), found=None))
    of_run = {"variant": result.run.variant, "case": result.run.case}
    about = {"family": job.family.name, **of_run, "gpu": job.gpu.name}
    perfetto.write_trace(trace_of(job), launch, about, _MOST_TRACE_EVENTS)
    return measured(TimelineCase, result, launch=launch_record(launch))


def read_buffer(path: Path) -> Launch:
    """Returns the launch in a file that the worker wrote.

    Raises:
        WarplogError: The file is missing, or the buffer is not that of one launch.
    """
    if not path.is_file():
        raise WarplogError(f"{path}: the buffer of an interrupted capture is gone; run again")
    with np.load(path) as parts:
        return timeline_buffer.read(parts["head"][0], parts["warps"], parts["events"])


def launch_record(launch: Launch) -> records.Launch:
    """Returns the part of a record that describes a launch, with the warps of its typical SM.

    That is the SM whose share of waiting is the median over the SMs.
    """
    share_of = {sm: shares(tracks) for sm, tracks in launch.tracks.items()}
    waits = {sm: sum(share.get(region, 0.0) for region in _WAITING) for sm, share in share_of.items()}
    ordered = sorted(waits, key=lambda sm: (waits[sm], sm))
    sm = ordered[(len(ordered) - 1) // 2]
    return records.Launch(
        sm=sm,
        sms=len(launch.tracks),
        origin_us=launch.origin_us[sm],
        **{name: getattr(launch, name) for name in _AS_READ},
        warps=sum(map(len, launch.tracks.values())),
        wait_pct=(min(waits.values()), median(waits.values()), max(waits.values())),
        tracks=convert(launch.tracks[sm], tuple[records.Track, ...], from_attributes=True),
    )
