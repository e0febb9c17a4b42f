"""A profiler's session over all variants of a family, as each of its variants sees it.

The capture puts the launches of a case into the range `case:<variant>:<case>`; a variant's view has them in
`case:<case>` and nothing of the others.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from warplog.extract.timeline import CASE
from warplog.parsers.ncu import report as ncu_rep
from warplog.parsers.ncu.report import NcuLaunch, NcuReport
from warplog.parsers.nsys import sqlite
from warplog.parsers.nsys.sqlite import NsysEvent, NsysKernel, NsysReport

_Ranged = TypeVar("_Ranged", NcuLaunch, NsysEvent, NsysKernel)


def ncu(path: Path, variant: str) -> NcuReport:
    """The launches of a variant, and those that lie in no case's range.

    Raises:
        WarplogError: the report is missing, cut or damaged.
    """
    report = _ncu(path, _state(path))
    return replace(report, launches=tuple(_own(report.launches, variant)))


def nsys(path: Path, variant: str) -> NsysReport:
    """The events of a variant, and those that lie in no case's range. A variant may be nothing but copies.

    Raises:
        WarplogError: the report is missing, cut or damaged.
    """
    report = _nsys(path, _state(path))
    return replace(
        report,
        kernels=tuple(_own(report.kernels, variant)),
        memcpys=tuple(_own(report.memcpys, variant)),
        memsets=tuple(_own(report.memsets, variant)),
        calls=tuple(_own(report.calls, variant)),
    )


def _own(events: Iterable[_Ranged], variant: str) -> Iterator[_Ranged]:
    for event in events:
        case = next((name for name in reversed(event.ranges) if name.startswith(CASE)), "")
        owner, _, name = case.removeprefix(CASE).rpartition(":")
        if not owner:
            yield event
        elif owner == variant:
            ranges = tuple(f"{CASE}{name}" if r == case else r for r in event.ranges)
            yield replace(event, ranges=ranges)


def _state(path: Path) -> tuple[int, int]:
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0)


# The variants of a session are extracted one after the other.
@lru_cache(maxsize=1)
def _ncu(path: Path, _state: tuple[int, int]) -> NcuReport:
    return ncu_rep.read(path, with_lines=True)


@lru_cache(maxsize=1)
def _nsys(path: Path, _state: tuple[int, int]) -> NsysReport:
    return sqlite.read(path, needs_kernels=False)
