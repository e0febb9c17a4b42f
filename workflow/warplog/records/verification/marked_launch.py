"""What must hold in the timeline of a launch, and the overhead of its marks."""

import math
from itertools import pairwise
from statistics import median

from warplog.records.requested.timeline import Launch, Overhead, TimelineCase

_RELATIVE = 1e-9


def overhead(plain_us: float, marked_us: float, again_us: float) -> dict[str, float]:
    """Returns the overhead of the marks and the noise in percent.

    Args:
        plain_us: time of the build without marks, `again_us` that of the same build once more.
        marked_us: time of the build with marks.
    """
    return {
        "overhead_pct": 100 * (marked_us / ((plain_us + again_us) / 2) - 1),
        "noise_pct": 100 * abs(again_us / plain_us - 1),
    }


def inconsistent(case: TimelineCase) -> str:
    """Returns why a captured case contradicts itself; "" if it does not, or has no results.

    Its times must be those of the samples. Regions begin in order and within their warp, and each warp occurs once.
    """
    if case.overhead is None or case.launch is None:
        return ""
    return _times(case.overhead) or _tracks(case.launch)


def _times(times: Overhead) -> str:
    samples = (times.plain_samples_us, times.marked_samples_us, times.again_samples_us)
    plain_us, marked_us, again_us = map(median, samples)
    if min(plain_us, marked_us, again_us) <= 0:
        return f"overhead.plain_us is {plain_us:g}; all times must be above 0"
    medians = {"plain_us": plain_us, "marked_us": marked_us, "again_us": again_us}
    for name, expected in {**medians, **overhead(plain_us, marked_us, again_us)}.items():
        value: float = getattr(times, name)
        if not math.isclose(value, expected, rel_tol=_RELATIVE, abs_tol=_RELATIVE):
            return f"overhead.{name} is {value:.7g}, its samples give {expected:.7g}"
    return ""


def _tracks(launch: Launch) -> str:
    seen = set()
    for track in launch.tracks:
        where = f"block {track.block}, warp {track.warp}"
        if where in seen:
            return f"{where} occurs twice"
        seen.add(where)
        if len(track.starts) != len(track.regions):
            return f"{where}: {len(track.starts)} starts, but {len(track.regions)} regions"
        clocks = [track.begin, *track.starts, track.end]
        if disorder := next((pair for pair in pairwise(clocks) if pair[1] < pair[0]), None):
            return f"{where}: clock {disorder[1]} follows {disorder[0]}"
    return ""
