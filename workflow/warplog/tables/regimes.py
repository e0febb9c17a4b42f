"""Regimes and noise of a timed case: when two times differ, what a long run costs, and which limit causes it.

Three regimes are timed. *Rest*: cold launches with pauses, at the maximum SM clock. *Hot*: short bursts of launches
with a warm L2. *Sustained*: back to back until a limit of the board (usually power) lowers the clock. The columns
`sustained_...` hold the hot time of a row that reaches no limit; in words, that is "back to back".
All functions take a row of the table `measurements`; columns may be missing or empty.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from warplog.core.columns import Row, number

# A long run differs from rest if its time is this much longer: what a warm L2 and launch gaps change is smaller.
LEAST_SLOWDOWN = 0.02
SUSTAINED, BACK_TO_BACK = "sustained", "back to back"


@dataclass(frozen=True)
class LongRun:
    """Launches back to back, where they are slower than launches at rest.

    Attributes:
        regime: SUSTAINED if a limit of the board was reached, BACK_TO_BACK otherwise.
        rest_us, long_us: time per launch at rest and in the long run.
        limited_by: what lowers the clock: "power", "temperature", "other", or "" for none.
        from_mhz, to_mhz: SM clock at rest and in the long run; NaN if unknown.
        watts: mean board power in the long run; NaN if unknown.
        at_rest: whether the clock of the shorter time is known, so that it was taken at rest.
    """

    regime: str
    rest_us: float
    long_us: float
    limited_by: str
    from_mhz: float = math.nan
    to_mhz: float = math.nan
    watts: float = math.nan
    at_rest: bool = True

    @property
    def factor(self) -> float:
        """The rate of the long run over the rate at rest."""
        return self.rest_us / self.long_us


def interval_us(row: Row) -> tuple[float, float]:
    """Returns the interval in which the row's median lies: between processes, or the quartiles of a single process.

    An end that is unknown is the median; so is one that is not above 0, as a ratio to it says nothing.
    """
    median = number(row, "median_us")
    names = ("process_min_us", "process_max_us") if number(row, "processes") > 1 else ("q1_us", "q3_us")
    low, high = (number(row, name) for name in names)
    return (low if low > 0 else median), (high if high > 0 else median)


def has_processes(rows: Iterable[Row]) -> bool:
    """Returns whether times are medians over several processes, so that intervals show the spread between them."""
    return any(number(row, "processes") > 1 for row in rows)


def at_rest(rows: Iterable[Row]) -> bool:
    """Returns whether the cold times were taken at rest, which the clock that the driver set shows."""
    return any(number(row, "set_mhz") > 0 for row in rows)


def where_timed(rows: Iterable[Row]) -> str:
    """Returns the regime of the cold times in words: "at rest", or "with a cold L2" if the clock is unknown."""
    return "at rest" if at_rest(rows) else "with a cold L2"


def explained(rows: Collection[Row]) -> str:
    """Returns one sentence that explains the regimes of the times that differ; "" if none of them needs it."""
    runs = [run for run in map(long_run, rows) if run]
    words = {
        BACK_TO_BACK: "short bursts of launches without pauses and with a warm L2",
        SUSTAINED: "without pauses, at a limit of the board, usually its power limit",
    }
    named = [
        f"{regime} ({how})" for regime, how in words.items() if any(run.regime == regime for run in runs)
    ]
    unless = f" unless they are called {' or '.join(named)}" if named else ""
    if at_rest(rows):
        rest = "single launches, each started after a pause, when the SM clock is back at its maximum"
        return f"Times and speeds are at rest{f' ({rest}){unless}' if unless else f': {rest}'}."
    return f"Times and speeds are of single launches with a cold L2{unless}." if unless else ""


def interval_words(rows: Iterable[Row]) -> str:
    """Returns what an interval shows, in words: the spread between processes, or quartiles."""
    return "spread between processes" if has_processes(rows) else "quartiles"


def long_run(row: Row) -> LongRun | None:
    """Returns the row's long run if it is slower than launches at rest; None if it is not, or was not timed."""
    rest, sustained, set_mhz = (number(row, name) for name in ("median_us", "sustained_us", "set_mhz"))
    if not sustained > rest * (1 + LEAST_SLOWDOWN):
        return None
    by = row.get("limited_by")
    limit = by if isinstance(by, str) else ""
    regime = SUSTAINED if limit else BACK_TO_BACK
    sm_mhz, watts = number(row, "sustained_sm_mhz"), number(row, "sustained_power_w")
    return LongRun(regime, rest, sustained, limit, set_mhz, sm_mhz, watts, at_rest=set_mhz > 0)
