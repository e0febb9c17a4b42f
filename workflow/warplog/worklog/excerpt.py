"""Finds the functions of a source, and the lines that show its idea.

These are the lines between `// [excerpt]` and `// [/excerpt]` if the source has such a pair (in Python with `#`), or a
function `launch` that makes streams wait for each other.
"""

import re
from pathlib import Path

from warplog.core.errors import WarplogError

_BEGIN, _END = "{} [excerpt]", "{} [/excerpt]"
_PYTHON = ".py"
_LAUNCH = re.compile(r'extern\s+"C"\s+int\s+launch\b')
_WAIT = re.compile(r"\bcudaStreamWaitEvent\b")
_NAME = re.compile(r"\b(\w+)\s*\(")
MARK = re.compile(r"\s*TIMELINE\w*\(.*\);\s*$")  # a mark of timelines (warplog/timeline.cuh)
# Comments, character and string literals: braces in them do not count.
_INERT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def functions(text: str, qualifier: str = "__global__") -> dict[str, tuple[int, int]]:
    """Returns the first and last line of each function with a qualifier by its name, the longest function first.

    Template lines before a function belong to it.
    """
    bare = _bare(text)
    spans: dict[str, tuple[int, int]] = {}
    for start in re.finditer(rf"\b{qualifier}\b", bare):
        span = _braces(bare, start.start())
        name = _NAME.search(_without_bounds(bare[start.end() : span[1]])) if span else None
        if span and name:
            first, last = _line(bare, span[0]), _line(bare, span[1])
            lines = text.splitlines()
            while first > 1 and lines[first - 2].startswith("template"):
                first -= 1
            spans[name[1]] = first, last
    return dict(sorted(spans.items(), key=lambda item: item[1][0] - item[1][1]))


def _without_bounds(declaration: str) -> str:
    """Returns a kernel's declaration without the attribute __launch_bounds__(...), which looks like a function."""
    start = declaration.find("__launch_bounds__")
    if start < 0:
        return declaration
    depth = 0
    for place in range(declaration.index("(", start), len(declaration)):
        depth += (declaration[place] == "(") - (declaration[place] == ")")
        if not depth:
            return declaration[place + 1 :]
    return declaration


def marked(path: Path, lines: list[str]) -> tuple[int, int] | None:
    """Returns the first and last line between the marks; None if there are no marks.

    Raises:
        WarplogError: if the marks are not one pair.
    """
    comment = "#" if path.suffix == _PYTHON else "//"
    begin, end = _BEGIN.format(comment), _END.format(comment)
    marks = [(n, line.strip()) for n, line in enumerate(lines, 1) if line.strip() in (begin, end)]
    if not marks:
        return None
    for place, (number, mark) in enumerate(marks):
        expected = begin if place == 0 else end
        if place > 1:
            raise WarplogError(f"{path}:{number}: second {mark}; a source has one excerpt")
        if mark != expected:
            raise WarplogError(f"{path}:{number}: found {mark}, expected {expected}")
    if len(marks) == 1:
        raise WarplogError(f"{path}:{marks[0][0]}: {begin} without {end}; add {end} after the code to show")
    return marks[0][0] + 1, marks[1][0] - 1


def _bare(text: str) -> str:
    """Returns the text with blanks instead of comments and literals."""
    return _INERT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def of_streams(text: str) -> tuple[int, int] | None:
    """Returns the lines of a launcher that makes streams wait for each other; None without one."""
    bare = _bare(text)
    span = next((s for start in _LAUNCH.finditer(text) if (s := _braces(bare, start.start()))), None)
    return (_line(bare, span[0]), _line(bare, span[1])) if span and _WAIT.search(bare, *span) else None


def _braces(bare: str, start: int) -> tuple[int, int] | None:
    """Returns `start` and the closing brace of the first block after it; None if a `;` comes first."""
    depth = parentheses = 0
    for place in range(start, len(bare)):
        character = bare[place]
        parentheses += (character == "(") - (character == ")")
        if character == ";" and not depth and not parentheses:
            return None
        if character in "{}" and not parentheses:
            depth += 1 if character == "{" else -1
            if depth == 0:
                return start, place
    return None


def _line(bare: str, place: int) -> int:
    return bare.count("\n", 0, place) + 1
