"""Selects what is concluded about each variant of a family: rows for the pages and for `warplog explain`."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from warplog.analysis.mechanisms.accounts import BUBBLE
from warplog.analysis.mechanisms.causes import LEAST_MOVED
from warplog.core.columns import Row, number, text
from warplog.tables import conclusions as rows
from warplog.tables.conclusions import (
    AccessLine,
    Bound,
    Change,
    Duel,
    Forecast,
    Place,
    Reason,
    Traced,
    UnitTime,
    Verdict,
)
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.worklog.cells import Cells
from warplog.worklog.page import Argued, Conclusions, Step

if TYPE_CHECKING:
    import pandas as pd

_LEAST_TURNED = 0.02  # by which a variant is slower or faster than its parent at another case, to be shown
_MOST_ACCESSES = 24
_MOST_FORECASTS = 3
# What there is so many of: the accesses that a number per request is about.
_REQUESTS = {
    "global_load_sectors_per_request": "inst_ldg",
    "global_store_sectors_per_request": "inst_stg",
}
_WAVEFRONTS = ("shared_wavefronts", "l1_shared_wavefronts")  # by the addresses, and those that L1 had
_LEAST_PART = 0.01  # of the largest part of a saving: others are left out
_RATES = ("ipc", "issuing_or_ready")  # they follow from the other causes, if there are any


def by_variant(tables: FigureTables) -> dict[str, Conclusions]:
    """Returns what is concluded about each variant, in the order of the ladder."""
    ranks, words = places(tables), verdicts(tables)
    measured = {str(row["variant"]): row for row in as_rows(tables.ladder(tables.case))}
    steps = {step.variant: step for step in rows.rows(tables.steps, rows.Step)}
    changes = rows.by_variant(sorted(rows.rows(tables.changes, Change), key=lambda change: change.rank))
    bounds = {bound.variant: Cells(Bound.TABLE, bound) for bound in rows.rows(tables.bounds, Bound)}
    traced = {row.variant: Cells(Traced.TABLE, row) for row in rows.rows(tables.shown_traces, Traced)}
    accesses = rows.by_variant(rows.rows(tables.access_lines, AccessLine))
    duels = _duels(tables)
    reasons = {row.variant: row for row in rows.rows(_profiled(tables, tables.mechanisms), Reason)}
    counted = _counted(tables, reasons.values())
    wavefronts = _fewer_wavefronts(tables)
    unit_times = rows.by_variant(rows.rows(_profiled(tables, tables.unit_times), UnitTime))
    forecasts = rows.by_variant(rows.rows(_profiled(tables, tables.forecasts), Forecast))
    variants = {}
    for name, place in ranks.items():
        parent = text(measured[name], "parent")
        root = place.kernel_of or name
        is_same = parent in ranks and (ranks[parent].kernel_of or parent) == root
        is_shown = measured[name]["status"] == "ok" and not is_same
        lines = [line for line in accesses.get(name, ()) if line.case == traced[name].case]
        shown = sorted(lines, key=lambda line: (not line.finding, -line.requests))[:_MOST_ACCESSES]
        over = {verdict.case: verdict for verdict in words.get((name, parent), ())}
        here = over.get(tables.case)
        variants[name] = Conclusions(
            place=Cells(Place.TABLE, place),
            over=Cells(Verdict.TABLE, here) if here else None,
            turned=tuple(Cells(Verdict.TABLE, verdict) for verdict in _turned(here, over.values())),
            cases=len(over),
            step=_step(steps[name], changes.get(name, ())) if is_shown and name in steps else None,
            argued=_argued(reasons[name], changes.get(name, ()), unit_times.get(name, ()), counted)
            if is_shown and name in reasons
            else None,
            forecasts=tuple(
                Cells(Forecast.TABLE, row) for row in forecasts.get(name, ())[:_MOST_FORECASTS] if is_shown
            ),
            bound=bounds.get(name) if is_shown else None,
            duel=duels.get(name) if is_shown else None,
            same_kernel=root if is_same else "",
            traced=traced.get(name),
            wavefronts=wavefronts.get(name),
            accesses=tuple(Cells(AccessLine.TABLE, line) for line in lines if line in shown),
            more_accesses=len(lines) - len(shown),
        )
    return variants


def places(tables: FigureTables) -> dict[str, Place]:
    """Returns the variants in the order of the ladder."""
    ladder = rows.rows(tables.places, Place)
    return {place.variant: place for place in sorted(ladder, key=lambda place: place.order)}


def verdicts(tables: FigureTables) -> dict[tuple[str, str], list[Verdict]]:
    """Returns the verdicts at rest of a variant against another one, by both."""
    by_pair: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in rows.rows(tables.verdicts, Verdict):
        if verdict.regime == "rest":
            by_pair.setdefault((verdict.variant, verdict.against), []).append(verdict)
    return by_pair


def _duels(tables: FigureTables) -> dict[str, Cells]:
    """Returns the verdicts of duels by variant, if both sides were what the campaign measured."""
    sources = {str(row["variant"]): row.get("source_sha256") for row in as_rows(tables.variants)}
    return {
        duel.variant: Cells(Duel.TABLE, duel)
        for duel in rows.rows(tables.duels, Duel)
        if (duel.source_sha256, duel.against_sha256) == (sources[duel.variant], sources.get(duel.against))
    }


def _profiled(tables: FigureTables, table: "pd.DataFrame") -> "pd.DataFrame":
    return table[table["case"] == tables.profiled_case]


def _argued(
    row: Reason,
    changes: Sequence[Change],
    unit_times: Sequence[UnitTime],
    counted: Mapping[tuple[str, str], Row],
) -> Argued | None:
    """Returns how the model argues a step; None if it could not predict anything."""
    if math.isnan(row.predicted_us) and row.word != "accounted":
        return None
    rests_on = row.rests_on.split(",")
    pairs = [
        (counted[row.parent, name], counted[row.variant, name])
        for name in rests_on
        if row.mechanism != "none" and {(row.parent, name), (row.variant, name)} <= counted.keys()
    ]
    most = max(pairs, key=lambda pair: _tells(pair, counted), default=())
    waits = [
        change
        for change in changes
        if (change.kind == "state" and f"{Change.TABLE}/{change.quantity}" in rests_on)
        or (change.kind == "bubble" and BUBBLE in rests_on)
    ]
    parts = sorted(unit_times, key=lambda part: -abs(part.saved_us))
    is_same = row.word == "predicted" and row.mechanism == "none" and math.isnan(row.least_pct)
    least_us = math.inf if is_same or not parts else _LEAST_PART * abs(parts[0].saved_us)
    return Argued(
        Cells(Reason.TABLE, row),
        tuple(Cells("metrics", side) for side in most if _moved(most) >= LEAST_MOVED),
        Cells(Change.TABLE, waits[0]) if waits else None,
        tuple(Cells(UnitTime.TABLE, part) for part in parts if abs(part.saved_us) > least_us),
    )


def _counted(tables: FigureTables, reasons: Iterable[Reason]) -> dict[tuple[str, str], Row]:
    """Returns the rows of the metrics that reasons rest on, of each variant's longest kernel, by variant and metric.

    Those of which L1 had fewer are left out.
    """
    names = {name for reason in reasons for name in reason.rests_on.split(",")} | set(_REQUESTS.values())
    return {
        (str(row["variant"]), str(row["metric"])): row
        for row, is_less in _of_longest(tables, names)
        if not is_less
    }


def _fewer_wavefronts(tables: FigureTables) -> dict[str, tuple[Cells, Cells]]:
    """Returns the wavefronts of shared memory by variant, where L1 had fewer than the addresses tell: both counts."""
    rows = list(_of_longest(tables, _WAVEFRONTS))
    counts = {(str(row["variant"]), row["metric"]): Cells("metrics", row) for row, _ in rows}
    fewer = {str(row["variant"]) for row, is_less in rows if is_less}
    told, of_l1 = _WAVEFRONTS
    return {name: (counts[name, told], counts[name, of_l1]) for name in fewer if (name, of_l1) in counts}


def _of_longest(tables: FigureTables, names: Collection[str]) -> Iterator[tuple[Row, bool]]:
    """Yields the metrics of each variant's longest kernel, the first last, and whether `counters` has less."""
    counters = {str(row["variant"]): row for row in as_rows(tables.counters(sorted(names)))}
    metrics = _profiled(tables, tables.metrics)
    kept = metrics[metrics["metric"].isin(names) & (metrics["tool"] == "ncu") & metrics["value"].notna()]
    for row in reversed(as_rows(kept)):
        own = counters.get(str(row["variant"]), {})
        if row["kernel"] == own.get("kernel"):
            yield row, number(own, str(row["metric"])) < number(row, "value")


