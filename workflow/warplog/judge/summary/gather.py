"""Makes the rows of a summary from the tables of a run."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from warplog.analysis.verdicts import FASTER, SLOWER, Timed, judge, timed
from warplog.core.columns import number, text
from warplog.core.numbers import rate_unit
from warplog.judge.summary.rows import DISAGREE, FamilyResult, Move, Summary, Trouble, VariantResult
from warplog.records import remarks
from warplog.records.campaign import Campaign
from warplog.records.fields import Origin
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables


def gather(
    families: Sequence[FigureTables],
    troubles: Iterable[Trouble],
    former: Summary | None,
    campaign: Campaign,
    origin: Origin,
) -> Summary:
    """Returns the summary of a run.

    Args:
        families: the tables of each family, in the order to show.
        troubles: what the records say is not ok.
        former: the summary of the previous evaluation, if there is one.
        origin: that of the records.
    """
    comparable = former if former and former.gpu == campaign.gpu else None
    before = {family.family: family for family in comparable.families} if comparable else {}
    results = tuple(_family(tables, before.get(tables.family)) for tables in families)
    all_troubles = list(troubles)
    named = {(trouble.family, trouble.variant) for trouble in all_troubles}
    for tables in families:
        all_troubles += (
            Trouble(tables.family, str(row["variant"]), str(row["status"]), "", remarks.of_row(row))
            for row in as_rows(tables.variants)
            if row["status"] != "ok" and (tables.family, row["variant"]) not in named
        )
        all_troubles += _disagreements(tables)
    return Summary(
        campaign=campaign.campaign,
        gpu=campaign.gpu,
        gpu_name=campaign.gpu_name,
        origin=origin,
        families=results,
        troubles=tuple(all_troubles),
    )


def _family(tables: FigureTables, former: FamilyResult | None) -> FamilyResult:
    quantity = tables.quantity()
    rows = as_rows(tables.ladder(tables.case))
    own = as_rows(tables.variants)
    statuses = {str(row["variant"]): (str(row["status"]), remarks.of_row(row)) for row in own}
    has_rate = quantity.column != "median_us"
    unit, factor = rate_unit(quantity.unit, (number(row, quantity.column) for row in rows))
    variants = tuple(
        VariantResult(
            str(row["variant"]),
            *statuses[str(row["variant"])],
            _number(number(row, "median_us")),
            _number(number(row, quantity.column) * factor) if has_rate else None,
            _number(number(row, "ratio_to_baseline")),
            text(row, "board"),
        )
        for row in rows
    )
    baseline = next((str(row["variant"]) for row in own if row["is_baseline"]), "")
    case = tables.case
    times = {str(row["variant"]): timed(row) for row in rows}
    moved = _moved(times, variants, former) if former and former.case == case else ()
    title = str(own[0]["title"])
    best = next((str(row["variant"]) for row in as_rows(tables.places) if row["fastest"] == "best"), "")
    return FamilyResult(tables.family, title, case, baseline, unit if has_rate else "", variants, moved, best)


def _moved(
    times: Mapping[str, Timed | None], variants: Iterable[VariantResult], former: FamilyResult
) -> tuple[Move, ...]:
    """Returns the variants whose time on the same board is FASTER or SLOWER than before."""
    before = {variant.variant: variant for variant in former.variants}
    moves = []
    for now in variants:
        was, time = before.get(now.variant), times[now.variant]
        if was is None or was.board != now.board or not was.median_us or time is None:
            continue
        if judge(replace(time, us=was.median_us), time).word in (FASTER, SLOWER):
            moves.append(Move(now.variant, was.median_us, time.us))
    return tuple(moves)


def _disagreements(tables: FigureTables) -> list[Trouble]:
    """Returns the rows whose times and those of a profiler differ."""
    return [
        Trouble(
            tables.family,
            str(row["variant"]),
            DISAGREE,
            "time",
            remarks.agreement_words(remarks.read_notes(row.get("agreement_notes"))),
            "",
            str(row["case"]),
        )
        for row in as_rows(tables.measurements)
        if row.get("agreement") == DISAGREE
    ]


def _number(value: float) -> float | None:
    return value if value > 0 and math.isfinite(value) else None
