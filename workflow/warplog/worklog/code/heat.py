"""Where a kernel spends its samples: the rows of the table `lines` at the lines of today's sources.

A campaign may have sampled an earlier version of a source. A row therefore counts for the line with its number only if
the text there is the same; otherwise for the nearest line with the same text, if there is one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warplog.core.columns import Row, number, text


@dataclass(frozen=True)
class Heat:
    """What a line costs: its share of the kernel's samples (NaN if it was not sampled) and of its instructions.

    `stall` is the warp state of most of its samples, "" if unknown.
    """

    samples: float
    instructions: float
    stall: str

    @property
    def share(self) -> float:
        """The share of samples; of instructions if the kernel was not sampled; 0 without either."""
        shares = (value for value in (self.samples, self.instructions) if not math.isnan(value))
        return next(shares, 0.0)


Place = tuple[str, int]


@dataclass(frozen=True)
class HeatMap:
    """The heat of the lines of a variant's sources, by file name and line number.

    Attributes:
        moved: The line of today's source for (file, line) as recorded, where it is another one.
        outside: The lines with samples or instructions in files that are not the project's, by file.
    """

    places: Mapping[Place, Heat] = field(default_factory=dict)
    moved: Mapping[Place, Place] = field(default_factory=dict)
    outside: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def hot(self, file: str, least: float) -> list[int]:
        """Returns the numbers of the lines of a file that have at least the share `least`."""
        return sorted(n for (name, n), heat in self.places.items() if name == file and heat.share >= least)

    def of_file(self, file: str) -> float:
        """Returns the share of a file."""
        return sum(heat.share for (name, _), heat in self.places.items() if name == file)


def heat_map(rows: Sequence[Row], texts: Mapping[str, str]) -> HeatMap:
    """Returns the heat of one kernel's rows of the table `lines`; `texts` are the sources by file name."""
    split = {name: list(map(_one_spaced, source.splitlines())) for name, source in texts.items()}
    places: dict[Place, Heat] = {}
    moved: dict[Place, Place] = {}
    outside: dict[str, tuple[int, ...]] = {}
    for row in rows:
        name, line = text(row, "file").rsplit("/", 1)[-1], int(number(row, "line"))
        present = _line(split.get(name, ()), line, _one_spaced(text(row, "text")))
        if name not in split:
            outside[name] = (*outside.get(name, ()), line)
        if not present:
            continue
        if present != line:
            moved[name, line] = name, present
        heat = Heat(number(row, "sample_share"), number(row, "instruction_share"), text(row, "stall"))
        place = name, present
        places[place] = max(places.get(place, heat), heat, key=lambda heat: heat.share)
    return HeatMap(places, moved, outside)


def _one_spaced(line: str) -> str:
    """Returns a line as the table holds it: with single spaces, also before a comment at its end."""
    return " ".join(line.split())


def _line(lines: Sequence[str], place: int, words: str) -> int:
    """Returns the number of the line with this text that is nearest to `place`; 0 if there is none."""
    if 0 < place <= len(lines) and lines[place - 1] == words:
        return place
    same = [number for number, line in enumerate(lines, 1) if line == words and words]
    return min(same, key=lambda number: abs(number - place), default=0)
