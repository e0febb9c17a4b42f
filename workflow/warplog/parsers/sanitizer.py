"""Parses the output of compute-sanitizer: its findings, grouped by location, and whether it ran to completion.

It knows the messages of memcheck, racecheck, initcheck and synccheck from CUDA 11 to 13. Locations are read in the
new form, `at kernel(int *)+0x90 in file.cu:12`, and in the old one, `at 0x90 in file.cu:12:kernel(int*)`.
"""

import re
from dataclasses import dataclass, replace
from pathlib import PurePath

_PREFIX = "========="
_MOST_LINES = 2_000_000
_MOST_FINDINGS = 1000
_SUMMARY = re.compile(
    r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards? displayed)(?: \((\d+) errors?)?"
)
_NOT_PRINTED = re.compile(r"SUMMARY: (\d+) (?:errors|hazards) were not printed")
_KINDS = (
    (re.compile(r"^Invalid (?:__)?(\w+?)(?:__)? (\w+) of size"), "invalid_{1}"),
    (re.compile(r"^(?:Error: |ERROR: |Warning: |WARN(?:ING)?: )?Race reported between"), "race"),
    (re.compile(r"^(?:Error: |ERROR: |Warning: |WARN(?:ING)?: )?Potential \w+ hazard"), "race"),
    (re.compile(r"^(?:Uninitialized|Host API uninitialized)"), "uninitialized_read"),
    (re.compile(r"^(?:Barrier error detected|Deadlock detected)"), "barrier"),
    (re.compile(r"^(?:Misaligned|Invalid .* misaligned)"), "misaligned"),
    (re.compile(r"^Program hit (\w+)"), "api_error"),
    (
        re.compile(r"^(?:Leaked|Fatal|Stack overflow|Malloc/Free|Device-side|Host API|Internal Sanitizer)"),
        "other",
    ),
)
_NEW_PLACE = re.compile(r"(?P<kernel>\S.*?)\+0x[0-9a-f]+(?: in (?P<file>\S.*?):(?P<line>\d+))?(?= \[|$)")
_OLD_PLACE = re.compile(
    r"0x[0-9a-f]+ in (?:(?P<file>[^:]+):(?P<line>\d+):)?(?P<kernel>.+?)(?= \[\d+ hazard| and |$)"
)
_ADDRESS = re.compile(r"\+?\b0x[0-9a-f]+\b ?| ?\[\d+ hazards?\]")
_AROUND = re.compile(r"COMPUTE-SANITIZER|.*SUMMARY: |Target application|Error: process didn't terminate")
_FRAME = "Device Frame:"
_SOURCES = (".cu", ".cuh", ".py")


@dataclass(frozen=True)
class Finding:
    """One kind of error at one location.

    Attributes:
        kind: invalid_read, invalid_write, race, uninitialized_read, barrier, misaligned, api_error or other.
        message: first line of the tool's message, followed by the other access for a race, without addresses.
        kernel: kernel name without arguments.
        file: source file from -lineinfo, "" if unknown.
        line: source line from -lineinfo, 0 if unknown.
        count: how many times the tool printed it.
    """

    kind: str
    message: str
    kernel: str = ""
    file: str = ""
    line: int = 0
    count: int = 1


@dataclass(frozen=True)
class Report:
    """All findings, most frequent first.

    `errors` is the number that the tool reports in its summary; None if the summary is missing, which means that
    the tool did not run to completion.
    """

    findings: tuple[Finding, ...]
    errors: int | None


def parse(text: str) -> Report:
    """Parses the output of a program that ran under compute-sanitizer."""
    raw = text.splitlines()[:_MOST_LINES]
    lines = [line[len(_PREFIX) :].strip()[:2000] for line in raw if line.startswith(_PREFIX)]
    findings: list[Finding] = []
    errors: int | None = None
    for line in lines:
        if (summary := _SUMMARY.search(line)) and not _NOT_PRINTED.search(line):
            errors = max(errors or 0, int(summary.group(2) or summary.group(1)), int(summary.group(1)))
        elif kind := _kind(line):
            findings.append(_with_place(Finding(kind, line), line))
        elif findings:
            findings[-1] = _continued(findings[-1], line)
    if errors and not findings:  # messages that _KINDS does not know
        findings = [Finding("other", line) for line in lines if line and not _AROUND.match(line)][:1]
    merged: dict[Finding, int] = {}
    for finding in findings:
        key = replace(finding, message=_ADDRESS.sub("", finding.message))
        merged[key] = merged.get(key, 0) + 1
    ranked = sorted(merged.items(), key=lambda item: -item[1])[:_MOST_FINDINGS]
    return Report(tuple(replace(finding, count=count) for finding, count in ranked), errors)


def _kind(line: str) -> str:
    for pattern, name in _KINDS:
        if match := pattern.match(line):
            return name.format(*match.groups())
    return ""


def _continued(finding: Finding, line: str) -> Finding:
    """Returns the finding extended by a line that follows it: its location, or the other access of a race."""
    if finding.kind == "race" and line.startswith("and ") and " and " not in finding.message:
        return replace(finding, message=f"{finding.message} {line}")
    # The line of an error inside an inlined device function comes from the frame of the kernel that calls it.
    placed = finding.file.endswith(_SOURCES) or (finding.kernel and not line.startswith(_FRAME))
    if placed or finding.kind == "api_error" or line.startswith("Host Frame"):
        return finding
    return _with_place(finding, f"at {line.removeprefix('at ').removeprefix(_FRAME).strip()}")


def _with_place(finding: Finding, text: str) -> Finding:
    place = text.removeprefix("at ") if text.startswith("at ") else text.partition(" access at ")[2]
    match = (_OLD_PLACE if place.startswith("0x") else _NEW_PLACE).match(place)
    if match is None:
        return finding
    file = PurePath(match["file"]).name if match["file"] else ""
    return replace(
        finding, kernel=_without_arguments(match["kernel"]), file=file, line=int(match["line"] or 0)
    )


def _without_arguments(kernel: str) -> str:
    """Returns `k<(bool)1>` for `void k<(bool)1>(float *, int)`."""
    name, depth = kernel.strip().removeprefix("void "), 0
    if not name.endswith(")"):
        return name
    for place in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[place], 0)
        if depth == 0:
            return name[:place]
    return name
