"""The hot source lines of a launch: rows of the extract record and of the table `lines`."""

from collections.abc import Sequence
from pathlib import Path, PurePath

from warplog.parsers.ncu.source import SourceLine
from warplog.records.extract import HotLine

MOST_LINES = 40
_LEAST_SHARE = 0.005
_MOST_TEXT = 300
_MOST_SOURCE_BYTES = 4 << 20


def hottest(
    case: str, kernel: str, launch: int, lines: Sequence[SourceLine], sources: Sequence[Path]
) -> list[HotLine]:
    """Returns the lines with at least 0.5 % of the launch's samples, instructions or excess wavefronts.

    They are sorted by samples, or by instructions if the launch was not sampled, in descending order; at most
    MOST_LINES are returned. `sources` are the compiled files; the text of a line comes from the file with the
    same name.
    """
    if not lines:
        return []
    samples, instructions, excess = map(sum, zip(*map(_amounts, lines), strict=True))
    texts = {path.name: source_lines(path) for path in sources}
    hot = []
    for line in lines:
        sampled, executed, wasted = _amounts(line)
        waits = {state: count for state, count in line.samples.items() if state != "selected" and count > 0}
        stall = max(waits, key=waits.__getitem__, default="")
        file = PurePath(line.file).name
        entry = HotLine(
            case=case,
            kernel=kernel,
            launch=launch,
            file=file,
            line=line.line,
            text=texts.get(file, {}).get(line.line, ""),
            samples=sampled,
            sample_share=sampled / samples if samples else None,
            instructions=executed,
            instruction_share=executed / instructions if instructions else None,
            shared_wavefronts_excess=wasted,
            stall=stall,
            stall_samples=waits.get(stall, 0.0),
        )
        shares = (entry.sample_share or 0, entry.instruction_share or 0, wasted / excess if excess else 0)
        if max(shares) >= _LEAST_SHARE:
            hot.append(entry)
    hot.sort(key=lambda entry: -(entry.samples if samples else entry.instructions))
    return hot[:MOST_LINES]


def _amounts(line: SourceLine) -> tuple[float, float, float]:
    """Returns samples, instructions and the wavefronts beyond the ideal of a line."""
    excess = max(line.shared_wavefronts - line.shared_wavefronts_ideal, 0.0)
    return float(sum(line.samples.values())), line.instructions, excess


def source_lines(path: Path) -> dict[int, str]:
    """Returns the file's lines by number, from 1; none if the file is missing or too large for a source file."""
    if not path.is_file() or path.stat().st_size > _MOST_SOURCE_BYTES:
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {number: " ".join(text.split())[:_MOST_TEXT] for number, text in enumerate(lines, 1)}
