"""Tables and figures of a worklog in LaTeX, a float each; requires array, booktabs and graphicx.

They fit `article` in one and two columns. Figures are named without a suffix and relative to the folder of figures, for
\\graphicspath, so that a PDF is taken where there is one.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from warplog.core.numbers import rate_unit
from warplog.core.text import one_line
from warplog.worklog.cells import Cells, Number, shown
from warplog.worklog.page import Page, Picture
from warplog.worklog.texts import words

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_\allowbreak{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # after \\ they would be read as its argument
}  # fmt: skip
_SYMBOLS = str.maketrans({
    "→": r"$\rightarrow$", "−": r"$-$", "×": r"$\times$", "µ": r"\textmu{}", "μ": r"\textmu{}",
    "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$", "∞": r"$\infty$", "√": r"$\surd$",
})  # fmt: skip
# Smaller, the text in a figure could not be read.
_SIZE = r"width=\linewidth,height=0.45\textheight,keepaspectratio"
_MOST_ROWS, _MOST_HIGH_ROWS = 30, 16  # of a float, so that it fits a page
_LEVEL = 6  # characters of a column's title, beyond which it is turned
_RESOURCES = {
    "registers_per_thread": "registers", "block_threads": "threads", "shared_bytes_per_block": "shared memory",
}  # fmt: skip


def latex(page: Page) -> dict[str, str]:
    """Returns the tables and figures of a page by the names of their files, without suffix."""
    tables = {"ladder": _ladder(page), "speeds": _speeds(page), "resources": _resources(page)}
    tables["accesses"] = _accesses(page)
    figures = (*page.key, *([page.ladder] if page.ladder else []), *page.pictures)
    files = {**tables, **{f"figure-{figure.name}": _figure(page.family, figure) for figure in figures}}
    return {name: text.translate(_SYMBOLS) for name, text in files.items() if text}


def escape(text: str) -> str:
    """Escapes text for LaTeX, on one line; names may be broken after an underscore, addresses after a slash."""
    safe = "".join(_SPECIAL.get(character, character) for character in one_line(text))
    return re.sub(r"/(?=\w{3}|\d)", r"/\\allowbreak{}", safe)


def _figure(family: str, picture: Picture) -> str:
    return (
        "\\begin{figure}[tbp]\n"
        f"\\centering\\includegraphics[{_SIZE}]{{{family}/{picture.name}}}\n"
        f"\\caption{{{escape(f'{picture.title}. {picture.caption}')}}}\n"
        f"\\label{{fig:{_label(f'{family}-{picture.name}')}}}\n"
        "\\end{figure}\n"
    )


def _ladder(page: Page) -> str:
    """Returns what each variant changed against its parent, what that brought, and what bounds it."""
    macros = words(escape)
    number = {section.name: str(n) for n, section in enumerate(page.sections, 1)}
    unit, speeds = _in_one_unit([section.place.speed for section in page.sections])
    rows = []
    for section, speed in zip(page.sections, speeds, strict=True):
        over, step, bound = section.over, section.step, section.bound
        causes = step.headline[:1] if step and step.row.explained in ("counters", "accesses") else ()
        rows.append(
            (
                number[section.name],
                escape(section.name),
                number.get(section.origin.parent, ""),
                macros.main_change(section.argued, causes),
                speed or (macros.status(section.badges[0]) if section.badges else ""),
                _cell(over and over.speedup),
                f"{_cell(over.low)} to {_cell(over.high)}".replace("x", "") if over and over.low else "",
                f"{bound.kind}: {macros.metric(bound.ceiling)} {_cell(bound.ceiling_pct)}"
                if bound and bound.kind
                else "",
            )
        )
    caption = (
        f"{page.title} at {page.case}: each variant against its parent, of which the number is given; the main"
        " change accounts for the gain or loss. Bound: the unit that is closest to its ceiling, and whether memory or"
        " compute reaches it, comes near it, or latency, a full queue, atomics or a small launch keep the kernel from"
        " it."
    )
    if any(section.step and section.step.row.explained == "accesses" for section in page.sections):
        caption += " Without counters, the main change is a traced access that changed as the time did."
    titles = ("", "variant", "from", "main change", unit or "time", "gain", "interval", "bound")
    formats = "@{}r" + _wrapped(0.17) + "r" + _wrapped(0.18) + "rrr" + _wrapped(0.12) + "@{}"
    return _table(page.family, "ladder", caption, titles, rows, formats, _MOST_HIGH_ROWS)


def _speeds(page: Page) -> str:
    """Returns the speed of each variant at each case; rows are whichever of the two are more."""
    names = [section.name for section in page.sections]
    cells = {(case, name): row for case, rows in page.timed.items() for name, row in rows.items()}
    unit, texts = _in_one_unit([row[page.speed] for row in cells.values()])
    text = {place: cell or "--" for place, cell in zip(cells, texts, strict=True)}
    if len(names) >= len(page.timed):
        first, titles = "variant", list(page.timed)
        rows = [(name, *(text.get((case, name), "--") for case in titles)) for name in names]
    else:
        first, titles = "case", names
        rows = [(case, *(text.get((case, name), "--") for name in titles)) for case in page.timed]
    caption = f"{page.title}: {f'speed in {unit}' if unit else 'time'} by case; a dash where it was not run."
    rows = [(escape(row[0]), *row[1:]) for row in rows]
    turn = r"\rotatebox{90}{%s}" if any(len(title) > _LEVEL for title in titles) else "%s"
    titles = [turn % escape(title) for title in titles]
    formats = f"@{{}}{_wrapped(0.2)}{'r' * len(titles)}@{{}}"
    return _table(page.family, "speeds", caption, (first, *titles), rows, formats)


def _resources(page: Page) -> str:
    """Returns what each variant's longest kernel uses of an SM; "" where no counters were captured."""
    rows = []
    for section in page.sections:
        if section.resources and section.bound:
            metrics: Mapping[str, Cells] = section.resources
            bound = section.bound
            rows.append(
                (
                    escape(section.name),
                    *(_cell(metrics[name].value) if name in metrics else "" for name in _RESOURCES),
                    _cell(bound.theoretical_pct),
                    _cell(bound.achieved_pct),
                    escape(str(bound.limiters).replace("_", " ").replace(",", ", ")),
                )
            )
    caption = (
        f"{page.title} at {page.profiled_case}: registers per thread, threads and shared memory per block of the"
        " longest kernel; theoretical occupancy with what limits it, and achieved occupancy."
    )
    titles = ("variant", *_RESOURCES.values(), "theoretical", "achieved", "limited by")
    formats = f"@{{}}{_wrapped(0.2)}rrrrr{_wrapped(0.15)}@{{}}"
    return _table(page.family, "resources", caption, titles, rows, formats, _MOST_HIGH_ROWS) if rows else ""


