"""What the traces of a family show: one launch per variant, and no stores by TMA."""

import pandas as pd

from warplog.core.text import listed
from warplog.figures.shared.style import MOST_NAMED
from warplog.tables.view import FigureTables


def current(rows: pd.DataFrame, tables: FigureTables, variant: str = "") -> pd.DataFrame:
    """Returns the rows of the launches that pages show: one per variant, of the source at hand.

    With `variant` it is those of that one and its parent.
    """
    shown = tables.shown_traces.loc[tables.shown_traces["status"] == "ok", ["variant", "case"]]
    names = {variant, parents(tables).get(variant)} if variant else set(shown["variant"])
    return rows.merge(shown[shown["variant"].isin(names)], on=["variant", "case"])


def cases(data: pd.DataFrame) -> str:
    """Returns the case of the launches that a figure shows; if there are several, with their variants."""
    of = data.drop_duplicates(["case", "variant"]).groupby("case", sort=False)["variant"].agg(list)
    if len(of) == 1:
        return str(of.index[0])
    return ", ".join(f"{case} in {listed(names)}" for case, names in of.items())


def parents(tables: FigureTables) -> dict[str, str]:
    """Returns the parent of each variant, "" for none, in the order of the ladder."""
    ladder = tables.variants.sort_values("order", kind="stable")
    return dict(zip(ladder["variant"], ladder["parent"].fillna(""), strict=True))


def traced_in_part(tables: FigureTables) -> set[str]:
    """Returns the variants of which not all blocks were traced."""
    kernels = current(tables.traced_kernels, tables)
    return set(kernels.loc[kernels["traced_blocks"] < kernels["blocks"], "variant"])


def stored_unseen(tables: FigureTables) -> str:
    """Returns which variants store by TMA alone, so that who writes what is not known; "" if none does."""
    kernels = current(tables.traced_kernels, tables)
    by_tma = kernels.loc[kernels["untraced"].fillna("").str.contains("UTMASTG"), "variant"]
    names = [name for name in dict.fromkeys(by_tma) if name not in set(tables.access_tiles["variant"])]
    if not names:
        return ""
    which = listed(names) if len(names) <= MOST_NAMED else f"{len(names)} variants"
    return f"not drawn: {which}, as stores by TMA are not traced"
