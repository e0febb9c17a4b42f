"""Stage extract: the reports of both profilers as metric rows and a timeline, matched to cases by NVTX range.

The capture puts each case into a range `case:<case>` and each launch of the variant, which may be several
kernels, into a range `launch:<i>` within it.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from warplog.core.errors import WarplogError
from warplog.core.records import SCHEMA_VERSION, Record, read_json, sha256_file, worst, write_json
from warplog.extract import hot_lines, sessions
from warplog.extract import timeline as launch_times
from warplog.extract.timeline import CASE, LAUNCH, launched_kernels, named, timeline_rows
from warplog.metrics import METRICS, Evaluated, absent, evaluate
from warplog.parsers.ncu.report import NcuLaunch
from warplog.parsers.nsys.sqlite import NsysEvent

Row = dict[str, Any]
_Ranged = TypeVar("_Ranged", NcuLaunch, NsysEvent)
_Taken = TypeVar("_Taken")
_MOST_REASON = 500


@dataclass(frozen=True)
class Evidence:
    """What both captures of a variant hold, as the extract record stores it."""

    rows: tuple[Row, ...]
    timeline: tuple[Row, ...]
    lines: tuple[Row, ...] = ()
    kernels: tuple[Row, ...] = ()


def extract_record(
    ncu_record: Path,
    nsys_record: Path,
    cases: Sequence[str],
    output: Path,
    sources: Sequence[Path] = (),
    nsys_cases: Sequence[str] | None = None,
) -> Record:
    """Writes the extract record of one variant; `sources` are its files, for the text of hot lines.

    The reports lie beside their records. `nsys_cases` are the cases that nsys captured, where they are not
    those of ncu.

    A report that is of no use (missing, cut, not of these cases) costs its own rows: they say why, with the status
    'error', and so does standard error. One launch that a profiler lost must not cost a campaign.

    Raises:
        WarplogError: a profile record is missing or damaged.
    """
    files = {"ncu": ncu_record, "nsys": nsys_record}
    told = {tool: read_json(path, "record") for tool, path in files.items()}
    reports = {tool: _report(files[tool], record) for tool, record in told.items()}
    traced = cases if nsys_cases is None else nsys_cases
    told["ncu"], counted = _as_far_as_good(
        lambda r: _ncu_rows(reports["ncu"], r, cases, sources), told["ncu"]
    )
    told["nsys"], seen = _as_far_as_good(lambda r: _nsys_evidence(reports["nsys"], r, traced), told["nsys"])
    captures = [_capture(told[tool], report) for tool, report in reports.items()]
    record = {**_head(told), "captures": captures, **_lists(_together(counted, seen))}
    write_json(output, record, "record")
    return record


def _head(told: Mapping[str, Record]) -> Record:
    """Whose evidence it is, and the worse of the captures' states."""
    status = worst(record["status"] for record in told.values())
    return {
        "schema": SCHEMA_VERSION,
        "stage": "extract",
        **{key: told["ncu"][key] for key in ("family", "variant", "gpu", "origin")},
        "status": status,
        "reason": next((r["reason"] for r in told.values() if r["status"] == status != "ok"), ""),
    }


def _lists(evidence: Evidence) -> Record:
    return {name: list(rows) for name, rows in vars(evidence).items()}


def _as_far_as_good(take: Callable[[Record], _Taken], record: Record) -> tuple[Record, _Taken]:
    """The record and what `take` makes of it; where the report fails, of the record as an error."""
    try:
        return record, take(record)
    except WarplogError as error:
        reason = str(error)[:_MOST_REASON]
        print(
            f"  extract {record['family']}/{record['variant']}  error  {reason}", file=sys.stderr, flush=True
        )
        bad = {**record, "status": "error", "reason": reason}
        return bad, take(bad)


def extract_variant(
    ncu_report: Path | None,
    nsys_report: Path | None,
    ncu_record: Mapping[str, Any],
    nsys_record: Mapping[str, Any],
    cases: Sequence[str],
    sources: Sequence[Path] = (),
    nsys_cases: Sequence[str] | None = None,
) -> Evidence:
    """Metric rows and hot source lines of all `cases`, and the timeline of nsys.

    ncu gives every metric of every kernel launch of a case; `launch` counts them from 0. nsys gives the time
    of one launch of the variant (kernel "") and of each of its kernels or copies, medians over back-to-back
    launches, and what hid its copies (see launch_times).
    Where a capture's record is not "ok", all of its metrics appear without a value, with that status.

    Raises:
        WarplogError: a capture whose record is "ok" is missing, cut, or its launches do not match the cases.
    """
    traced = cases if nsys_cases is None else nsys_cases
    return _together(
        _ncu_rows(ncu_report, ncu_record, cases, sources), _nsys_evidence(nsys_report, nsys_record, traced)
    )


def _together(counted: tuple[list[Row], list[Row]], seen: Evidence) -> Evidence:
    rows, lines = counted
    return replace(seen, rows=(*rows, *seen.rows), lines=tuple(lines))


