"""Tables that stand beside a rung if the campaign has the data: its claims and its hottest source lines."""

import math
import re
from collections.abc import Collection, Sequence

from warplog.catalog.claims import (
    CONFIRMED,
    NOT_JUDGED,
    NOT_MEASURABLE,
    REFUTED,
    WITHIN_NOISE,
    condition_words,
    counts,
    verdict_words,
)
from warplog.core.columns import Row, number, text
from warplog.core.numbers import short_number as rounded
from warplog.core.numbers import with_unit
from warplog.core.text import Table, listed
from warplog.worklog.sentences import share_text

_MOST_LINES = 5
_MOST_NAMED = 3
_SHARES = ("sample_share", "instruction_share")
_LEAST_SHARE = 0.005  # of the samples, for a state to be named
OTHER_LINES = "other lines"
LINE_NOTES = (
    "Hottest lines: a sample counts for the instruction that a warp is about to issue, so that a wait appears at the"
    " instruction that has to wait: at a barrier, often on the line after it.",
)
CLAIM_NOTE = (
    "Claims: a claim is within noise, neither confirmed nor refuted, if its bound lies within the uncertainty of the"
    " times that it is computed from."
)
_LINES = ("line", "code", "samples", "instructions", "excess wavefronts", "main warp state")
_CLAIMS = ("claim", "case", "verdict", "measured here", "confirmed if", "published", "source", "note")
_WHERE_NAMED = ("claim", "condition", "measure")


def place_claims(claims: Sequence[Row], order: Sequence[str], baseline: str) -> dict[str, list[Row]]:
    """Assigns each claim to the last rung in `order` that its text, condition or formula names.

    The baseline counts only if the claim names no other rung. Claims that name more than three rungs, or
    none, are about the whole ladder and have the key "".
    """
    placed: dict[str, list[Row]] = {}
    for row in claims:
        words = re.findall(r"\w+", " ".join(text(row, column) for column in _WHERE_NAMED))
        named = [name for name in order if name in words]
        own = [name for name in named if name != baseline] or named
        placed.setdefault(own[-1] if 0 < len(own) <= _MOST_NAMED else "", []).append(row)
    return placed


def claims_table(claims: Sequence[Row]) -> Table | None:
    """Returns the claims with case, verdict, measured and published values and source; None if there are none.

    A column of notes follows if there are any: the reason why a claim is not measurable, or remarks on its rows.
    """
    rows = tuple(
        (
            f"{text(row, 'id')}: {text(row, 'claim')}",
            _cases(row),
            _verdict(row),
            with_unit(number(row, "measured"), text(row, "unit")),
            condition_words(text(row, "condition"), text(row, "unit")),
            *(text(row, name) for name in ("published", "source")),
            text(row, "reason"),
        )
        for row in claims
    )
    kept = len(_CLAIMS) if any(row[-1] for row in rows) else len(_CLAIMS) - 1
    return Table(_CLAIMS[:kept], tuple(row[:kept] for row in rows)) if rows else None


def claims_verdict(claims: Sequence[Row], headline: str = "", order: Sequence[str] = ()) -> str:
    """Returns how many claims are confirmed, and what the others are: "3 claims confirmed, 1 refuted".

    Their cases are named if `headline` is a case and the claims are not all about it, in the order of `order`: "claims
    at 1024 and 8192: 3 confirmed, 1 refuted", "claim refuted (at 1024)".
    """
    if not claims:
        return ""
    found = counts(text(row, "verdict") for row in claims)
    words = {
        "confirmed": CONFIRMED,
        "refuted": REFUTED,
        "within noise": WITHIN_NOISE,
        NOT_JUDGED: NOT_MEASURABLE,
    }
    told = [(word, found[one]) for word, one in words.items() if found[one]]
    if not told:
        return ""
    (verdict, count), *rest = told
    cases = {case for row in claims for case in _cases(row).split(", ")}
    named = sorted(cases, key=lambda case: (order.index(case) if case in order else len(order), case))
    others = "".join(f", {number} {word}" for word, number in rest)
    if headline and named != [headline]:
        if rest:
            return f"claims at {listed(named)}: {count} {verdict}{others}"
        return f"{f'{count} claims' if count > 1 else 'claim'} {verdict} (at {listed(named)})"
    first = f"{count} claims" if count > 1 else "1 claim" if rest else "claim"
    return f"{first} {verdict}{others}"


