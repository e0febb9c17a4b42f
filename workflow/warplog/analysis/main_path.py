"""The main path of a ladder: the steps that lead to its fastest variant."""

from collections.abc import Mapping

from warplog.core.columns import Row, number, text


def main_path(rows: Mapping[str, Row], best: str = "") -> tuple[str, ...]:
    """Returns the steps from the first ancestor to the fastest variant besides the baseline; empty without a time.

    The baseline is on it where the fastest variant descends from it. An ancestor without a time ends the path.

    Args:
        rows: The rows of the ladder at the headline case, by variant.
        best: The last step, if it is known; it must have a time.
    """
    times = {
        name: us
        for name, row in rows.items()
        if row["status"] == "ok" and (us := number(row, "median_us")) > 0
    }
    own = {name: us for name, us in times.items() if not rows[name]["is_baseline"]}
    if not own:
        return ()
    path = [best or min(own, key=own.__getitem__)]
    while (parent := text(rows[path[-1]], "parent")) in times and parent not in path:
        path.append(parent)
    return tuple(reversed(path))
