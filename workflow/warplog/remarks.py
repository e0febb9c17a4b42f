"""Several remarks in one cell: what a table's `reason` says of a row that is good."""

_BETWEEN = "; "


def join(*remarks: str) -> str:
    """One text of those that are not empty."""
    return _BETWEEN.join(filter(None, remarks))


def split(reason: object) -> list[str]:
    """The remarks that such a text is made of."""
    return [part for part in str(reason).split(_BETWEEN) if part]
