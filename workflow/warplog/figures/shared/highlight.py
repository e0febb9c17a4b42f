"""Which variants of a long ladder the figures with one series per variant show in colour."""

from typing import TYPE_CHECKING

from warplog.analysis import verdicts
from warplog.analysis.main_path import main_path
from warplog.tables.files import as_rows

if TYPE_CHECKING:
    import pandas as pd

    from warplog.tables.view import FigureTables

LONG = 6  # a ladder with more variants than these has grey ones
GREY = "#c9c9c9"


def of_family(tables: "FigureTables") -> list[str]:
    """Returns the variants that all figures of a family show in colour: all of a short ladder, else its main path.

    With it are the baseline and those that titles name: the fastest in most cases and at the largest size.
    """
    ladder = {str(row["variant"]): row for row in as_rows(tables.ladder(tables.case))}
    path = [str(row["variant"]) for row in as_rows(tables.places) if row["step"]] or main_path(ladder)
    if len(ladder) <= LONG or not path:
        return list(ladder)
    shown = {*path, *(name for name, row in ladder.items() if row["is_baseline"])}
    rows = tables.measurements
    rows = rows[(rows["status"] == "ok") & (rows["median_us"] > 0) & rows["variant"].isin(list(ladder))]
    won = wins(rows.assign(leads=leads(rows)))
    shown |= {max(won, key=won.__getitem__), *largest_compared(rows).nsmallest(1, "median_us")["variant"]}
    return [name for name in ladder if name in shown]


def largest_compared(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Returns the rows at the largest size at which several variants have a time; `rows` are those with a time."""
    several = rows.groupby("size")["variant"].transform("nunique") > 1
    largest: pd.DataFrame = rows[rows["size"] == rows.loc[several, "size"].max()]
    return largest


def leads(rows: "pd.DataFrame") -> list[bool]:
    """Returns of each row of `measurements` whether it is the fastest at its case, or tied with that."""
    records, leading = as_rows(rows), [False] * len(rows)
    for places in rows.groupby("case").indices.values():
        for place, first in zip(places, verdicts.leading([records[n] for n in places]), strict=True):
            leading[place] = first
    return leading


def wins(times: "pd.DataFrame") -> dict[str, float]:
    """Returns in how many cases each variant is the fastest or tied with it, plus its mean share of the best speed.

    `times` has the columns variant, case, median_us and leads. The share is below 1 and orders variants with equal
    counts.
    """
    best = times.groupby("case")["median_us"].transform("min")
    own = times.assign(share=best / times["median_us"]).groupby("variant")
    scores = own["leads"].sum() + 0.999 * own["share"].mean()
    return {str(name): float(count) for name, count in scores.items()}
