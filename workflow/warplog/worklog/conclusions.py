"""Selects what is concluded about each variant of a family: rows for the pages and for `warplog explain`."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warplog.core.columns import text
from warplog.tables import conclusions as rows
from warplog.tables.conclusions import Bound, Change, Place, Verdict
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.worklog.cells import Cells
from warplog.worklog.page import Step

_LEAST_TURNED = 0.02  # by which a variant is slower or faster than its parent at another case, to be told
_RATES = ("ipc", "issuing_or_ready")  # they follow from the other causes, if there are any


@dataclass(frozen=True)
class Concluded:
    """What is concluded about a variant; the fields of `page.Section` of the same names."""

    place: Cells
    over: Cells | None
    turned: tuple[Cells, ...]
    cases: int
    step: Step | None
    bound: Cells | None
    same_kernel: str


def concluded(tables: FigureTables) -> dict[str, Concluded]:
    """Returns what is concluded about each variant, in the order of the ladder."""
    ranks, words = places(tables), verdicts(tables)
    measured = {str(row["variant"]): row for row in as_rows(tables.ladder(tables.case))}
    steps = {one.variant: one for one in rows.rows(tables.steps, rows.Step)}
    changes = rows.by_variant(sorted(rows.rows(tables.changes, Change), key=lambda one: one.rank))
    bounds = {one.variant: Cells(Bound.TABLE, one) for one in rows.rows(tables.bounds, Bound)}
    found = {}
    for name, place in ranks.items():
        parent = text(measured[name], "parent")
        root = place.kernel_of or name
        is_same = parent in ranks and (ranks[parent].kernel_of or parent) == root
        is_told = measured[name]["status"] == "ok" and not is_same
        over = {one.case: one for one in words.get((name, parent), ())}
        here = over.get(tables.case)
        found[name] = Concluded(
            place=Cells(Place.TABLE, place),
            over=Cells(Verdict.TABLE, here) if here else None,
            turned=tuple(Cells(Verdict.TABLE, one) for one in _turned(here, over.values())),
            cases=len(over),
            step=_step(steps[name], changes.get(name, ())) if is_told and name in steps else None,
            bound=bounds.get(name) if is_told else None,
            same_kernel=root if is_same else "",
        )
    return found


def places(tables: FigureTables) -> dict[str, Place]:
    """Returns the variants in the order of the ladder."""
    found = rows.rows(tables.places, Place)
    return {one.variant: one for one in sorted(found, key=lambda one: one.order)}


def verdicts(tables: FigureTables) -> dict[tuple[str, str], list[Verdict]]:
    """Returns the verdicts at rest of a variant against another one, by both."""
    found: dict[tuple[str, str], list[Verdict]] = {}
    for one in rows.rows(tables.verdicts, Verdict):
        if one.regime == "rest":
            found.setdefault((one.variant, one.against), []).append(one)
    return found


def _step(row: rows.Step, changes: Sequence[Change]) -> Step:
    argued = [one for one in changes if one.role in ("cause", "cost")]
    return Step(
        Cells(rows.Step.TABLE, row),
        tuple(Cells(Change.TABLE, one) for one in _headline(changes)),
        tuple(Cells(Change.TABLE, one) for role in ("cause", "cost") for one in argued if one.role == role),
        tuple(Cells(Change.TABLE, one) for one in changes if one not in argued),
    )


def _headline(changes: Sequence[Change]) -> list[Change]:
    """Returns the first cause, and the first one of another kind: what was changed, and the wait that it saves."""
    causes = [one for one in changes if one.role == "cause"]
    causes = [one for one in causes if one.quantity not in _RATES] or causes
    sectors = [one for one in causes if one.kind == "sectors"]
    if sectors == causes[: len(sectors)] and len(sectors) > 1:
        return sectors[:2]
    states = [one for one in causes if one.kind == "state"]
    return [*causes[:1], *(one for one in states if one != causes[0])][:2]


def _turned(here: Verdict | None, over: Iterable[Verdict]) -> list[Verdict]:
    """Returns the verdicts at other cases that differ from the one at the headline case, the largest first.

    At cases where it is faster or slower: the opposite of the headline's, or both if it is neither there.
    """
    if here is None:
        return []
    others = {"FASTER", "SLOWER"} - {here.word}
    found = [one for one in over if one.word in others and _apart(one) > math.log1p(_LEAST_TURNED)]
    return sorted(found, key=_apart, reverse=True)


def _apart(one: Verdict) -> float:
    return abs(math.log(one.speedup))
