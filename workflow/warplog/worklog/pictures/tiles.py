"""How a kernel divides its result: the tiles of block, warp and thread as drawings, from its parameters.

Parameters are those of family.yaml; a size that is not among them is taken from a `constexpr int` of the source or its
headers, if it is a number there, or the product of two. The names are those of the kernels of this repository:
BM x BN x BK for a block, WM x WN for a warp, TM x TN for a thread, STAGES, CONSUMERS, CLUSTER (or DOWN x ACROSS), and
TILE for square tiles.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_DECLARATION = re.compile(r"\bconstexpr int ([^;]*);")
# A number, another constant (the namespace does not count), or the product of two of them.
_CONSTANT = re.compile(r"([A-Z][A-Z0-9_]*) = (?:\w+::)?(\w+)(?: \* (?:\w+::)?(\w+))?$")
_SIDE = 150.0  # of the square in which a tile is drawn
_MOST_CELLS = 64  # per direction; a finer grid would be grey
_FINE = 6.0  # the side of cells below which thinner lines divide them
_DEEPEST = 3  # a constant of a constant of a constant
_WARP = 32  # threads


@dataclass(frozen=True)
class Tiling:
    """The sizes of a kernel's tiles, in elements; 0 for a level that it does not have.

    Attributes:
        block: Rows and columns of the result per block.
        depth: Length of a step along K.
        warp: Rows and columns per warp.
        group: Rows and columns per consumer warpgroup.
        thread: Rows and columns per thread.
        stages: Tiles in shared memory at a time.
        cluster: Rows and columns of a cluster, in blocks.
    """

    block: tuple[int, int]
    depth: int = 0
    warp: tuple[int, int] = (0, 0)
    group: tuple[int, int] = (0, 0)
    thread: tuple[int, int] = (0, 0)
    stages: int = 1
    cluster: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class Shape:
    """A rectangle of a drawing; `kind` is its CSS class."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Panel:
    """One drawing: a tile divided into the tiles of the next level.

    `title` names the tile, `note` its size and what it is divided into; `width` and `height` are the drawing's.
    """

    title: str
    note: str
    width: float
    height: float
    shapes: tuple[Shape, ...]

    @property
    def is_fine(self) -> bool:
        """Whether lines of the usual width would take much of its area."""
        return any(min(one.width, one.height) < _FINE for one in self.shapes if one.kind == "tile")


