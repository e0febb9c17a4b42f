"""What the trace does not see of who writes what."""

from warplog.core.text import listed
from warplog.figures.shared.style import MOST_NAMED
from warplog.tables.view import FigureTables


def not_seen(tables: FigureTables) -> str:
    """Returns which variants store by TMA alone, whose owners are therefore not known; "" if none does."""
    seen = set(tables.access_owners["variant"])
    kernels = tables.traced_kernels
    hidden = kernels[kernels["untraced"].fillna("").str.contains("UTMASTG") & ~kernels["variant"].isin(seen)]
    names = list(dict.fromkeys(hidden["variant"]))
    if not names:
        return ""
    which = listed(names) if len(names) <= MOST_NAMED else f"{len(names)} variants"
    return f"not drawn: {which}, as stores by TMA are not traced"
