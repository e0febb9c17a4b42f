"""One module per figure, each with TITLE, NEEDS, data(tables) and draw(data, look).

`NEEDS` lists what a family must have for the figure to show anything; see warplog.plan.selection.
"""

import ast
import importlib
from pathlib import Path
from types import ModuleType

from warplog.core.errors import WarplogError

_FOLDER = Path(__file__).parent


def needs() -> dict[str, tuple[str, ...]]:
    """Returns NEEDS of every figure by name, without importing the figures, which would take a second."""
    found = {}
    for path in sorted(_FOLDER.glob("[a-z]*.py")):
        values = [
            node.value
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            if node.targets[0].id == "NEEDS"
        ]
        found[path.stem] = tuple(ast.literal_eval(values[0])) if values else ()
    return found


def module(figure: str) -> ModuleType:
    """Returns the module of a figure.

    Raises:
        WarplogError: if the figure does not exist; the message lists the figures.
    """
    known = needs()
    if figure not in known:
        raise WarplogError(f"{figure}: no such figure; there are {', '.join(known)}")
    return importlib.import_module(f"warplog.figures.{figure}")
