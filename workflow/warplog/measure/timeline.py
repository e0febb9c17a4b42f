"""Stage timeline: captures one launch of the builds with marks, and times these builds beside those without."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_of
from warplog.core.records import Record, read_json
from warplog.extract import perfetto
from warplog.measure.job import (
    Job,
    Refusal,
    family_task,
    keep,
    own_results,
    proofs,
    refuse_build,
    refuse_unproven,
)
from warplog.measure.supervise import discard, run_cases
from warplog.metrics.tracks import Track, shares
from warplog.parsers import timeline_buffer
from warplog.parsers.timeline_buffer import Launch

_MOST_TRACE_EVENTS = 300_000  # about 3 MB when compressed
_WAITING = ("wait", "lookback", "sync")


class _Part:
    """One variant: its case, the build with marks, and the reason if it cannot be captured."""

    def __init__(self, job: Job, proof: Record, marked: Path) -> None:
        self.job, self.marked = job, marked
        self.case = job.family.timeline[job.variant.name]
        self.build: Record = read_json(marked, "record")
        self.refusal: Refusal | None = refuse_unproven(proof, job.build) or refuse_build(self.build)
        library = self.build.get("library_sha256", "")
        self.inputs_sha256 = sha256_of(
            "timeline", job.inputs_sha256, job.build, library, self.case, self.refusal
        )

    @property
    def runnable(self) -> tuple[str, ...]:
        """The case, if the worker runs it."""
        return () if self.refusal else self.job.fitting((self.case,))

    def record(self, results: Mapping[str, Record], session: Record) -> Record:
        """Returns the variant's record, given the result by case."""
        job = self.job
        entry = job.entry(self.case, results, self.refusal)
        return {
            **job.head("timeline", job.build, session),
            "status": entry["status"],
            "reason": entry["reason"],
            "session": session,
            "settings": dict(job.settings),
            "marked_sha256": self.build.get("library_sha256", ""),
            "cases": [entry],
            "inputs_sha256": self.inputs_sha256,
        }


def capture_timelines(jobs: Sequence[Job], check: Path, timer: Path, marked: Sequence[Path]) -> None:
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
    running = {part.job.variant.name: part for part in stale if part.runnable}
    made = [part.record({}, {}) for part in stale if not part.runnable]
    if running:
        made += _captured(running, timer)
    keep(jobs[0], made)


def trace_of(job: Job) -> Path:
    """Returns the trace of a variant, beside the family's record."""
    return paths.captures(job.record) / f"{job.variant.name}.json.gz"


def _is_fresh(part: _Part) -> bool:
    former = part.job.former.get("status")
    return part.job.is_fresh(part.inputs_sha256) and (former != "ok" or trace_of(part.job).is_file())


def _captured(running: Mapping[str, _Part], timer: Path) -> list[Record]:
    """Returns the records of the variants that a worker captures, and writes their traces."""
    first = next(iter(running.values())).job
    parts = [(part.job, part.runnable) for part in running.values()]
    task = family_task(parts, "timeline", {}, timer=timer)
    settings = {
        **first.settings,
        "default_mhz": first.gpu.max_sm_mhz,
        "folder": str(task.folder.absolute()),
        "marked": {name: str(part.marked.with_name("kernel.so")) for name, part in running.items()},
        "marked_sha256": [part.build["library_sha256"] for part in running.values()],
    }
    task = replace(task, settings=settings)
    show = first.progress("timeline", len(task.cases))
    results, session = run_cases(task, first.settings["timeout_s"], show, ("crashed", "timeout"))
    made = []
    for name, part in running.items():
        buffer = task.folder / f"{name}.npz"
        own = {
            case: _with_launch(part.job, result, buffer)
            for case, result in own_results(name, results).items()
        }
        made.append(part.record(own, session))
        buffer.unlink(missing_ok=True)
    discard(task.folder)
    return made


def _with_launch(job: Job, result: Record, buffer: Path) -> Record:
    """Returns the result with the launch that the buffer holds, or its error; writes the trace."""
    if result["status"] != "ok":
        return result
    try:
        launch = read_buffer(buffer)
    except WarplogError as error:
        kept: Record = {key: result[key] for key in ("case", "seconds") if key in result}
        return {**kept, "status": "error", "reason": str(error)}
    about = {
        "family": job.family.name,
        "variant": job.variant.name,
        "case": str(result["case"]),
        "gpu": job.gpu.name,
    }
    perfetto.write_trace(trace_of(job), launch, about, _MOST_TRACE_EVENTS)
    return {**result, "launch": launch_record(launch)}


def read_buffer(path: Path) -> Launch:
    """Returns the launch in a file that the worker wrote.

    Raises:
        WarplogError: The file is missing, or the buffer is not that of one launch.
    """
    if not path.is_file():
        raise WarplogError(f"{path}: the buffer of an interrupted capture is gone; run again")
    with np.load(path) as parts:
        return timeline_buffer.read(parts["head"][0], parts["warps"], parts["events"])


def launch_record(launch: Launch) -> dict[str, Any]:
    """Returns the part of a record that describes a launch, with the warps of its typical SM.

    That is the SM whose share of waiting is the median over the SMs.
    """
    waits = {sm: _wait_pct(tracks) for sm, tracks in launch.tracks.items()}
    ordered = sorted(waits, key=lambda sm: (waits[sm], sm))
    sm = ordered[(len(ordered) - 1) // 2]
    return {
        "sm": sm,
        "sms": len(launch.tracks),
        "origin_us": launch.origin_us[sm],
        "sm_mhz": launch.sm_mhz,
        "step_ns": launch.step_ns,
        "span_us": launch.span_us,
        "blocks": launch.blocks,
        "threads": launch.threads,
        "warps": sum(map(len, launch.tracks.values())),
        "events": launch.events,
        "lost_events": launch.lost_events,
        "lost_warps": launch.lost_warps,
        "wait_pct": [min(waits.values()), median(waits.values()), max(waits.values())],
        "tracks": [_track_record(track) for track in launch.tracks[sm]],
    }


def _wait_pct(tracks: Sequence[Track]) -> float:
    found = shares(tracks)
    return sum(found.get(region, 0.0) for region in _WAITING)


def _track_record(track: Track) -> dict[str, Any]:
    found = {name: getattr(track, name) for name in ("block", "warp", "slot", "begin", "end", "lost")}
    return {**found, "starts": list(track.starts), "regions": list(track.regions)}
