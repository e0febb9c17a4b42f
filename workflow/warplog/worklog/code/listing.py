"""The code of a variant with its line numbers, and what differs from its parent's.

A listing is the kernel, wherever it lies: between the marks of `excerpt` in the source or in one of its headers, in the
source itself, or in a header. For a kernel in a header, the source's own code (what follows its header comment) is
listed first, since it is what tells the variants of that kernel apart. Functions that the kernel calls are listed if
they are in its file, or if they are in a header of the project and many samples fall there.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from warplog.worklog.code.heat import HeatMap
from warplog.worklog.excerpt import MARK, functions, marked, of_streams

_CONTEXT = 2
_LEAST_IN_COMMON = 0.35
_HOT = 0.1
_COLD = HeatMap()
_INCLUDE = re.compile(r"#\s*(?:include|pragma once)\b")


@dataclass(frozen=True)
class Line:
    """A line of a source file, with its number in it."""

    file: str
    number: int
    text: str


@dataclass(frozen=True)
class Change:
    """A line of a diff, or a run of lines that are left out because both sources have them.

    Attributes:
        kind: "same", "new", "gone", or "folded" for a run of lines that are left out.
        line: The line in the variant's code; for "gone", in its parent's.
        folded: How many lines are left out.
    """

    kind: str
    line: Line
    folded: int = 0


@dataclass(frozen=True)
class Code:
    """The code of a variant as it is shown.

    Attributes:
        changes: The lines; all "same" if there is no diff.
        parent: The variant that the diff compares with; "" if there is no diff.
        remark: Why there is no diff: rewritten (little in common with the parent), equal, or same_source (only
            parameters differ); "" for nothing.
    """

    changes: tuple[Change, ...]
    parent: str = ""
    remark: str = ""

    @property
    def added(self) -> int:
        """How many lines the parent does not have."""
        return sum(change.kind == "new" for change in self.changes)

    @property
    def removed(self) -> int:
        """How many lines of the parent are gone."""
        return sum(change.kind == "gone" for change in self.changes)


def listing(texts: Mapping[Path, str], kernel: str, heat: HeatMap) -> tuple[Line, ...]:
    """Returns the code of a variant.

    Args:
        texts: Its source, which comes first, and its headers.
        kernel: The name of its longest kernel; "" if unknown.
        heat: Where that kernel spends its samples: functions in headers that have many of them are listed too.

    Raises:
        WarplogError: if the marks of a file are not one pair.
    """
    for path, text in texts.items():
        if span := marked(path, text.splitlines()):
            return _lines(path, text, *span)
    source = next(iter(texts))
    if span := of_streams(texts[source]):
        return _lines(source, texts[source], *span)
    in_source = functions(texts[source])
    if in_source:
        span = in_source.get(kernel) or next(iter(in_source.values()))
        own = _with_helpers(source, texts[source], span)
    else:
        own = _own(source, texts[source])
    headers = [(path, text) for path, text in texts.items() if path != source]
    return (*own, *(line for path, text in headers for line in _from_header(path, text, kernel, heat)))


def _from_header(path: Path, text: str, kernel: str, heat: HeatMap) -> Iterator[Line]:
    """Yields a header's part of the code: the kernel, and the functions with many samples."""
    spans = [
        lines for name, span in functions(text).items() if name == kernel for lines in _spans(text, span)
    ]
    hot = heat.hot(path.name, _HOT)
    for first, last in functions(text, "__device__").values():
        if any(first <= number <= last for number in hot):
            spans.append((first, last))
    for span in sorted(set(spans)):
        yield from _lines(path, text, *span)


def _with_helpers(path: Path, text: str, kernel: tuple[int, int]) -> tuple[Line, ...]:
    """Returns a kernel with the device functions of its file that it calls, directly or not, in the file's order."""
    return tuple(line for span in sorted(_spans(text, kernel)) for line in _lines(path, text, *span))


