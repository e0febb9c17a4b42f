"""The hot source lines of a launch: rows of the extract record and of the table `lines`."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from warplog.parsers.ncu.source import SourceLine

Row = dict[str, Any]
MOST_LINES = 40
_LEAST_SHARE = 0.005
_MOST_TEXT = 300
_MOST_SOURCE_BYTES = 4 << 20


def rows(lines: Sequence[SourceLine], sources: Sequence[Path]) -> list[Row]:
    """Returns one row per line with at least 0.5 % of the launch's samples, instructions or excess wavefronts.

    The rows are sorted by samples, or by instructions if the launch was not sampled, in descending order; at most
    MOST_LINES are returned. `sources` are the compiled files; the text of a line comes from the file with the
    same name.
    """
    totals = {name: sum(_numbers(line)[name] for line in lines) for name in _NUMBERS}
    hot = []
    for line in lines:
        numbers = _numbers(line)
        share = {name: numbers[name] / totals[name] if totals[name] else 0.0 for name in _NUMBERS}
        if max(share.values()) >= _LEAST_SHARE:
            hot.append((share["samples"] if totals["samples"] else share["instructions"], line, numbers))
    hot.sort(key=lambda item: -item[0])
    texts = {path.name: _texts(path) for path in sources}
    return [
        {
            "file": PurePath(line.file).name,
            "line": line.line,
            "text": texts.get(PurePath(line.file).name, {}).get(line.line, ""),
            **numbers,
            "sample_share": numbers["samples"] / totals["samples"] if totals["samples"] else None,
            "instruction_share": line.instructions / totals["instructions"]
            if totals["instructions"]
            else None,
            **_longest_wait(line.samples),
        }
        for _, line, numbers in hot[:MOST_LINES]
    ]


_NUMBERS = ("samples", "instructions", "shared_wavefronts_excess")


def _numbers(line: SourceLine) -> dict[str, float]:
    excess = max(line.shared_wavefronts - line.shared_wavefronts_ideal, 0.0)
    return dict(zip(_NUMBERS, (sum(line.samples.values()), line.instructions, excess), strict=True))


def _longest_wait(samples: Mapping[str, float]) -> Row:
    waits = {state: count for state, count in samples.items() if state != "selected" and count > 0}
    if not waits:
        return {"stall": "", "stall_samples": 0.0}
    longest = max(waits, key=waits.__getitem__)
    return {"stall": longest, "stall_samples": waits[longest]}


def _texts(path: Path) -> dict[int, str]:
    """Returns the file's lines by number, from 1; none if the file is missing or too large for a source file."""
    if not path.is_file() or path.stat().st_size > _MOST_SOURCE_BYTES:
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {number: " ".join(text.split())[:_MOST_TEXT] for number, text in enumerate(lines, 1)}
