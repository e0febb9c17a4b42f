"""Draws figures from made-up tables (fixtures `good` and `failed`) and returns their text and rows."""

from warplog import figures
from warplog.figures.shared import style

FIGURES = [
    "bank_conflicts", "instruction_mix", "ladder", "occupancy", "overlap", "quantization", "roofline",
    "throughput_vs_size", "timeline", "warp_stalls",
]  # fmt: skip
FAILED = {"bank_swizzled": "wrong", "split_k": "compile_error", ("naive", "16384"): "timeout"}

MODULES = {name: figures.module(name) for name in FIGURES}


def drawn(name, tables):
    module = MODULES[name]
    return module.draw(module.data(tables), style.look(tables))


def shown(name, tables, _figures={}):  # noqa: B006
    """Returns the figure, drawn once for these tables: no test may change it."""
    kept, figure = _figures.get((name, id(tables)), (None, None))
    if kept is not tables:
        figure = drawn(name, tables)
        _figures[name, id(tables)] = tables, figure
    return figure


def texts(figure):
    """Returns all text of a figure."""
    texts = [t.get_text() for axes in figure.axes for t in axes.texts]
    texts += [t.get_text() for axes in figure.axes for t in axes.get_yticklabels()]
    texts += [t.get_text() for legend in figure.legends for t in legend.get_texts()]
    return [*texts, figure.get_suptitle(), figure.get_supxlabel()]


def row(name, tables, variant):
    rows = MODULES[name].data(tables)
    return rows[rows["variant"] == variant].iloc[0]