def _spans(text: str, kernel: tuple[int, int]) -> list[tuple[int, int]]:
    """Returns first and last line of a kernel and of the device functions that it calls."""
    helpers, lines = functions(text, "__device__"), text.splitlines()
    spans = [kernel]
    for first, last in spans:  # grows while it is read
        words = set(re.findall(r"\w+", " ".join(lines[first - 1 : last])))
        spans += [span for name, span in helpers.items() if name in words and span not in spans]
    return spans


def whole(source: Path, text: str) -> tuple[Line, ...]:
    """Returns all lines of a source after its header comment."""
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("//")), 1)
    return _lines(source, text, first, len(lines))


def code(
    listed: Sequence[Line],
    parents: Sequence[Line],
    parent: str,
    shared: Collection[str] = (),
    heat: HeatMap = _COLD,
) -> Code:
    """Returns a variant's code as a diff to its parent's; whole if they have little in common or there is no parent.

    Lines are compared without their indentation. Two lines around each change are shown. Lines of the files `shared`,
    headers that both include, are the same in both and follow the diff. Lines with many samples are not folded away.
    """
    if not parent or not parents:
        return Code(tuple(Change("same", line) for line in listed))
    old, own = ([line for line in lines if line.file not in shared] for lines in (parents, listed))
    before, after = ([" ".join(line.text.split()) for line in lines] for lines in (old, own))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    if before != after and matcher.ratio() < _LEAST_IN_COMMON:
        is_python = [{Path(line.file).suffix == ".py" for line in lines} for lines in (own, old)]
        whole = tuple(Change("same", line) for line in listed)
        return Code(whole, "", "rewritten" if is_python[0] == is_python[1] else "")
    if before == after and listed:
        return Code((), parent, "equal")
    rest = tuple(Change("same", line) for line in listed if line.file in shared)
    return Code((*_diff(matcher, old, own, heat), *rest), parent)


def _diff(
    matcher: "difflib.SequenceMatcher[str]", before: Sequence[Line], after: Sequence[Line], heat: HeatMap
) -> Iterator[Change]:
    steps = matcher.get_opcodes()
    for number, (kind, low, high, start, end) in enumerate(steps):
        if kind == "equal":
            yield from _common(after[start:end], number == 0, number == len(steps) - 1, heat)
            continue
        yield from (Change("gone", line) for line in before[low:high])
        yield from (Change("new", line) for line in after[start:end])


def _common(lines: Sequence[Line], is_first: bool, is_last: bool, heat: HeatMap) -> Iterator[Change]:
    """Yields the lines next to a change and the hot ones; those between as folds, unless one would hide one line."""
    kept = set() if is_first else set(range(_CONTEXT))
    kept |= set() if is_last else set(range(len(lines) - _CONTEXT, len(lines)))
    for place, line in enumerate(lines):
        line_heat = heat.places.get((line.file, line.number))
        kept |= {place - 1, place, place + 1} if line_heat and line_heat.share >= _HOT else set()
    for is_kept, group in groupby(range(len(lines)), key=lambda place: place in kept):
        run = [lines[place] for place in group]
        if is_kept or len(run) == 1:
            yield from (Change("same", line) for line in run)
        else:
            yield Change("folded", run[0], len(run))


def _own(source: Path, text: str) -> tuple[Line, ...]:
    """Returns the source's code without header comment and include lines."""
    kept = [line for line in whole(source, text) if not _INCLUDE.match(line.text)]
    while kept and not kept[0].text.strip():
        kept = kept[1:]
    return tuple(kept)


def _lines(path: Path, text: str, first: int, last: int) -> tuple[Line, ...]:
    shown = text.splitlines()[first - 1 : last]
    return tuple(Line(path.name, number, line.rstrip()) for number, line in enumerate(shown, first))


def without_marks(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Returns the lines without the marks of timelines, which are empty in the build that is timed."""
    return tuple(line for line in lines if not MARK.match(line.text))
