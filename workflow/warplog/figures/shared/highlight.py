"""Which variants of a long ladder the figures with one series per variant show in colour."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from warplog.analysis import verdicts
from warplog.tables.files import as_rows

if TYPE_CHECKING:
    import pandas as pd

    from warplog.tables.view import FigureTables

MOST = 6
GREY = "#c9c9c9"


def of_family(tables: "FigureTables") -> list[str]:
    """Returns the variants that all figures of a family show in colour, by their times at the headline case.

    Those that pages and titles name come first: the fastest at the headline case, in most cases, and at the largest
    size.
    """
    ladder = tables.ladder(tables.case)
    timed = ladder["median_us"].where((ladder["status"] == "ok") & (ladder["median_us"] > 0))
    speeds = {str(name): 1 / us for name, us in zip(ladder["variant"], timed, strict=True)}
    rows = tables.measurements
    rows = rows[(rows["status"] == "ok") & (rows["median_us"] > 0) & rows["variant"].isin(list(speeds))]
    baseline = [str(name) for name in ladder.loc[ladder["is_baseline"].astype(bool), "variant"]]
    own = {name: speed for name, speed in speeds.items() if speed > 0 and name not in baseline}
    named = [max(own, key=own.__getitem__)] if own else []
    if len(rows):
        won = wins(rows.assign(leads=leads(rows)))
        largest = rows[rows["size"] == rows["size"].max()]
        named += [max(won, key=won.__getitem__), str(largest.nsmallest(1, "median_us")["variant"].iloc[0])]
    return highlighted(speeds, baseline, named)


def leads(rows: "pd.DataFrame") -> list[bool]:
    """Returns of each row of `measurements` whether it is the fastest at its case, or tied with that."""
    records, found = as_rows(rows), [False] * len(rows)
    for places in rows.groupby("case").indices.values():
        for place, first in zip(places, verdicts.leading([records[n] for n in places]), strict=True):
            found[place] = first
    return found


def wins(times: "pd.DataFrame") -> dict[str, float]:
    """Returns in how many cases each variant is the fastest or tied with it, plus its mean share of the best speed.

    `times` has the columns variant, case, median_us and leads. The share is below 1 and orders variants with equal
    counts.
    """
    best = times.groupby("case")["median_us"].transform("min")
    own = times.assign(share=best / times["median_us"]).groupby("variant")
    found = own["leads"].sum() + 0.999 * own["share"].mean()
    return {str(name): float(count) for name, count in found.items()}


def highlighted(
    speeds: Mapping[str, float], baseline: Sequence[str] = (), named: Sequence[str] = ()
) -> list[str]:
    """Returns the variants to show in colour: all of a short ladder, otherwise six of those with a speed.

    These are the baseline, the first and the fastest variant, and the variants that gained most over the fastest
    one before them. Variants in `named`, such as those in the title, come before the latter. `speeds` are in ladder
    order, larger is faster, NaN is unknown.
    """
    known = {name: speed for name, speed in speeds.items() if speed > 0}
    if len(speeds) <= MOST or not known:
        return list(speeds)
    own = {name: speed for name, speed in known.items() if name not in baseline} or known
    gains, top = {}, 0.0
    for name, speed in own.items():
        gains[name] = speed / top if top else float("inf")
        top = max(top, speed)
    kept = [name for name in baseline if name in known]
    kept += dict.fromkeys([name for name in named if name in known and name not in kept])
    fastest = max(own, key=own.__getitem__)
    for name in (fastest, *sorted(gains, key=lambda name: -gains[name])):
        if len(kept) < MOST and name not in kept:
            kept.append(name)
    return [name for name in speeds if name in kept]
