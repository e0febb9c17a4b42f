"""What the traces of a family show: of the sources at hand only, and not of kernels that store by TMA."""

import pandas as pd

from warplog.core.text import listed
from warplog.figures.shared.style import MOST_NAMED
from warplog.tables.view import FigureTables


def current(rows: pd.DataFrame, tables: FigureTables, variant: str = "") -> pd.DataFrame:
    """Returns the rows of variants whose source is the one that was traced, as tables of traces are made on request.

    With `variant` it is those of that one and its parent.
    """
    built = dict(zip(tables.variants["variant"], tables.variants["source_sha256"], strict=True))
    traced = zip(tables.traced_kernels["variant"], tables.traced_kernels["source_sha256"], strict=True)
    names = {name for name, source in traced if built.get(name) == source}
    return rows[rows["variant"].isin(names & {variant, parents(tables).get(variant)} if variant else names)]


def parents(tables: FigureTables) -> dict[str, str]:
    """Returns the parent of each variant, "" for none, in the order of the ladder."""
    ladder = tables.variants.sort_values("order", kind="stable")
    return dict(zip(ladder["variant"], ladder["parent"].fillna(""), strict=True))


def stored_unseen(tables: FigureTables) -> str:
    """Returns which variants store by TMA alone, so that who writes what is not known; "" if none does."""
    kernels = current(tables.traced_kernels, tables)
    by_tma = kernels.loc[kernels["untraced"].fillna("").str.contains("UTMASTG"), "variant"]
    names = [name for name in dict.fromkeys(by_tma) if name not in set(tables.access_tiles["variant"])]
    if not names:
        return ""
    which = listed(names) if len(names) <= MOST_NAMED else f"{len(names)} variants"
    return f"not drawn: {which}, as stores by TMA are not traced"
