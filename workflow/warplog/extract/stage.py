"""Stage extract: turns the reports of both profilers into metric rows and a timeline, by case.

The capture puts each case into an NVTX range `case:<case>`, and each launch of the variant, which may consist of
several kernels, into a range `launch:<i>` within it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from warplog.core import paths
from warplog.core.errors import WarplogError, say
from warplog.core.hashing import sha256_file
from warplog.core.records import SCHEMA_VERSION, FamilyRecord, Record, worst
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
    """The contents of both captures of a variant, as the extract record stores them."""

    rows: tuple[Row, ...]
    timeline: tuple[Row, ...]
    lines: tuple[Row, ...] = ()
    kernels: tuple[Row, ...] = ()


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
    profiles = {"ncu": FamilyRecord.read(ncu).variants, "nsys": FamilyRecord.read(nsys).variants}
    folders = {"ncu": paths.captures(ncu), "nsys": paths.captures(nsys)}
    together = FamilyRecord.read_if_there(output)
    together.keep_only(profiles["ncu"])
    for variant, captured in cases.items():
        records = {tool: profiles[tool][variant] for tool in profiles}
        together.put(_variant_record(records, folders, captured, traced[variant], sources))
    together.write()


def _variant_record(
    records: dict[str, Record],
    folders: Mapping[str, Path],
    cases: Sequence[str],
    traced: Sequence[str],
    sources: Sequence[Path],
) -> Record:
    reports = {t: folders[t] / name if (name := r.get("report")) else None for t, r in records.items()}
    records["ncu"], counted = _as_far_as_good(
        lambda r: _ncu_rows(reports["ncu"], r, cases, sources), records["ncu"]
    )
    records["nsys"], seen = _as_far_as_good(
        lambda r: _nsys_evidence(reports["nsys"], r, traced), records["nsys"]
    )
    captures = [_capture(records[tool], report) for tool, report in reports.items()]
    evidence = {name: list(rows) for name, rows in vars(_together(counted, seen)).items()}
    return {**_head(records), "captures": captures, **evidence}


def _head(records: Mapping[str, Record]) -> Record:
    """Returns the head of the extract record, with the worse of the statuses of both captures."""
    status = worst(record["status"] for record in records.values())
    return {
        "schema": SCHEMA_VERSION,
        "stage": "extract",
        **{key: records["ncu"][key] for key in ("family", "variant", "gpu", "origin")},
        "status": status,
        "reason": next((r["reason"] for r in records.values() if r["status"] == status != "ok"), ""),
    }


def _as_far_as_good(take: Callable[[Record], _Taken], record: Record) -> tuple[Record, _Taken]:
    """Returns the record and `take(record)`; if that raises, the record with the status "error" and its `take`."""
    try:
        return record, take(record)
    except WarplogError as error:
        reason = str(error)[:_MOST_REASON]
        line = f"  extract {record['family']}/{record['variant']}  error  {reason}"
        say(line)
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
    """Returns the metric rows and hot source lines of all `cases`, and the timeline of nsys.

    ncu provides every metric of every kernel launch of a case; `launch` numbers them from 0. nsys provides the
    time of one launch of the variant (kernel "") and of each of its kernels or copies, medians over back-to-back
    launches, and the overlap of its copies (see `timeline.overlap_metrics`). `nsys_cases` are the cases that nsys
    captured, by default `cases`. If the record of a capture is not "ok", its metrics have no value and that status.

    Raises:
        WarplogError: if a capture whose record is "ok" is missing or truncated, or its launches do not match the
            cases.
    """
    traced = cases if nsys_cases is None else nsys_cases
    return _together(
        _ncu_rows(ncu_report, ncu_record, cases, sources), _nsys_evidence(nsys_report, nsys_record, traced)
    )


def _together(counted: tuple[list[Row], list[Row]], seen: Evidence) -> Evidence:
    rows, lines = counted
    return replace(seen, rows=(*rows, *seen.rows), lines=tuple(lines))


def _nsys_evidence(path: Path | None, record: Mapping[str, Any], cases: Sequence[str]) -> Evidence:
    """Returns the rows, the timeline and the kernels of the nsys report."""
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
    """Returns the cases that were not captured, with status and reason, and the captured ones."""
    whole = (record["status"], record["reason"])
    own = {c["case"]: (c["status"], c["reason"]) for c in record.get("cases", ()) if isinstance(c, dict)}
    states = {case: whole if whole[0] != "ok" else own.get(case, whole) for case in cases}
    refused = {case: state for case, state in states.items() if state[0] != "ok"}
    return refused, tuple(case for case in cases if case not in refused)


def _ncu_rows(
    path: Path | None, record: Mapping[str, Any], cases: Sequence[str], sources: Sequence[Path]
) -> tuple[list[Row], list[Row]]:
    """Returns the metric rows and the hot lines of every launch in the ncu report."""
    refused, captured = _split(cases, record)
    rows = [_row(case, "", 0, value, record) for case, state in refused.items() for value in absent(*state)]
    lines: list[Row] = []
    if not captured:
        return rows, lines
    path = _existing(path, "ncu")
    report = sessions.ncu(path, record.get("variant", ""))
    outside = [launch for launch in report.launches if named(launch.ranges, CASE) is None]
    if outside:
        raise WarplogError(
            f"{path}: kernel {outside[0].function}: was launched outside all ranges {CASE}<case>; profile again"
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
    """Groups the events by case, keeping their order; events outside all case ranges (warm-up) are left out."""
    found: dict[str, list[_Ranged]] = defaultdict(list)
    for event in events:
        case = named(event.ranges, CASE)
        if case is not None:
            found[case].append(event)
    unknown = sorted(set(found) - set(cases))
    if unknown:
        raise WarplogError(f"{path}: case {unknown[0]}: was captured but not requested; profile again")
    absent_cases = [case for case in cases if case not in found]
    if absent_cases:
        raise WarplogError(f"{path}: case {absent_cases[0]}: its range contains no events; profile again")
    return found


def _check_launches(events: Sequence[_Ranged], case: str, record: Mapping[str, Any], path: Path) -> None:
    """Checks that the report contains as many launches as the record: with fewer it is truncated between two."""
    launches = {named(event.ranges, LAUNCH) for event in events}
    if None in launches:
        raise WarplogError(
            f"{path}: case {case}: a kernel was launched outside all ranges {LAUNCH}<i>; profile again"
        )
    expected = next((c.get("launches") for c in record.get("cases", ()) if _is_case(c, case)), None)
    if expected is not None and len(launches) != expected:
        raise WarplogError(
            f"{path}: case {case}: contains {len(launches)} of {expected} launches; profile again"
        )


def _is_case(entry: object, case: str) -> bool:
    return isinstance(entry, dict) and entry.get("case") == case


def _existing(path: Path | None, tool: str) -> Path:
    if path is None:
        raise WarplogError(f"{tool} report: missing although its record has the status ok; profile again")
    return path


def _capture(record: Record, report: Path | None) -> Record:
    digest = sha256_file(report) if report and report.is_file() else ""
    return {**{key: record[key] for key in ("tool", "tool_version", "status")}, "sha256": digest}