def _moved(pair: Sequence[Row]) -> float:
    """Returns by which factor a metric changes, as a logarithm."""
    least, most = sorted(number(row, "value") for row in pair)
    return math.log(most / least) if least > 0 else math.inf if most > 0 else 0.0


def _tells(pair: Sequence[Row], counted: Mapping[tuple[str, str], Row]) -> tuple[bool, float, float]:
    """Returns how much a count tells of a step: whether it changed, in how many accesses, and how much."""
    before, _ = pair
    requests = counted.get((text(before, "variant"), _REQUESTS.get(text(before, "metric"), "")), {})
    return _moved(pair) >= LEAST_MOVED, number(requests, "value") if requests else 0.0, _moved(pair)


def _step(row: rows.Step, changes: Sequence[Change]) -> Step:
    argued = [change for change in changes if change.role in ("cause", "cost")]
    return Step(
        Cells(rows.Step.TABLE, row),
        tuple(Cells(Change.TABLE, change) for change in _headline(changes)),
        tuple(
            Cells(Change.TABLE, change)
            for role in ("cause", "cost")
            for change in argued
            if change.role == role
        ),
        tuple(Cells(Change.TABLE, change) for change in changes if change not in argued),
    )


def _headline(changes: Sequence[Change]) -> list[Change]:
    """Returns the first cause, and the first one of another kind: what was changed, and the wait that it saves."""
    causes = [change for change in changes if change.role == "cause"]
    causes = [cause for cause in causes if cause.quantity not in _RATES] or causes
    if traced := [cause for cause in causes if cause.kind == "access"]:
        return ([cause for cause in traced if cause.unit.endswith(("/request", "ratio"))] or traced)[:2]
    sectors = [cause for cause in causes if cause.kind == "sectors"]
    if sectors == causes[: len(sectors)] and len(sectors) > 1:
        return sectors[:2]
    states = [cause for cause in causes if cause.kind == "state"]
    return [*causes[:1], *(state for state in states if state != causes[0])][:2]


def _turned(here: Verdict | None, over: Iterable[Verdict]) -> list[Verdict]:
    """Returns the verdicts at other cases that differ from the one at the headline case, the largest first.

    At cases where it is faster or slower: the opposite of the headline's, or both if it is neither there.
    """
    if here is None:
        return []
    others = {"FASTER", "SLOWER"} - {here.word}
    turned = [
        verdict for verdict in over if verdict.word in others and _apart(verdict) > math.log1p(_LEAST_TURNED)
    ]
    return sorted(turned, key=_apart, reverse=True)


def _apart(verdict: Verdict) -> float:
    return abs(math.log(verdict.speedup))
