"""Reads a .ncu-rep report with NVIDIA's package `ncu_report`, after checking that the file is complete."""

import math
import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.files import temporary_folder
from warplog.core.process import explain_exit, minimal_env, run
from warplog.parsers.inputs import valid_unicode
from warplog.parsers.ncu import blocks, source
from warplog.parsers.ncu.source import SourceInstruction, SourceLine

NcuObject = Any  # objects of the package ncu_report, which has no type annotations

_CC = "device__attribute_compute_capability_{}"
_NAME = "device__attribute_display_name"
_MOST_INSTANCES = 4096
# The package aborts the process that reads some damaged files, so another process reads them first.
_TRY = """\
import sys, ncu_report
report = ncu_report.load_report(sys.argv[1])
for span in map(report.range_by_idx, range(report.num_ranges())):
    for action in map(span.action_by_idx, range(span.num_actions())):
        action.name(), action.metric_names()
"""
_TRY_S = 120
_SUFFIXES = ("_ratio", "_pct", "_nway")


@dataclass(frozen=True)
class NcuLaunch:
    """One profiled launch.

    `kernel` is the demangled name, `function` the short name. `ranges` are the names of the NVTX push/pop
    ranges around the launch, outermost first, in all domains. `counters` are in base units (ns, bytes, Hz,
    percent); a counter without a value is None. A counter with named entries has its sum under its name and
    each entry under `name:entry`. `lines` are the source lines and `code` the instructions, if requested.
    """

    index: int
    kernel: str
    function: str
    ranges: tuple[str, ...]
    counters: dict[str, float | None]
    compute_capability: tuple[int, int]
    gpu_name: str
    lines: tuple[SourceLine, ...] = ()
    code: tuple[SourceInstruction, ...] = ()


@dataclass(frozen=True)
class NcuReport:
    """All launches of a report in the order of profiling."""

    tool_version: str
    launches: tuple[NcuLaunch, ...]


def read(path: Path, with_lines: bool = False, only: Container[str] | None = None) -> NcuReport:
    """Reads the whole report, or `only` the counters of these names; `with_lines` adds those of each source line and
    instruction.

    Raises:
        WarplogError: if the file is missing, empty, not a report, truncated, damaged, too large or without
            launches, or if the package `ncu-report` is not installed.
    """
    contents = blocks.read_contents(path)
    try:
        launches = tuple(_launch(i, action, with_lines, only) for i, action in enumerate(_actions(path)))
    except WarplogError:
        raise
    except Exception as error:  # the C++ reader raises exceptions of any type on a damaged file
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise WarplogError(f"{path}: is damaged ({why}); profile again") from None
    if len(launches) != contents.launches:
        unread = f"{len(launches)} of its {contents.launches} launches can be read"
        raise WarplogError(f"{path}: is damaged: {unread}; profile again")
    return NcuReport(contents.tool_version, launches)


def _actions(path: Path) -> Iterator[NcuObject]:
    try:
        import ncu_report
    except ImportError:
        raise WarplogError(
            f"{path}: reading it requires the Python package ncu-report; reinstall warplog"
        ) from None
    with _nameable(path) as name:  # the package reads parts of the file later
        tried = run([sys.executable, "-c", _TRY, name], timeout_s=_TRY_S, env=minimal_env())
        if tried.signal_name or tried.timed_out:
            raise WarplogError(f"{path}: is damaged (its reader was {explain_exit(tried)}); profile again")
        context = ncu_report.load_report(name)
        for number in range(context.num_ranges()):
            span = context.range_by_idx(number)
            for index in range(span.num_actions()):
                yield span.action_by_idx(index)


@contextmanager
def _nameable(path: Path) -> Iterator[str]:
    """Yields a name of the file that the package accepts, which must be UTF-8: the file's own, or that of a link."""
    if path == Path(valid_unicode(str(path))):
        yield str(path)
    else:
        with temporary_folder() as folder:
            link = folder / "report.ncu-rep"
            link.symlink_to(path.absolute())
            yield str(link)


def _launch(index: int, action: NcuObject, with_lines: bool, only: Container[str] | None) -> NcuLaunch:
    counters = dict(_counters(action, only))
    code = source.instructions(action) if with_lines else ()
    return NcuLaunch(
        index=index,
        kernel=valid_unicode(action.name(action.NameBase_DEMANGLED)),
        function=action.name(action.NameBase_FUNCTION),
        ranges=tuple(_ranges(action.nvtx_state())),
        counters=counters,
        compute_capability=(_whole(action, "major"), _whole(action, "minor")),
        gpu_name=valid_unicode(str(action[_NAME].value())),
        lines=source.lines(code),
        code=code,
    )


def _whole(action: NcuObject, part: str) -> int:
    return int(action[_CC.format(part)].value() or 0)


def _ranges(state: NcuObject) -> Iterator[str]:
    if state is not None:
        for domain in state.domains():
            yield from state.domain_by_id(domain).push_pop_ranges()


def _counters(action: NcuObject, only: Container[str] | None) -> Iterator[tuple[str, float | None]]:
    """Yields every numeric counter, except time series and ratios that the package adds up."""
    for name in action.metric_names():
        if only is not None and name not in only:
            continue
        if ":" in name:
            continue  # breakdown:* are lists of names, pmsampling:* are time series
        metric = action.metric_by_name(name)
        entries = metric.num_instances()
        if entries and name.startswith("derived__") and name.endswith(_SUFFIXES):
            continue  # the package adds up the ratios of all instructions, which is meaningless
        value = metric.value()
        if isinstance(value, (int, float)) or value is None:
            yield name, None if value is None else float(value)
            yield from _entries(name, metric, entries)


def _entries(name: str, metric: NcuObject, entries: int) -> Iterator[tuple[str, float | None]]:
    """Yields the entries of a counter that has named entries, such as one per opcode."""
    if not 0 < entries <= _MOST_INSTANCES or not metric.has_correlation_ids():
        return
    keys = metric.correlation_ids()
    if keys.kind() != keys.ValueKind_STRING:
        return
    for i in range(entries):
        value = metric.value(i)
        if isinstance(value, (int, float)) and math.isfinite(value):
            yield f"{name}:{keys.value(i)}", float(value)
