"""Writes the timeline of a launch as a trace that ui.perfetto.dev and chrome://tracing open.

Format: Trace Event Format (Google, 2016), as JSON compressed with gzip: complete events ("X"), times in microseconds.
"""

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, json

from warplog.core.files import write_bytes
from warplog.metrics.tracks import Track, roles
from warplog.parsers.timeline_buffer import Launch

_PER_US = 10_000  # times are multiples of 0.1 ns, so that regions meet exactly


class Name(Struct, tag_field="ph", tag="M", frozen=True, kw_only=True):
    """The name of a process or a thread."""

    name: Literal["process_name", "thread_name"]
    pid: int
    tid: int
    args: Mapping[Literal["name"], str]


class Slice(Struct, tag_field="ph", tag="X", frozen=True, kw_only=True):
    """A block or a region of a warp; `args` are its first clock and its length in clocks."""

    name: str
    cat: Literal["block", "region"]
    ts: float
    dur: float
    pid: int
    tid: int
    args: Mapping[Literal["clock", "clocks"], int]


class Trace(Struct, rename="camel", frozen=True, kw_only=True):
    """The content of the file."""

    trace_events: list[Name | Slice]
    display_time_unit: Literal["ns"] = "ns"
    other_data: Mapping[str, str]


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
    write_bytes(path, gzip.compress(json.encode(trace(launch, about, most_events)), mtime=0))


def trace(launch: Launch, about: Mapping[str, str], most_events: int) -> Trace:
    """Returns the trace: a process per SM, a thread per slot and warp, a slice per block, and in it one per region."""
    events: list[Name | Slice] = []
    shown = regions = 0
    role = roles(track for own in launch.tracks.values() for track in own)
    for sm, tracks in launch.tracks.items():
        regions += sum(len(track.starts) for track in tracks)
        if shown and regions > most_events:
            break
        shown += 1
        events.append(Name(name="process_name", pid=sm, tid=0, args={"name": f"SM {sm}"}))
        width = 1 + max(track.warp for track in tracks)
        threads = {track.slot * width + track.warp: track for track in tracks}
        for thread, track in sorted(threads.items()):
            name = f"slot {track.slot}, warp {track.warp}: {role(track)}"
            events.append(Name(name="thread_name", pid=sm, tid=thread, args={"name": name}))
        for track in tracks:
            events += _slices(track, track.slot * width + track.warp, launch)
    return Trace(trace_events=events, other_data={**about, "shown": f"{shown} of {len(launch.tracks)} SMs"})


def _slices(track: Track, thread: int, launch: Launch) -> Iterator[Slice]:
    def time(clock: int) -> int:
        return round((launch.origin_us[track.sm] + clock / launch.sm_mhz) * _PER_US)

    def slice_of(name: str, kind: Literal["block", "region"], begin: int, end: int) -> Slice:
        first, last = time(begin), time(end)
        return Slice(
            name=name,
            cat=kind,
            ts=first / _PER_US,
            dur=(last - first) / _PER_US,
            pid=track.sm,
            tid=thread,
            args={"clock": begin, "clocks": end - begin},
        )

    yield slice_of(f"block {track.block}", "block", track.begin, track.end)
    for span in track.spans:
        yield slice_of(span.region, "region", span.begin, span.end)
