"""The sources of a variant as the page shows them: its own file, and the parts of its headers that have samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from warplog.worklog.code.heat import HeatMap
from warplog.worklog.code.listing import Line, whole
from warplog.worklog.excerpt import functions

_AROUND = 2


@dataclass(frozen=True)
class SourceView:
    """Lines of a file, in order; a gap in their numbers is shown as one."""

    file: str
    lines: tuple[Line, ...]


def views(texts: Mapping[Path, str], heat: HeatMap) -> tuple[SourceView, ...]:
    """Returns the source (the first of `texts`), then the functions with samples of its headers, the hottest first."""
    source, *headers = texts
    headers.sort(key=lambda path: -heat.of_file(path.name))
    views = [SourceView(source.name, whole(source, texts[source]))]
    for path in headers:
        kept = _near(texts[path], heat.hot(path.name, 0.0))
        if lines := tuple(line for line in whole(path, texts[path]) if line.number in kept):
            views.append(SourceView(path.name, lines))
    return tuple(views)


def _near(text: str, hot: list[int]) -> set[int]:
    """Returns the numbers of the lines of the functions around the lines `hot`, or of the lines next to them."""
    spans = [span for kind in ("__device__", "__global__") for span in functions(text, kind).values()]
    kept: set[int] = set()
    for number in hot:
        around = [span for span in spans if span[0] <= number <= span[1]]
        first, last = min(
            around, key=lambda span: span[1] - span[0], default=(number - _AROUND, number + _AROUND)
        )
        kept |= set(range(first, last + 1))
    return kept
