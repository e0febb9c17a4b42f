"""Makes the rows of a summary from the tables of a run."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warplog.core import remarks
from warplog.core.numbers import rate_unit
from warplog.judge.samples import REST
from warplog.judge.summary.rows import DISAGREE, FamilyResult, Move, Summary, Trouble, VariantResult
from warplog.judge.verdicts import LEAST_EFFECT
from warplog.tables import regimes
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables


def gather(
    families: Sequence[FigureTables],
    troubles: Iterable[Trouble],
    former: Summary | None,
    campaign: Mapping[str, Any],
    origin: str,
) -> Summary:
    """Returns the summary of a run.

    Args:
        families: the tables of each family, in the order to show.
        troubles: what the records say is not ok.
        former: the summary of the previous evaluation, if there is one.
        campaign: the campaign record.
        origin: 'live' or 'recorded'.
    """
    comparable = former if former and former.gpu == campaign["gpu"] else None
    before = {one.family: one for one in comparable.families} if comparable else {}
    results = tuple(_family(tables, before.get(tables.family)) for tables in families)
    found = list(troubles)
    named = {(one.family, one.variant) for one in found}
    for tables in families:
        found += (one for one in _without_record(tables) if (one.family, one.variant) not in named)
        found += _disagreements(tables)
    name, gpu, gpu_name = (str(campaign[key]) for key in ("campaign", "gpu", "gpu_name"))
    return Summary(name, gpu, gpu_name, origin, results, tuple(found))


def _family(tables: FigureTables, former: FamilyResult | None) -> FamilyResult:
    quantity = tables.quantity()
    rows = as_rows(tables.ladder(tables.case))
    own = as_rows(tables.variants)
    statuses = {str(row["variant"]): (str(row["status"]), remarks.of_row(row)) for row in own}
    has_rate = quantity.column != "median_us"
    unit, factor = rate_unit(quantity.unit, (regimes.value(row, quantity.column) for row in rows))
    variants = tuple(
        VariantResult(
            str(row["variant"]),
            *statuses[str(row["variant"])],
            _number(regimes.value(row, "median_us")),
            _number(regimes.value(row, quantity.column) * factor) if has_rate else None,
            _number(regimes.value(row, "ratio_to_baseline")),
            _text(row.get("board")),
        )
        for row in rows
    )
    baseline = next((str(row["variant"]) for row in own if row["is_baseline"]), "")
    case = tables.case
    moved = _moved(variants, former, _floors(tables)) if former and former.case == case else ()
    title = str(own[0]["title"])
    return FamilyResult(tables.family, title, case, baseline, unit if has_rate else "", variants, moved)


def _floors(tables: FigureTables) -> dict[str, float]:
    """Returns the smallest relative gap that counts at the headline case, by variant."""
    rows = as_rows(tables.floors)
    mine = (row for row in rows if row["case"] == tables.case and row["regime"] == REST)
    return {str(row["variant"]): regimes.value(row, "floor") for row in mine}


def _moved(
    variants: Iterable[VariantResult], former: FamilyResult, floors: Mapping[str, float]
) -> tuple[Move, ...]:
    """Returns the variants whose time on the same board changed by more than their floor."""
    before = {one.variant: one for one in former.variants}
    found = []
    for now in variants:
        was = before.get(now.variant)
        if was is None or was.board != now.board or not was.median_us or not now.median_us:
            continue
        floor = floors.get(now.variant, math.nan)
        least = LEAST_EFFECT if math.isnan(floor) else floor
        if abs(math.log(now.median_us / was.median_us)) > math.log1p(least):
            found.append(Move(now.variant, was.median_us, now.median_us))
    return tuple(found)


def _without_record(tables: FigureTables) -> list[Trouble]:
    """Returns the variants whose rows are not ok."""
    return [
        Trouble(tables.family, str(row["variant"]), str(row["status"]), "", remarks.of_row(row))
        for row in as_rows(tables.variants)
        if row["status"] != "ok"
    ]


def _disagreements(tables: FigureTables) -> list[Trouble]:
    """Returns the rows whose times and those of a profiler differ."""
    return [
        Trouble(
            tables.family,
            str(row["variant"]),
            DISAGREE,
            "time",
            remarks.agreement_words(remarks.read(row.get("agreement_notes"))),
            "",
            str(row["case"]),
        )
        for row in as_rows(tables.measurements)
        if row.get("agreement") == DISAGREE
    ]


def _text(cell: object) -> str:
    return cell if isinstance(cell, str) else ""


def _number(value: float) -> float | None:
    return value if value > 0 and math.isfinite(value) else None
