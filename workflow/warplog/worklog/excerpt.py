"""Selects the lines of a variant's source that show its idea.

These are the lines between `// [excerpt]` and `// [/excerpt]` if the source has such a pair (in Python with `#`);
otherwise the kernel that was launched, wherever it is defined; otherwise the longest kernel of the source; otherwise
the function `launch`. If `launch` makes streams wait for each other, it is the idea and is shown. Of a kernel that does
not fit on a page, only the longest loop is shown.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warplog.catalog.header import MOST_BYTES, read_source
from warplog.core.errors import WarplogError
from warplog.metrics.kernels import bare_name
from warplog.worklog.python_excerpt import main_lines

_BEGIN, _END = "{} [excerpt]", "{} [/excerpt]"
_PYTHON = ".py"
PAGE_LINES = 44
_KERNEL = re.compile(r"\b__global__\b")
_LAUNCH = re.compile(r'extern\s+"C"\s+int\s+launch\b')
_WAIT = re.compile(r"\bcudaStreamWaitEvent\b")
_NAME = re.compile(r"\b(\w+)\s*\(")
MARK = re.compile(r"\s*TIMELINE\w*\(.*\);\s*$")  # a mark of timelines (warplog/timeline.cuh)
_LOOP = re.compile(r"\b(?:for|while)\s*\(")
# Comments, character and string literals: braces in them do not count.
_INERT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


@dataclass(frozen=True)
class Excerpt:
    """Lines of a source file from line `first` on, without their common indentation."""

    file: str
    first: int
    code: str

    @property
    def is_python(self) -> bool:
        """Whether the lines are Python, not CUDA C++."""
        return self.file.endswith(_PYTHON)


def excerpt(path: Path, kernel: str = "", others: Sequence[Path] = ()) -> Excerpt:
    """Returns the excerpt of a variant's source.

    Args:
        path: the source.
        kernel: name of the kernel that was launched, as a profiler or compiler prints it; "" if it is unknown.
        others: further files that may define the kernel; those that are too large for a source are left out.

    Raises:
        WarplogError: if the file cannot be read, its marks are not one pair, or there is no code to show.
    """
    text = read_source(path)
    lines = text.splitlines()
    if path.suffix == _PYTHON:
        return _shown(
            path,
            lines,
            *(marked(path, lines) or main_lines(text, PAGE_LINES, bare_name(kernel)) or (1, len(lines))),
        )
    chosen = marked(path, lines) or of_streams(text)
    if not chosen and kernel:
        small = (file for file in others if file.is_file() and file.stat().st_size <= MOST_BYTES)
        for file in (path, *small):
            code = read_source(file)
            if defined := _defined(_bare(code), bare_name(kernel)):
                return _shown(file, code.splitlines(), *defined)
    return _shown(path, lines, *(chosen or _main(text) or (1, len(lines))))


def functions(text: str, qualifier: str = "__global__") -> dict[str, tuple[int, int]]:
    """Returns the first and last line of each function with a qualifier by its name, the longest function first.

    Template lines before a function belong to it.
    """
    bare = _bare(text)
    found: dict[str, tuple[int, int]] = {}
    for start in re.finditer(rf"\b{qualifier}\b", bare):
        span = _braces(bare, start.start())
        name = _NAME.search(_without_bounds(bare[start.end() : span[1]])) if span else None
        if span and name:
            first, last = _line(bare, span[0]), _line(bare, span[1])
            lines = text.splitlines()
            while first > 1 and lines[first - 2].startswith("template"):
                first -= 1
            found[name[1]] = first, last
    return dict(sorted(found.items(), key=lambda item: item[1][0] - item[1][1]))


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


def _shown(path: Path, lines: list[str], first: int, last: int) -> Excerpt:
    shown = lines[first - 1 : last]
    while shown and not shown[0].strip():
        shown, first = shown[1:], first + 1
    if not any(line.strip() for line in shown):
        begin, _ = _marks(path)
        raise WarplogError(f"{path}:{first}: the excerpt is empty; put {begin} before the code to show")
    return Excerpt(path.name, first, _dedent([line for line in shown if not MARK.match(line)]))


def _marks(path: Path) -> tuple[str, str]:
    """Returns the comments that mark the first and the last line in a file of this language."""
    comment = "#" if path.suffix == _PYTHON else "//"
    return _BEGIN.format(comment), _END.format(comment)


def marked(path: Path, lines: list[str]) -> tuple[int, int] | None:
    """Returns the first and last line between the marks; None if there are no marks.

    Raises:
        WarplogError: if the marks are not one pair.
    """
    begin, end = _marks(path)
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


def _main(text: str) -> tuple[int, int] | None:
    """Returns the longest kernel, its longest loop if the kernel does not fit on a page, or the launcher."""
    bare = _bare(text)
    spans = [span for start in _KERNEL.finditer(bare) if (span := _braces(bare, start.start()))]
    # The launcher's linkage "C" is a string, which is blank in `bare`.
    spans = spans or [s for start in _LAUNCH.finditer(text) if (s := _braces(bare, start.start()))]
    return _on_a_page(bare, max(spans, key=lambda span: _height(bare, span))) if spans else None


def _bare(text: str) -> str:
    """Returns the text with blanks instead of comments and literals."""
    return _INERT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def _defined(bare: str, name: str) -> tuple[int, int] | None:
    """Returns the lines of the kernel with this name; None if it is not defined here."""
    for start in _KERNEL.finditer(bare):
        span = _braces(bare, start.start())
        head = bare[start.start() : bare.index("{", start.start())] if span else ""
        if span and re.search(rf"\b{re.escape(name)}\s*\(", head):
            return _on_a_page(bare, span)
    return None


def _on_a_page(bare: str, whole: tuple[int, int]) -> tuple[int, int]:
    if _height(bare, whole) > PAGE_LINES:
        spans = (_braces(bare, start.start()) for start in _LOOP.finditer(bare, *whole))
        loops = [span for span in spans if span and span[1] <= whole[1]]
        whole = max(loops, key=lambda span: _height(bare, span), default=whole)
    return _line(bare, whole[0]), _line(bare, whole[1])


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


def _height(bare: str, span: tuple[int, int]) -> int:
    return bare.count("\n", *span)


def _line(bare: str, place: int) -> int:
    return bare.count("\n", 0, place) + 1


def _dedent(lines: list[str]) -> str:
    """Joins the lines without their common indentation, ignoring preprocessor lines."""
    counted = [line for line in lines if line.strip() and not line.startswith("#")]
    edge = min((len(line) - len(line.lstrip()) for line in counted), default=0)
    cut = [line if line.startswith("#") else line[edge:] for line in lines]
    return "\n".join(line.rstrip() for line in cut).strip("\n")
