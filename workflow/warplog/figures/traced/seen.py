"""What the traces of a family show: of the sources at hand only, and not of kernels that store by TMA."""

import pandas as pd

from warplog.core.text import listed
from warplog.figures.shared.style import MOST_NAMED
from warplog.tables.view import FigureTables


def current(rows: pd.DataFrame, tables: FigureTables) -> pd.DataFrame:
    """Returns the rows of variants whose source is the one that was traced; tables of traces are made on request."""
    built = dict(zip(tables.variants["variant"], tables.variants["source_sha256"], strict=True))
    traced = zip(tables.traced_kernels["variant"], tables.traced_kernels["source_sha256"], strict=True)
    return rows[rows["variant"].isin([name for name, source in traced if built.get(name) == source])]


def stored_unseen(tables: FigureTables) -> str:
    """Returns which variants store by TMA alone, so that who writes what is not known; "" if none does."""
    kernels = current(tables.traced_kernels, tables)
    by_tma = kernels.loc[kernels["untraced"].fillna("").str.contains("UTMASTG"), "variant"]
    names = [name for name in dict.fromkeys(by_tma) if name not in set(tables.access_tiles["variant"])]
    if not names:
        return ""
    which = listed(names) if len(names) <= MOST_NAMED else f"{len(names)} variants"
    return f"not drawn: {which}, as stores by TMA are not traced"
