"""Draws one figure for each family from the tables: PNG, SVG and the CSV behind the picture."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from warplog.core.errors import WarplogError
from warplog.core.records import write_text
from warplog.plan.script import job
from warplog.plotting import style
from warplog.tables import view

FIGURES = Path(__file__).parent / "figures"


def figure_module(figure: str) -> ModuleType:
    """The module of scripts/figures with that name: TITLE, data(tables) and draw(data, look).

    Raises:
        WarplogError: there is no such figure.
    """
    known = {path.stem: path for path in sorted(FIGURES.glob("[a-z]*.py"))}
    if figure not in known:
        raise WarplogError(f"{FIGURES}: {figure}: no such figure; there are {', '.join(known)}")
    spec = importlib.util.spec_from_file_location(f"warplog_figure_{figure}", known[figure])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(figure: str, tables: Path, pngs: Sequence[Path]) -> None:
    """`pngs` are results/figures/<family>/<figure>.png; the other two files lie beside them."""
    module = figure_module(figure)
    read = view.read_all(tables)
    for png in pngs:
        family = view.of_family(read, tables, png.parent.name)
        data = module.data(family)
        write_text(png.with_suffix(".csv"), data.to_csv(index=False, lineterminator="\n"))
        style.save(module.draw(data, style.look(family)), png, png.with_suffix(".svg"))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.figure).stem,
            Path(snakemake.input.tables[0]).parent,
            [Path(path) for path in snakemake.output.png],
        )
