"""Selects the lines of a variant's source that show its idea.

These are the lines between `// [excerpt]` and `// [/excerpt]` if the source has such a pair; otherwise the
longest kernel, or its longest loop if the kernel does not fit on a page; otherwise the function `launch`. If `launch`
makes streams wait for each other, it is the idea and is shown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warplog.core.errors import WarplogError

_BEGIN, _END = "// [excerpt]", "// [/excerpt]"
_MOST_BYTES = 1 << 20
PAGE_LINES = 44
_KERNEL = re.compile(r"\b__global__\b")
_LAUNCH = re.compile(r'extern\s+"C"\s+int\s+launch\b')
_WAIT = re.compile(r"\bcudaStreamWaitEvent\b")
_NAME = re.compile(r"\b(\w+)\s*\(")
_LOOP = re.compile(r"\b(?:for|while)\s*\(")
# Comments, character and string literals: braces in them do not count.
_INERT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


@dataclass(frozen=True)
class Excerpt:
    """Lines of a source file from line `first` on, without their common indentation."""

    file: str
    first: int
    code: str


def excerpt(path: Path) -> Excerpt:
    """Returns the excerpt of a source file.

    Raises:
        WarplogError: if the file cannot be read, its marks are not one pair, or there is no code to show.
    """
    text = read_source(path)
    lines = text.splitlines()
    first, last = marked(path, lines) or _main(text) or (1, len(lines))
    shown = lines[first - 1 : last]
    while shown and not shown[0].strip():
        shown, first = shown[1:], first + 1
    if not any(line.strip() for line in shown):
        raise WarplogError(f"{path}:{first}: the excerpt is empty; put {_BEGIN} before the code to show")
    return Excerpt(path.name, first, _dedent(shown))


def read_source(path: Path) -> str:
    """Returns the text of a source file.

    Raises:
        WarplogError: if the file cannot be read, or is larger than 1 MiB.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise WarplogError(f"{path}: larger than {_MOST_BYTES} bytes; is it a source file?")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise WarplogError(f"{path}: cannot be read ({error.strerror})") from None


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


def _bare(text: str) -> str:
    """Returns the text with comments and literals blank, so that every character keeps its place."""
    return _INERT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def marked(path: Path, lines: list[str]) -> tuple[int, int] | None:
    """Returns the first and last line between the marks; None if there are no marks.

    Raises:
        WarplogError: if the marks are not one pair.
    """
    marks = [(n, line.strip()) for n, line in enumerate(lines, 1) if line.strip() in (_BEGIN, _END)]
    if not marks:
        return None
    for place, (number, mark) in enumerate(marks):
        expected = _BEGIN if place == 0 else _END
        if place > 1:
            raise WarplogError(f"{path}:{number}: second {mark}; a source has one excerpt")
        if mark != expected:
            raise WarplogError(f"{path}:{number}: found {mark}, expected {expected}")
    if len(marks) == 1:
        raise WarplogError(
            f"{path}:{marks[0][0]}: {_BEGIN} without {_END}; add {_END} after the code to show"
        )
    return marks[0][0] + 1, marks[1][0] - 1


def _main(text: str) -> tuple[int, int] | None:
    """Returns the longest kernel, its longest loop if the kernel does not fit on a page, or the launcher."""
    bare = _bare(text)
    if streams := _of_streams(text, bare):
        return streams
    spans = [span for start in _KERNEL.finditer(bare) if (span := _braces(bare, start.start()))]
    # The launcher's linkage "C" is a string, which is blank in `bare`.
    spans = spans or [s for start in _LAUNCH.finditer(text) if (s := _braces(bare, start.start()))]
    if not spans:
        return None
    whole = max(spans, key=lambda span: _height(bare, span))
    if _height(bare, whole) > PAGE_LINES:
        loops = list(_loops(bare, whole))
        whole = max(loops, key=lambda span: _height(bare, span), default=whole)
    return _line(bare, whole[0]), _line(bare, whole[1])


def of_streams(text: str) -> tuple[int, int] | None:
    """Returns the lines of a launcher that makes streams wait for each other; None without one."""
    return _of_streams(text, _bare(text))


def _of_streams(text: str, bare: str) -> tuple[int, int] | None:
    """Returns the lines of a launcher that makes streams wait for each other; None without one."""
    span = next((s for start in _LAUNCH.finditer(text) if (s := _braces(bare, start.start()))), None)
    return (_line(bare, span[0]), _line(bare, span[1])) if span and _WAIT.search(bare, *span) else None


def _loops(bare: str, within: tuple[int, int]) -> Iterator[tuple[int, int]]:
    for start in _LOOP.finditer(bare, *within):
        span = _braces(bare, start.start())
        if span and span[1] <= within[1]:
            yield span


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