def lines_table(lines: Sequence[Row], own: Collection[str]) -> Table | None:
    """Returns a kernel's hottest source lines: four by samples, and one by instructions or excess wavefronts.

    They are in the order of their samples; a row about all other lines follows. Columns that are empty for all of
    these lines are left out. None if there are no lines or only empty columns. `own` are the names of the project's
    files: the text of others is not known, so that the table says where they belong.
    """
    excess = sum(max(number(row, "shared_wavefronts_excess"), 0.0) for row in lines)
    hottest = sorted(
        lines, key=lambda row: (-_samples(row), -_heat(row, excess), text(row, "file"), number(row, "line"))
    )
    kept, others = hottest[: _MOST_LINES - 1], hottest[_MOST_LINES - 1 :]
    shown = sorted(
        [*kept, *sorted(others, key=lambda row: -_heat(row, excess))[:1]], key=lambda row: -_samples(row)
    )
    rows = [_line(row, own) for row in shown]
    columns = [column for column in range(len(_LINES)) if column < 2 or any(row[column] for row in rows)]
    if not rows or columns == [0, 1]:
        return None
    rows += [_others(shown, excess)]
    cells = tuple(tuple(row[column] for column in columns) for row in rows)
    numeric = frozenset(place for place, column in enumerate(columns) if column in (2, 3, 4))
    return Table(tuple(_LINES[column] for column in columns), cells, numeric)


def _samples(row: Row) -> float:
    share = number(row, "sample_share")
    return share if share > 0 else 0.0


def _heat(row: Row, excess: float) -> float:
    """Returns the largest of the line's shares of samples, instructions and excess wavefronts."""
    shares = (number(row, "sample_share"), number(row, "instruction_share"))
    lost = number(row, "shared_wavefronts_excess") / excess if excess > 0 else 0.0
    return max([lost, *(share for share in shares if share > 0)])


def _others(shown: Sequence[Row], excess: float) -> tuple[str, ...]:
    """Returns the row about the lines that are not shown: what the shares of the others leave."""
    rest = [1 - sum(_known(shown, name)) if any(_known(shown, name)) else 0.0 for name in _SHARES]
    lost = excess - sum(_known(shown, "shared_wavefronts_excess"))
    cells = (share_text(max(0.0, share)) if share > 0 else "" for share in rest)
    return OTHER_LINES, "", *cells, rounded(lost) if lost > 0 else "", ""


def _known(rows: Sequence[Row], name: str) -> list[float]:
    """Returns the positive numbers in a column."""
    return [value for row in rows if (value := number(row, name)) > 0]


def outside(file: str) -> str:
    """Returns what a file belongs to that is not the project's: the CUDA toolkit, or a library of Python."""
    return "library of Python" if file.endswith(".py") else "header of the CUDA toolkit"


def _line(row: Row, own: Collection[str]) -> tuple[str, ...]:
    shares = [number(row, name) for name in _SHARES]
    cells = [share_text(share) if share > 0 else "" for share in shares]
    lost = number(row, "shared_wavefronts_excess")
    file = text(row, "file").rsplit("/", 1)[-1]
    unknown = f"(in a {outside(file)})" if own and file not in own else ""
    return (
        f"{file}:{number(row, 'line'):.0f}",
        text(row, "text").strip() or unknown,
        *cells,
        rounded(lost) if lost > 0 else "",
        text(row, "stall") if shares[0] >= _LEAST_SHARE or math.isnan(shares[0]) else "",
    )


def _verdict(row: Row) -> str:
    words = verdict_words(text(row, "verdict"), number(row, "measured"), text(row, "about"))
    return ", ".join(filter(None, (words, text(row, "margin"))))


def _cases(row: Row) -> str:
    """Returns the cases of the numbers behind a claim, and its own if there are none."""
    return text(row, "cases") or text(row, "case")
