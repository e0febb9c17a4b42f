"""Remarks on measurements: codes with values in records and tables, and the words that show them.

A remark is `{"code": "few_samples", "samples": 4}`; the code names its words in `WORDS`, which the values fill. A
table holds the remarks on a row as a JSON list in one cell.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.parsing import parse_json
from warplog.core.text import join_notes

Remark = Mapping[str, Any]

# {s} is the plural's ending, by the value `samples`.
WORDS = {
    "few_samples": "only {samples} sample{s}",
    "discarded": "launches discarded: set SM clock below {below_mhz:.0f} MHz",
    "held_clock": "clock held at {mhz:.0f} MHz in spite of pauses",
    "not_blocked": "sample{s} not blocked: the launcher synchronises",
    "host_time": "with the host's part of each launch",
    "no_graph": "hot times without a CUDA graph",
    "earlier_source": "recorded for an earlier source",
    "other_board": "no ratio: the baseline was measured on another board",
    "not_tuned": "default parameters: not tuned on {gpu}",
    "violated": "default parameters: the best setting on {gpu} ({setting}) violates {rule!r}; tune again",
    "partly_tuned": "tuned on {gpu} with {seen} of {settings} settings measured",
    "tuned_for_earlier": "parameters from a search on {gpu} with an earlier version of this source",
}
DIFFER, REGIMES = "differ", {"rest": "rest", "hot": "hot"}
# Notes on whether our times agree with the profilers'.
_OF_AGREEMENT = {
    DIFFER: "{regime} {ours}, {tool} {tool_us:.4g} us",
    "other_board": "{tool} not compared: captured on another board",
    "several_kernels": "ncu not compared: {kernels} kernels per launch, each after a flush",
    "varies_in_ncu": "the time varies in ncu: {regime} {ours}, passes of ncu {ncu_us:.4g} and {other_us:.4g} us",
    "tracing_slows": "tracing changes the time: {regime} {ours}, nsys {nsys_us:.4g} us,"
    " events under nsys {traced_us:.4g} us",
}
# Values that stand before the words, "3 of 80 launches discarded", so that a figure can name them for each variant.
COUNTS = {"discarded": ("dropped", "taken"), "not_blocked": ("samples",)}
# How the times were taken, and therefore nothing about the counters.
ABOUT_TIMING = frozenset({"few_samples", "discarded", "held_clock", "not_blocked", "host_time", "no_graph"})


def cell(remarks: Iterable[Remark]) -> str:
    """Returns the remarks as the cell of a table; "" for none."""
    found = list(remarks)
    return json.dumps(found, ensure_ascii=False) if found else ""


def read(cell: object) -> tuple[Remark, ...]:
    """Returns the remarks in the cell of a table; none in an empty one.

    Raises:
        WarplogError: The cell holds something else.
    """
    found = _parsed(cell, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) and "code" in one for one in found):
        raise WarplogError(f"{str(cell)[:80]!r}: is not a list of remarks; make the tables again")
    return tuple(found)


def own_limits(cell: object) -> dict[str, float]:
    """Returns the limits in a cell of the column `own_limits`, by parameter; none in an empty one.

    Raises:
        WarplogError: The cell holds something else.
    """
    found = _parsed(cell, {})
    if not isinstance(found, dict) or not all(isinstance(most, (int, float)) for most in found.values()):
        raise WarplogError(f"{str(cell)[:80]!r}: holds no limits; make the tables again")
    return found


def _parsed(cell: object, empty: object) -> Any:
    """Returns the JSON in a cell: `empty` if there is no text, None for what is no JSON."""
    if not isinstance(cell, str) or not cell:
        return empty
    try:
        return parse_json(cell.encode())
    except (ValueError, RecursionError):
        return None


def counts(remark: Remark) -> tuple[int, ...]:
    """Returns the numbers before the words of a remark: (3, 80) of "3 of 80 launches discarded"."""
    return tuple(remark[name] for name in COUNTS.get(remark["code"], ()))


def uncounted(remark: Remark) -> str:
    """Returns the words of a remark without the numbers before them."""
    return _filled(WORDS, {**remark, **dict.fromkeys(COUNTS.get(remark["code"], ()), 0)})


def words(remark: Remark) -> str:
    """Returns a remark in words: "3 of 80 launches discarded: set SM clock below 1960 MHz".

    Raises:
        WarplogError: The code is unknown, or a value is missing or of another type.
    """
    return " ".join(filter(None, (" of ".join(map(str, counts(remark))), _filled(WORDS, remark))))


def of_row(row: Mapping[str, Any]) -> str:
    """Returns why a row of a table is not ok, or the remarks on it, in words; "" for nothing."""
    reason = row.get("reason")
    return join_notes(reason if isinstance(reason, str) else "", *map(words, read(row.get("remarks"))))


def agreement_words(notes: Sequence[Remark], regimes: Mapping[str, str] = REGIMES) -> str:
    """Returns the times that differ and, in parentheses, the other notes: "rest 10 us, ncu 12 us (...)".

    Args:
        notes: those in the column `agreement_notes`.
        regimes: what our times are called, by "rest" and "hot".

    Raises:
        WarplogError: A note has an unknown code or lacks a value.
    """
    apart = "; ".join(_note(one, regimes) for one in notes if one["code"] == DIFFER)
    others = "; ".join(_note(one, regimes) for one in notes if one["code"] != DIFFER)
    return f"{apart} ({others})".strip() if others else apart


def _note(note: Remark, regimes: Mapping[str, str]) -> str:
    if "regime" not in note:
        return _filled(_OF_AGREEMENT, note)
    low, high = f"{note['low_us']:.4g}", f"{note['high_us']:.4g}"
    ours = f"{low} us" if low == high else f"{low} to {high} us"
    return _filled(_OF_AGREEMENT, {**note, "regime": regimes[note["regime"]], "ours": ours})


def _filled(templates: Mapping[str, str], remark: Remark) -> str:
    try:
        return templates[remark["code"]].format(**remark, s="" if remark.get("samples") == 1 else "s")
    except (LookupError, ValueError, TypeError):
        raise WarplogError(f"{str(remark)[:120]}: is not a known remark; make the tables again") from None
