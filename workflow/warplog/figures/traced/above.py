"""Lines of text above a panel."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from warplog.figures.shared.labels import fit, line_in, wrap

NAME: dict[str, Any] = {"weight": "bold"}
Line = tuple[str, dict[str, Any]]  # and how it is set


def lines_above(name: str, texts: Sequence[Line], room_in: float) -> list[Line]:
    """Returns the lines for a panel with this much room: the name of its variant, and what is said of it, wrapped."""
    of_name = [(fit(name, room_in + 0.15), NAME)] if name else []
    return [*of_name, *((line, shown) for text, shown in texts for line in wrap(text, room_in))]


def height_in(count: int) -> float:
    """Returns the height of this many lines in inches."""
    return 1.08 * line_in() * count


def write_above(axes: Axes, lines: Sequence[Line], count: int) -> None:
    """Writes lines above a panel, from the top of the room for `count` of them."""
    for place, (line, shown) in enumerate(lines):
        axes.annotate(
            line, (0, 1), (0, 4 + 72 * height_in(count - 1 - place)), xycoords="axes fraction",
            textcoords="offset points", va="bottom", annotation_clip=False, **shown,
        )  # fmt: skip
