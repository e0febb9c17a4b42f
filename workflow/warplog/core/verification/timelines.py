"""What must hold in the timeline of a launch, and the overhead of its marks."""

import math
from collections.abc import Mapping
from itertools import pairwise
from statistics import median
from typing import Any

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


def inconsistent(case: Mapping[str, Any]) -> str:
    """Returns why a captured case contradicts itself; "" if it does not.

    Its times must be those of the samples. Regions begin in order and within their warp, and each warp occurs once.
    """
    return _times(case["overhead"]) or _tracks(case["launch"])


def _times(found: Mapping[str, Any]) -> str:
    medians = {f"{name}_us": median(found[f"{name}_samples_us"]) for name in ("plain", "marked", "again")}
    if min(medians.values()) <= 0:
        return f"overhead.plain_us is {medians['plain_us']:g}; all times must be above 0"
    for name, expected in {**medians, **overhead(**medians)}.items():
        if not math.isclose(found[name], expected, rel_tol=_RELATIVE, abs_tol=_RELATIVE):
            return f"overhead.{name} is {found[name]:.7g}, its samples give {expected:.7g}"
    return ""


def _tracks(launch: Mapping[str, Any]) -> str:
    seen = set()
    for track in launch["tracks"]:
        warp = track["block"], track["warp"]
        where = f"block {warp[0]}, warp {warp[1]}"
        if warp in seen:
            return f"{where} occurs twice"
        seen.add(warp)
        if len(track["starts"]) != len(track["regions"]):
            return f"{where}: {len(track['starts'])} starts, but {len(track['regions'])} regions"
        clocks = [track["begin"], *track["starts"], track["end"]]
        if disorder := next((pair for pair in pairwise(clocks) if pair[1] < pair[0]), None):
            return f"{where}: clock {disorder[1]} follows {disorder[0]}"
    return ""
