"""Stage extract: turns the reports of both profilers into metric rows and a trace, by case.

The capture puts each case into an NVTX range `case:<case>`, and each launch of the variant, which may consist of
several kernels, into a range `launch:<i>` within it. ncu provides every metric of every kernel launch of a case,
numbered from 0. nsys provides the time of one launch of the variant (kernel "") and of each of its kernels or copies,
medians over back-to-back launches, and the overlap of its copies (see `trace.overlap_metrics`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from warplog.core import paths
from warplog.core.errors import WarplogError, say
from warplog.core.hashing import sha256_file
from warplog.extract import hot_lines, hot_loops, sessions, trace
from warplog.extract.trace import CASE, LAUNCH, named
from warplog.metrics import METRICS, Evaluated, absent, evaluate
from warplog.metrics.kernels import longest_kernel
from warplog.parsers.ncu.report import NcuLaunch
from warplog.parsers.nsys.sqlite import NsysEvent
from warplog.records.extract import Capture, Event, Extract, HotLine, HotLoop, Launched, MetricRow
from warplog.records.family_file import FamilyRecord
from warplog.records.fields import Status, Tool
from warplog.records.profile import Profile

_Ranged = TypeVar("_Ranged", NcuLaunch, NsysEvent)
_MOST_REASON = 500


@dataclass(frozen=True)
class _Captured:
    """What a profiler captured of a variant: its record, the report in `folder`, and the cases that were requested."""

    profile: Profile
    folder: Path
    cases: Sequence[str]

    @property
    def report(self) -> Path:
        return self.folder / self.profile.report

    def split(self) -> tuple[dict[str, tuple[Status, str]], tuple[str, ...]]:
        """Returns the cases that were not captured, with status and reason, and the captured ones."""
        profile = self.profile
        whole = (profile.status, profile.reason)
        own = {case.case: (case.status, case.reason) for case in profile.cases}
        states = {case: whole if whole[0] != "ok" else own.get(case, whole) for case in self.cases}
        refused = {case: state for case, state in states.items() if state[0] != "ok"}
        if len(refused) < len(states) and not profile.report:
            raise WarplogError(
                f"{profile.tool} report: missing although its record has the status ok; profile again"
            )
        return refused, tuple(case for case in self.cases if case not in refused)

    def by_case(self, events: Iterable[_Ranged], cases: Sequence[str]) -> dict[str, list[_Ranged]]:
        """Groups the events by case, keeping their order; events outside all case ranges (warm-up) are left out.

        Raises:
            WarplogError: The events are not those of `cases`, or not of as many launches as the record has; with fewer
                the report is truncated between two launches.
        """
        by_case: dict[str, list[_Ranged]] = defaultdict(list)
        for event in events:
            if (case := named(event.ranges, CASE)) is not None:
                by_case[case].append(event)
        if unknown := sorted(set(by_case) - set(cases)):
            raise WarplogError(
                f"{self.report}: case {unknown[0]}: was captured but not requested; profile again"
            )
        expected = {case.case: case.launches for case in self.profile.cases}
        for case in cases:
            where = f"{self.report}: case {case}"
            launches = {named(event.ranges, LAUNCH) for event in by_case.get(case, ())}
            if not launches:
                raise WarplogError(f"{where}: its range contains no events; profile again")
            if None in launches:
                raise WarplogError(
                    f"{where}: a kernel was launched outside all ranges {LAUNCH}<i>; profile again"
                )
            if expected.get(case) not in (None, len(launches)):
                raise WarplogError(
                    f"{where}: contains {len(launches)} of {expected[case]} launches; profile again"
                )
        return by_case


@dataclass(frozen=True)
class _Evidence:
    """What a report contains, as the extract record stores it."""

    rows: Sequence[MetricRow]
    lines: Sequence[HotLine] = ()
    loops: Sequence[HotLoop] = ()
    trace: Sequence[Event] = ()
    kernels: Sequence[Launched] = ()


def extract_family(
    ncu: Path,
    nsys: Path,
    cases: Mapping[str, Sequence[str]],
    traced: Mapping[str, Sequence[str]],
    output: Path,
    sources: Sequence[Path] = (),
) -> None:
    """Writes the extract record of a family.

    An unusable report (missing, truncated, or of other cases) affects only its own rows: they get the status
    'error' and the reason, which is also printed to standard error. A lost launch must not cost a campaign.

    Args:
        ncu: profile record of Nsight Compute; its reports are in the folder next to it (paths.captures).
        nsys: profile record of Nsight Systems, likewise.
        cases: the cases captured by ncu, by variant; only these variants are extracted, other records are kept
            if their variant has a profile record.
        traced: the cases captured by nsys, by variant.
        output: the extract record of the family.
        sources: source files of the family, for the text of hot lines.

    Raises:
        WarplogError: if a profile record is missing or damaged.
    """
    of_ncu, of_nsys = (FamilyRecord.read(path, Profile).variants for path in (ncu, nsys))
    together = FamilyRecord.read_if_there(output, Extract)
    together.keep_only(of_ncu)
    for variant in cases:
        counted = _Captured(of_ncu[variant], paths.captures(ncu), cases[variant])
        seen = _Captured(of_nsys[variant], paths.captures(nsys), traced[variant])
        together.put(_record(counted, seen, sources))
    together.write()


def _record(counted: _Captured, seen: _Captured, sources: Sequence[Path]) -> Extract:
    counted, counts = _as_far_as_good(lambda captured: _of_ncu(captured, sources), counted)
    seen, times = _as_far_as_good(_of_nsys, seen)
    both = (counted.profile, seen.profile)
    worse = min(both, key=lambda profile: {"ok": 2, "skipped": 1}.get(profile.status, 0))
    return Extract(
        family=worse.family,
        variant=worse.variant,
        gpu=worse.gpu,
        origin=counted.profile.origin,
        status=worse.status,
        reason=worse.reason,
        captures=(_capture(counted), _capture(seen)),
        rows=(*counts.rows, *times.rows),
        lines=tuple(counts.lines),
        trace=tuple(times.trace),
        kernels=tuple(times.kernels),
        loops=tuple(counts.loops),
    )


def _capture(captured: _Captured) -> Capture:
    profile, report = captured.profile, captured.report
    return Capture(
        tool=profile.tool,
        tool_version=profile.tool_version,
        status=profile.status,
        sha256=sha256_file(report) if report.is_file() else "",
    )


def _as_far_as_good(
    take: Callable[[_Captured], _Evidence], captured: _Captured
) -> tuple[_Captured, _Evidence]:
    """Returns the capture and what it contains; if its report is of no use, both with the status "error"."""
    try:
        return captured, take(captured)
    except WarplogError as error:
        reason, profile = str(error)[:_MOST_REASON], captured.profile
        say(f"  extract {profile.family}/{profile.variant}  error  {reason}")
        bad = replace(captured, profile=structs.replace(profile, status="error", reason=reason))
        return bad, take(bad)


def _of_ncu(captured: _Captured, sources: Sequence[Path]) -> _Evidence:
    """Returns the metric rows and hot lines of every launch in the ncu report, and the hot loops of the longest."""
    profile = captured.profile
    refused, cases = captured.split()
    rows = [
        _row(case, "", 0, value, "ncu", profile.tool_version)
        for case, state in refused.items()
        for value in absent(*state)
    ]
    lines: list[HotLine] = []
    loops: list[HotLoop] = []
    if not cases:
        return _Evidence(rows)
    report = sessions.ncu(captured.report, profile.variant)
    outside = [launch for launch in report.launches if named(launch.ranges, CASE) is None]
    if outside:
        raise WarplogError(
            f"{captured.report}: kernel {outside[0].function}: was launched outside all ranges {CASE}<case>;"
            " profile again"
        )
    by_case = captured.by_case(report.launches, cases)
    for case in cases:
        first = len(rows)
        for number, launch in enumerate(by_case[case]):
            values = evaluate(launch.counters, launch.compute_capability)
            rows += [_row(case, launch.kernel, number, value, "ncu", report.tool_version) for value in values]
            lines += hot_lines.hottest(case, launch.kernel, number, launch.lines, sources)
        if (longest := longest_kernel(map(structs.asdict, rows[first:]))) is not None:
            kernel, number = longest
            loops += hot_loops.hottest(case, kernel, number, by_case[case][number].code)
    return _Evidence(rows, lines, loops)


def _of_nsys(captured: _Captured) -> _Evidence:
    """Returns the rows, the trace and the kernels of the nsys report."""
    profile = captured.profile
    refused, cases = captured.split()
    rows = [
        _row(case, "", 0, _evaluated(trace.WHOLE, None, *state), "nsys", profile.tool_version)
        for case, state in refused.items()
    ]
    kernels: list[Launched] = []
    if not cases:
        return _Evidence(rows)
    report = sessions.nsys(captured.report, profile.variant)
    by_case = captured.by_case((*report.kernels, *report.memcpys, *report.memsets), cases)
    for case in cases:
        launches: dict[str | None, list[NsysEvent]] = defaultdict(list)
        for event in by_case[case]:
            launches[named(event.ranges, LAUNCH)].append(event)
        rows += [
            _row(case, kernel, number, _evaluated(metric, value), "nsys", report.tool_version)
            for kernel, number, metric, value in trace.launch_metrics(list(launches.values()))
        ]
        kernels += trace.launched_kernels(case, by_case[case])
    return _Evidence(rows, trace=trace.events_of(report, cases), kernels=kernels)


def _evaluated(metric: str, value: float | None, status: Status = "ok", reason: str = "") -> Evaluated:
    return Evaluated(metric, value, METRICS[metric].unit, status, reason)


def _row(case: str, kernel: str, launch: int, value: Evaluated, tool: Tool, version: str) -> MetricRow:
    return MetricRow(
        case=case, kernel=kernel, launch=launch, tool=tool, tool_version=version, **value._asdict()
    )
