"""The files that a CUDA source includes, found without a compiler.

The plan and the fingerprint of a source need them before anything is compiled, and on machines without nvcc. What is
found here contains at least what the compiler reads: conditions are ignored, and a macro that stands for a file name
counts as an include. `warplog.measure.building.dependencies` compares it with nvcc's own list.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

# The lines that include a file, define a macro that may stand for one, or ask with __has_include whether one exists.
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?:include|define|if|elif)\b(.*)", re.MULTILINE)
_NAME = re.compile(r'"([^"]{1,200})"|<([^<>]{1,200})>')


def included(source: Path, folders: Sequence[Path]) -> list[Path]:
    """Returns the files that `source` includes, directly or not, sorted; files that do not exist are left out.

    A name in quotes is looked up beside the file that includes it and then in `folders`, a name in angle brackets in
    `folders` only, as compilers do (GCC manual, "Search Path"). The first match counts; the compiler's own folders are
    not searched.
    """
    headers: set[Path] = set()
    unread = [source]
    while unread:
        file = unread.pop()
        for quoted, angled in _names(file):
            places = (file.parent, *folders) if quoted else folders
            header = _first(quoted or angled, places)
            if header and header != source and header not in headers:
                headers.add(header)
                unread.append(header)
    return sorted(headers)


def _names(file: Path) -> Iterator[tuple[str, str]]:
    """Yields what may be the name of an included file, as (quoted, in angle brackets); one of both is empty."""
    for rest in _DIRECTIVE.findall(file.read_text(encoding="utf-8", errors="replace")):
        yield from _NAME.findall(rest)


def _first(name: str, places: Sequence[Path]) -> Path | None:
    candidates = (place / name for place in places)
    # Path.is_file raises for names that no file can have.
    file = next((path for path in candidates if os.path.isfile(path)), None)  # noqa: PTH113
    return None if file is None else plain(file)


def plain(path: Path) -> Path:
    """Returns the path without `..`, unless that would be another file because of a symbolic link."""
    plain = Path(os.path.normpath(path))
    return plain if plain.exists() and plain.samefile(path) else path