def _accesses(page: Page) -> str:
    """Returns how each variant accesses memory in its traced launch; "" if none was traced."""
    columns = {
        "load_sectors_per_request": "sectors per load", "load_sectors_ideal": "ideal",
        "store_sectors_per_request": "per store", "store_sectors_ideal": "ideal",
        "shared_ways": "ways", "wave_reuse": "reuse",
    }  # fmt: skip
    traced = {one.name: one.traced for one in page.sections if one.traced and one.traced.status == "ok"}
    rows = [
        (escape(name), *(_cell(accesses[column]) for column in columns)) for name, accesses in traced.items()
    ]
    most = page.method.traced[:1]
    others = [f"{name} at {of.case}" for name, of in traced.items() if of.case not in most]
    caption = (
        f"{page.title} at {', '.join([*most, *others])}: memory accesses by the traced addresses of one launch, not by"
        " counters. Sectors of 32 bytes per request of a warp to global memory, and the fewest that hold its bytes;"
        " wavefronts of shared memory per ideal wavefront (ways); how many blocks of the first wave read a byte on"
        " average (reuse)."
    )
    formats = f"@{{}}{_wrapped(0.2)}rrrrrr@{{}}"
    return (
        _table(page.family, "accesses", caption, ("variant", *columns.values()), rows, formats)
        if rows
        else ""
    )


def _cell(value: Any) -> str:
    return escape(str(value)).replace(" ", r"\,") if value else ""


def _in_one_unit(numbers: Sequence[Any]) -> tuple[str, list[str]]:
    """Returns the numbers in one unit and that unit, "" if each names its own; "" for those that are not known."""
    measured = [number for number in numbers if isinstance(number, Number) and number]
    unit, factor = rate_unit(measured[0].unit if measured else "", (number.value for number in measured))
    texts = [shown(number.value * factor, unit) if number else "" for number in numbers]
    is_common = all(text.endswith(f" {unit}") for text in texts if text)
    return unit if is_common else "", [
        _cell(text.removesuffix(f" {unit}") if is_common else text) for text in texts
    ]


def _wrapped(width: float) -> str:
    return rf">{{\raggedright\arraybackslash\hspace{{0pt}}}}p{{{width}\linewidth}}"


def _table(
    family: str,
    name: str,
    caption: str,
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    formats: str,
    most: int = _MOST_ROWS,
) -> str:
    """Returns a table whose cells are escaped as floats of at most `most` rows, over all columns of the page."""
    import pandas as pd

    size = math.ceil(len(rows) / math.ceil(len(rows) / most))
    parts = [rows[first : first + size] for first in range(0, len(rows), size)]
    return "\n".join(
        pd.DataFrame(part, columns=list(titles))
        .style.hide(axis="index")
        .to_latex(
            column_format=formats,
            hrules=True,
            environment="table*",
            position="tbp",
            position_float="centering",
            caption=escape(caption if number == 1 else f"{caption.partition(':')[0]}, continued."),
            label=f"tab:{_label(f'{family}-{name}')}{f'-{number}' if number > 1 else ''}",
        )
        .replace(r"\begin{tabular}", r"\scriptsize\setlength{\tabcolsep}{3pt}" + "\n" + r"\begin{tabular}")
        for number, part in enumerate(parts, 1)
    )


def _label(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in text)
