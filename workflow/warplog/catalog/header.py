"""The comment at the top of a source as data: what it does, and what was expected of it before it was measured.

A header is the block of `//` lines that a CUDA source begins with, or the docstring of a Python module. Its fields are
Idea, Expected, Cost, Constraints and Source: a name at the start of a line, and text that goes on in the indented lines
below.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from warplog.core.errors import WarplogError

MOST_BYTES = 1 << 20
_FIELDS = ("Idea", "Expected", "Cost", "Constraints", "Source")
_FIELD = re.compile(rf"// ({'|'.join(_FIELDS)})\s+(\S.*)")


@dataclass(frozen=True)
class Header:
    """The fields of a source's header, each on one line; "" for a field that it lacks."""

    idea: str = ""
    expected: str = ""
    cost: str = ""
    constraints: str = ""
    source: str = ""


def read_header(path: Path) -> Header:
    """Returns the header of a source; all fields are empty if it has none.

    Raises:
        WarplogError: if the file cannot be read, or is larger than 1 MiB.
    """
    text = read_source(path)
    return header_of(comment_of_module(text) if path.suffix == ".py" else text)


def read_source(path: Path) -> str:
    """Returns the text of a source file.

    Raises:
        WarplogError: if the file cannot be read, or is larger than 1 MiB.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise WarplogError(f"{path}: larger than {MOST_BYTES} bytes; is it a source file?")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise WarplogError(f"{path}: cannot be read ({error.strerror}); restore the file") from None


def comment_of_module(text: str) -> str:
    """Returns the docstring of a Python module as the comment of a CUDA source; "" if there is none."""
    try:
        docstring = ast.get_docstring(ast.parse(text), clean=False) or ""
    except (SyntaxError, ValueError):
        return ""
    return "\n".join(f"// {line}".rstrip() for line in docstring.rstrip().splitlines())


def header_of(text: str) -> Header:
    """Returns the header of a source's text; of a repeated field the first one counts."""
    fields: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        field = _FIELD.match(line)
        if field:
            current = [field[2]] if field[1] not in fields else []
            fields.setdefault(field[1], current)
        elif not line[2:].strip():
            current = None
        elif current is not None:
            current.append(line[2:])
    return Header(**{name.lower(): " ".join(" ".join(lines).split()) for name, lines in fields.items()})
