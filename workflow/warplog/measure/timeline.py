"""Stage timeline: captures one launch of the builds with marks, and times these builds beside those without."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_of
from warplog.extract import perfetto
from warplog.measure.job import (
    Job,
    Proof,
    Refusal,
    family_task,
    keep,
    own_results,
    proofs,
    refuse_build,
    refuse_unproven,
)
from warplog.measure.results import Marked, Result
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import TimelineWork
from warplog.metrics.tracks import Track, shares
from warplog.parsers import timeline_buffer
from warplog.parsers.timeline_buffer import Launch
from warplog.records import door
from warplog.records import timeline as records
from warplog.records.build import Build
from warplog.records.config import TimelineSettings
from warplog.records.measured import Session
from warplog.records.timeline import Timeline, TimelineCase

_MOST_TRACE_EVENTS = 300_000  # about 3 MB when compressed
_WAITING = ("wait", "lookback", "sync")


class _Part:
    """One variant: its case, the build with marks, and the reason if it cannot be captured."""

    def __init__(self, job: Job[TimelineSettings], proof: Proof, marked: Path) -> None:
        self.job, self.marked = job, marked
        self.case = job.family.timeline[job.variant.name]
        self.build = door.read(marked, Build)
        self.refusal: Refusal | None = refuse_unproven(proof, job.build) or refuse_build(self.build)
        library, build = self.build.library_sha256, door.plain(job.build)
        self.inputs_sha256 = sha256_of("timeline", job.inputs_sha256, build, library, self.case, self.refusal)

    @property
    def runnable(self) -> tuple[str, ...]:
        """The case, if the worker runs it."""
        return () if self.refusal else self.job.fitting((self.case,))

    def record(self, session: Session, captured: TimelineCase | None = None) -> Timeline:
        """Returns the variant's record, given its captured case if the worker runs it."""
        job = self.job
        case = job.not_run(TimelineCase, self.case, self.refusal) or captured
        assert case is not None
        return Timeline(
            **job.head(session),
            status=case.status,
            reason=case.reason,
            inputs_sha256=self.inputs_sha256,
            marked_sha256=self.build.library_sha256,
            cases=(case,),
            session=session,
            settings=job.settings,
        )


def capture_timelines(
    jobs: Sequence[Job[TimelineSettings]], check: Path, timer: Path, marked: Sequence[Path]
) -> None:
    """Captures the timelines of the variants whose checks passed; the records of the others state the reason.

    A trace for ui.perfetto.dev is written to <family>/<variant>.json.gz beside the record. Records with unchanged
    inputs are kept, if their trace exists.

    Args:
        jobs: the variants of one family that have a timeline.
        check: the family's check records.
        timer: the compiled timing core.
        marked: record.json of each variant's build with marks, in the same order; kernel.so is beside it.

    Raises:
        WarplogError: A check or build record is missing, or the worker failed for a reason other than a kernel.
    """
    parts = [_Part(*part) for part in zip(jobs, proofs(check, jobs), marked, strict=True)]
    stale = [part for part in parts if not _is_fresh(part)]
    running = [part for part in stale if part.runnable]
    made = [part.record(Session()) for part in stale if not part.runnable]
    if running:
        made += _captured(running, timer)
    keep(jobs[0], Timeline, made)


def trace_of(job: Job[TimelineSettings]) -> Path:
    """Returns the trace of a variant, beside the family's record."""
    return paths.captures(job.record) / f"{job.variant.name}.json.gz"


def _is_fresh(part: _Part) -> bool:
    former = part.job.former(Timeline)
    if former is None or not part.job.is_fresh(Timeline, part.inputs_sha256):
        return False
    return former.status != "ok" or trace_of(part.job).is_file()


def _captured(running: Sequence[_Part], timer: Path) -> list[Timeline]:
    """Returns the records of the variants that a worker captures, and writes their traces."""
    first = running[0].job
    work = TimelineWork(
        settings=first.settings,
        marked={part.job.variant.name: str(part.marked.with_name("kernel.so")) for part in running},
        marked_sha256=tuple(part.build.library_sha256 for part in running),
    )
    task = family_task([(part.job, part.runnable) for part in running], work, timer)
    folder, show = Path(task.folder), first.progress("timeline", len(task.runs))
    results, session = run_cases(task, first.settings.timeout_s, show, BREAKS)
    made = []
    for part in running:
        name = part.job.variant.name
        buffer, result = folder / f"{name}.npz", own_results(name, results)[part.case]
        made.append(part.record(session, _with_launch(part.job, result, buffer)))
        buffer.unlink(missing_ok=True)
    discard(folder)
    return made


def _with_launch(job: Job[TimelineSettings], result: Result, buffer: Path) -> TimelineCase:
    """Returns the entry of a result, with the launch that the buffer holds, or its error; writes the trace."""
    case, seconds = result.run.case, result.seconds
    if not isinstance(result.found, Marked):
        return TimelineCase(case=case, status=result.status, reason=result.reason, seconds=seconds)
    try:
        launch = read_buffer(buffer)
    except WarplogError as error:
        return TimelineCase(case=case, status="error", reason=str(error), seconds=seconds)
    about = {"family": job.family.name, "variant": job.variant.name, "case": case, "gpu": job.gpu.name}
    perfetto.write_trace(trace_of(job), launch, about, _MOST_TRACE_EVENTS)
    return TimelineCase(
        case=case,
        status="ok",
        reason="",
        seconds=seconds,
        max_error_over_tolerance=result.found.max_error_over_tolerance,
        overhead=result.found.overhead,
        launch=launch_record(launch),
    )


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
    waits = {sm: _wait_pct(tracks) for sm, tracks in launch.tracks.items()}
    ordered = sorted(waits, key=lambda sm: (waits[sm], sm))
    sm = ordered[(len(ordered) - 1) // 2]
    return records.Launch(
        sm=sm,
        sms=len(launch.tracks),
        origin_us=launch.origin_us[sm],
        sm_mhz=launch.sm_mhz,
        step_ns=launch.step_ns,
        span_us=launch.span_us,
        blocks=launch.blocks,
        threads=launch.threads,
        warps=sum(map(len, launch.tracks.values())),
        events=launch.events,
        lost_events=launch.lost_events,
        lost_warps=launch.lost_warps,
        wait_pct=(min(waits.values()), median(waits.values()), max(waits.values())),
        tracks=tuple(map(_track_record, launch.tracks[sm])),
    )


def _wait_pct(tracks: Sequence[Track]) -> float:
    found = shares(tracks)
    return sum(found.get(region, 0.0) for region in _WAITING)


def _track_record(track: Track) -> records.Track:
    return records.Track(
        block=track.block,
        warp=track.warp,
        slot=track.slot,
        begin=track.begin,
        end=track.end,
        lost=track.lost,
        starts=track.starts,
        regions=track.regions,
    )
