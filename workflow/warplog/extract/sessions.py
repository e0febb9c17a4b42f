"""One variant's part of a profiler session that captured all variants of a family.

The capture puts the launches of a case into the NVTX range `case:<variant>:<case>`. The part of a variant contains
its own launches, in the range `case:<case>`, without those of the other variants.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from warplog.core.files import state_of
from warplog.extract.trace import CASE
from warplog.parsers.ncu import report as ncu_rep
from warplog.parsers.ncu.report import NcuLaunch, NcuReport
from warplog.parsers.nsys import sqlite
from warplog.parsers.nsys.sqlite import NsysEvent, NsysKernel, NsysReport

_Ranged = TypeVar("_Ranged", NcuLaunch, NsysEvent, NsysKernel)


def ncu(path: Path, variant: str) -> NcuReport:
    """Returns the report with the launches of a variant, and the launches outside all case ranges.

    Raises:
        WarplogError: if the report is missing, truncated or damaged.
    """
    report = _ncu(path, state_of(path))
    return replace(report, launches=tuple(_of_variant(report.launches, variant)))


def nsys(path: Path, variant: str) -> NsysReport:
    """Returns the report with the events of a variant, and the events outside all case ranges.

    A report without kernels is accepted, because a variant may consist of copies only.

    Raises:
        WarplogError: if the report is missing, truncated or damaged.
    """
    report = _nsys(path, state_of(path))
    return replace(
        report,
        kernels=tuple(_of_variant(report.kernels, variant)),
        memcpys=tuple(_of_variant(report.memcpys, variant)),
        memsets=tuple(_of_variant(report.memsets, variant)),
        calls=tuple(_of_variant(report.calls, variant)),
    )


def _of_variant(events: Iterable[_Ranged], variant: str) -> Iterator[_Ranged]:
    for event in events:
        case = next((name for name in reversed(event.ranges) if name.startswith(CASE)), "")
        owner, _, name = case.removeprefix(CASE).rpartition(":")
        if not owner:
            yield event
        elif owner == variant:
            ranges = tuple(f"{CASE}{name}" if r == case else r for r in event.ranges)
            yield replace(event, ranges=ranges)


# One report is enough: the variants of a session are extracted one after the other.
@lru_cache(maxsize=1)
def _ncu(path: Path, _state: tuple[int, int]) -> NcuReport:
    return ncu_rep.read(path, with_lines=True)


@lru_cache(maxsize=1)
def _nsys(path: Path, _state: tuple[int, int]) -> NsysReport:
    return sqlite.read(path, needs_kernels=False)