def _nsys_evidence(path: Path | None, record: Mapping[str, Any], cases: Sequence[str]) -> Evidence:
    """All that nsys tells."""
    refused, captured = _split(cases, record)
    rows: list[Row] = []
    for case, (status, reason) in refused.items():
        value = Evaluated(launch_times.WHOLE, None, METRICS[launch_times.WHOLE].unit, status, reason)
        rows.append(_row(case, "", 0, value, record))
    if not captured:
        return Evidence(tuple(rows), ())
    path = _existing(path, "nsys")
    report = sessions.nsys(path, record.get("variant", ""))
    by_case = _by_case((*report.kernels, *report.memcpys, *report.memsets), captured, path)
    kernels: list[Row] = []
    for case in captured:
        _check_launches(by_case[case], case, record, path)
        rows += _nsys_rows(case, by_case[case], report.tool_version)
        kernels += launched_kernels(case, by_case[case])
    return Evidence(tuple(rows), tuple(timeline_rows(report, captured)), kernels=tuple(kernels))


def _split(
    cases: Sequence[str], record: Mapping[str, Any]
) -> tuple[dict[str, tuple[str, str]], tuple[str, ...]]:
    """The cases without a capture, with status and reason, and the captured ones."""
    whole = (record["status"], record["reason"])
    told = {c["case"]: (c["status"], c["reason"]) for c in record.get("cases", ()) if isinstance(c, dict)}
    states = {case: whole if whole[0] != "ok" else told.get(case, whole) for case in cases}
    refused = {case: state for case, state in states.items() if state[0] != "ok"}
    return refused, tuple(case for case in cases if case not in refused)


def _ncu_rows(
    path: Path | None, record: Mapping[str, Any], cases: Sequence[str], sources: Sequence[Path]
) -> tuple[list[Row], list[Row]]:
    """The metrics and the hot lines of every launch."""
    refused, captured = _split(cases, record)
    rows = [_row(case, "", 0, value, record) for case, state in refused.items() for value in absent(*state)]
    lines: list[Row] = []
    if not captured:
        return rows, lines
    path = _existing(path, "ncu")
    report = sessions.ncu(path, record.get("variant", ""))
    strangers = [launch for launch in report.launches if named(launch.ranges, CASE) is None]
    if strangers:
        raise WarplogError(
            f"{path}: kernel {strangers[0].function}: lies in no range {CASE}<case>; profile again"
        )
    by_case = _by_case(report.launches, captured, path)
    for case in captured:
        _check_launches(by_case[case], case, record, path)
        for number, launch in enumerate(by_case[case]):
            values = evaluate(launch.counters, launch.compute_capability)
            source = {**record, "tool_version": report.tool_version}
            rows += [_row(case, launch.kernel, number, value, source) for value in values]
            key = {"case": case, "kernel": launch.kernel, "launch": number}
            lines += [{**key, **line} for line in hot_lines.rows(launch.lines, sources)]
    return rows, lines


def _nsys_rows(case: str, events: Sequence[NsysEvent], version: str) -> list[Row]:
    launches: dict[str | None, list[NsysEvent]] = defaultdict(list)
    for event in events:
        launches[named(event.ranges, LAUNCH)].append(event)
    source = {"tool": "nsys", "tool_version": version}
    return [
        _row(case, kernel, number, Evaluated(metric, value, METRICS[metric].unit, "ok", ""), source)
        for kernel, number, metric, value in launch_times.launch_metrics(list(launches.values()))
    ]


def _row(case: str, kernel: str, launch: int, value: Evaluated, source: Mapping[str, Any]) -> Row:
    key = {"case": case, "kernel": kernel, "launch": launch}
    return {**key, **value._asdict(), "tool": source["tool"], "tool_version": source["tool_version"]}


def _by_case(events: Iterable[_Ranged], cases: Sequence[str], path: Path) -> dict[str, list[_Ranged]]:
    """The events of each case in their order; events outside all case ranges (warm-up) are left out."""
    found: dict[str, list[_Ranged]] = defaultdict(list)
    for event in events:
        case = named(event.ranges, CASE)
        if case is not None:
            found[case].append(event)
    unknown = sorted(set(found) - set(cases))
    if unknown:
        raise WarplogError(f"{path}: case {unknown[0]}: was captured but not asked for; profile again")
    absent_cases = [case for case in cases if case not in found]
    if absent_cases:
        raise WarplogError(f"{path}: case {absent_cases[0]}: nothing ran in its range; profile again")
    return found


def _check_launches(events: Sequence[_Ranged], case: str, record: Mapping[str, Any], path: Path) -> None:
    """As many launches as the capture made: fewer mean that the report was cut between two of them."""
    launches = {named(event.ranges, LAUNCH) for event in events}
    if None in launches:
        raise WarplogError(f"{path}: case {case}: a kernel lies in no range {LAUNCH}<i>; profile again")
    told = next((c.get("launches") for c in record.get("cases", ()) if _is_case(c, case)), None)
    if told is not None and len(launches) != told:
        raise WarplogError(
            f"{path}: case {case}: {len(launches)} of {told} launches are there; profile again"
        )


def _is_case(entry: object, case: str) -> bool:
    return isinstance(entry, dict) and entry.get("case") == case


def _existing(path: Path | None, tool: str) -> Path:
    if path is None:
        raise WarplogError(f"{tool} report: none was given although its record says ok; profile again")
    return path


def _report(record_file: Path, record: Record) -> Path | None:
    name = record.get("report", "")
    return record_file.parent / name if name else None


def _capture(record: Record, report: Path | None) -> Record:
    digest = sha256_file(report) if report and report.is_file() else ""
    return {**{key: record[key] for key in ("tool", "tool_version", "status")}, "sha256": digest}