def tiling(parameters: Mapping[str, int], source: str) -> Tiling | None:
    """Returns the tiling of a kernel; None if its block tile is unknown."""
    given = {**_constants(source, parameters), **parameters}
    block = given.get("BM", 0), given.get("BN", 0)
    if not all(block) or not {"BM", "BN"} & set(parameters):
        return _square(parameters, source)
    warp = given.get("WM", 0), given.get("WN", 0)
    return Tiling(
        block,
        given.get("BK", 0),
        warp if all(warp) else (0, 0),
        (block[0] // given["CONSUMERS"], block[1]) if given.get("CONSUMERS", 1) > 1 else (0, 0),
        _thread(given, warp),
        given.get("STAGES", 1),
        (given.get("DOWN", given.get("CLUSTER", 1)), given.get("ACROSS", 1)),
    )


def _constants(source: str, parameters: Mapping[str, int]) -> dict[str, int]:
    """Returns the constants of a source that are numbers, other constants or parameters, or products of two of them."""
    terms: dict[str, tuple[str, ...]] = {}
    for declaration in _DECLARATION.findall(source):
        for one in declaration.split(", "):
            if found := _CONSTANT.fullmatch(one.strip()):
                terms.setdefault(found[1], tuple(filter(None, found.groups()[1:])))
    known = dict(parameters)
    for _ in range(_DEEPEST):
        for name, factors in terms.items():
            values = [int(one) if one.isdigit() else known.get(one) for one in factors]
            if name not in known and all(values):
                known[name] = math.prod(value for value in values if value)
    return known


def panels(tiles: Tiling) -> tuple[Panel, ...]:
    """Returns the drawings of a tiling from the result down to a thread; levels that it does not have are left out."""
    return tuple(_panels(tiles))


def _square(parameters: Mapping[str, int], source: str) -> Tiling | None:
    """Returns the tiling of a kernel with square tiles of side TILE, or with BLOCK x BLOCK threads, one per result."""
    if side := parameters.get("TILE", 0):
        return Tiling((side, side))
    side = parameters.get("BLOCK", 0) if "BLOCK * BLOCK" in source else 0
    return Tiling((side, side), thread=(1, 1)) if side else None


def _thread(given: Mapping[str, int], warp: tuple[int, int]) -> tuple[int, int]:
    """Returns a thread's tile; of kernels that state the lanes of a warp, what a lane has of the warp's tile."""
    lanes = given.get("LANES_M", 0)
    if lanes and all(warp):
        return warp[0] // lanes, warp[1] * lanes // _WARP
    rows, columns = given.get("TM", 0), given.get("TN", 0)
    return (rows, columns or 1) if rows else (0, 0)


def _panels(tiles: Tiling) -> Iterator[Panel]:
    rows, columns = tiles.block
    yield _grid_of_blocks(tiles)
    if tiles.depth:
        yield _step(tiles)
    levels = {"warp": tiles.warp, "consumer warpgroup": tiles.group, "thread": tiles.thread}
    what = next((name for name, size in levels.items() if all(size)), "")
    if not what:
        return
    inner = levels[what]
    yield _division(
        "A block's tile", f"{rows} x {columns}, {inner[0]} x {inner[1]} per {what} (blue)", tiles.block, inner
    )
    if what == "warp" and all(tiles.thread):
        note = f"{inner[0]} x {inner[1]}, {tiles.thread[0]} x {tiles.thread[1]} per thread (blue)"
        yield _division("A warp's tile", note, inner, tiles.thread)


def _grid_of_blocks(tiles: Tiling) -> Panel:
    """Draws a part of the result with its blocks, of which one, or one cluster, is filled."""
    rows, columns = tiles.block
    down, across = tiles.cluster
    scale = _SIDE / max(4 * rows, 4 * columns, down * rows * 2, across * columns * 2)
    height, width = rows * scale, columns * scale
    shapes = [
        Shape("tile on" if y < down and x < across else "tile", x * width, y * height, width, height)
        for y in range(max(1, round(_SIDE / height)))
        for x in range(max(1, round(_SIDE / width)))
    ]
    note = f"{rows} x {columns} per block"
    if down * across > 1:
        note += f", {down * across} blocks per cluster"
    return _panel("A part of C", f"{note}; blue: one {'cluster' if down * across > 1 else 'block'}", shapes)


def _step(tiles: Tiling) -> Panel:
    """Draws the tiles of both operands beside the block's tile, once per stage."""
    rows, columns = tiles.block
    scale = (_SIDE - 24) / max(rows + tiles.depth, columns + tiles.depth)
    depth, gap = tiles.depth * scale, 6.0
    stages = min(tiles.stages, 6)
    shift = 3.0
    left, top = depth + gap + shift * stages, depth + gap + shift * stages
    shapes = [Shape("tile", left, top, columns * scale, rows * scale)]
    for stage in reversed(range(stages)):
        kind, back = "operand on" if stage == 0 else "operand", shift * (stages - 1 - stage)
        shapes.append(Shape(kind, back, top, depth, rows * scale))
        shapes.append(Shape(kind, left, back, columns * scale, depth))
    note = f"{rows} x {tiles.depth} and {tiles.depth} x {columns}"
    note += f", {tiles.stages} stages" if tiles.stages > 1 else ""
    note += f"; green: tiles of A and B{', grey: those of the other stages' if stages > 1 else ''}, white: tile of C"
    return _panel("One step of the K loop", note, shapes)


def _division(title: str, note: str, whole: tuple[int, int], part: tuple[int, int]) -> Panel:
    scale = _SIDE / max(whole)
    down, across = (max(1, -(-one // other)) for one, other in zip(whole, part, strict=True))
    if max(down, across) > _MOST_CELLS:
        down, across = 1, 1
    height, width = whole[0] * scale / down, whole[1] * scale / across
    shapes = [
        Shape("tile on" if not x and not y else "tile", x * width, y * height, width, height)
        for y in range(down)
        for x in range(across)
    ]
    return _panel(title, note, shapes)


def _panel(title: str, note: str, shapes: list[Shape]) -> Panel:
    width = max(shape.x + shape.width for shape in shapes)
    height = max(shape.y + shape.height for shape in shapes)
    return Panel(title, note, round(width + 2, 1), round(height + 2, 1), tuple(shapes))
