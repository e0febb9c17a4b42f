"""Writes the timeline of a launch as a trace that ui.perfetto.dev and chrome://tracing open.

Format: Trace Event Format (Google, 2016), as JSON compressed with gzip: complete events ("X"), times in microseconds.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from warplog.core.files import write_bytes
from warplog.metrics.tracks import Track, roles
from warplog.parsers.timeline_buffer import Launch

_PER_US = 10_000  # times are multiples of 0.1 ns, so that regions meet exactly


def write_trace(path: Path, launch: Launch, about: Mapping[str, str], most_events: int) -> None:
    """Writes the trace of a launch.

    Args:
        path: the file, ending in .json.gz.
        launch: the launch.
        about: facts for the trace's `otherData`, such as GPU, variant and case.
        most_events: SMs are left out from the one on with which there would be more regions than this; `otherData`
            states how many SMs are shown.

    Raises:
        WarplogError: The file cannot be written.
    """
    text = json.dumps(trace(launch, about, most_events), separators=(",", ":"))
    write_bytes(path, gzip.compress(text.encode(), mtime=0))


def trace(launch: Launch, about: Mapping[str, str], most_events: int) -> dict[str, Any]:
    """Returns the trace: a process per SM, a thread per slot and warp, a slice per block, and in it one per region."""
    events: list[dict[str, Any]] = []
    shown = regions = 0
    role = roles(track for own in launch.tracks.values() for track in own)
    for sm, tracks in launch.tracks.items():
        regions += sum(len(track.starts) for track in tracks)
        if shown and regions > most_events:
            break
        shown += 1
        events.append(_named("process_name", sm, 0, f"SM {sm}"))
        width = 1 + max(track.warp for track in tracks)
        threads = {track.slot * width + track.warp: track for track in tracks}
        for thread, track in sorted(threads.items()):
            name = f"slot {track.slot}, warp {track.warp}: {role(track)}"
            events.append(_named("thread_name", sm, thread, name))
        for track in tracks:
            events += _slices(track, track.slot * width + track.warp, launch)
    count = f"{shown} of {len(launch.tracks)} SMs"
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {**about, "shown": count}}


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _slices(track: Track, thread: int, launch: Launch) -> Iterator[dict[str, Any]]:
    def time(clock: int) -> int:
        return round((launch.origin_us[track.sm] + clock / launch.sm_mhz) * _PER_US)

    def slice_of(name: str, kind: str, begin: int, end: int) -> dict[str, Any]:
        first, last = time(begin), time(end)
        place = {"pid": track.sm, "tid": thread, "args": {"clock": begin, "clocks": end - begin}}
        times = {"ts": first / _PER_US, "dur": (last - first) / _PER_US}
        return {"name": name, "cat": kind, "ph": "X", **times, **place}

    yield slice_of(f"block {track.block}", "block", track.begin, track.end)
    for span in track.spans():
        yield slice_of(span.region, "region", span.begin, span.end)
