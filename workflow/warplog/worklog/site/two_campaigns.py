"""Two campaigns side by side: the same variants on two GPUs, as measured and relative to what the GPUs offer.

Speeds are compared three ways: as measured; per SM and clock, which is what a kernel bound by its SMs keeps; and per
byte/s of device memory, which is what a kernel bound by DRAM keeps. A ratio near 1 in one of the last two columns says
which of them the kernel scales with. The clock is the one at which each row was timed, or the GPU's maximum.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warplog.analysis import verdicts
from warplog.catalog.claims import NOT_MEASURABLE, verdict_words
from warplog.core.columns import Row, number, text
from warplog.core.numbers import rate_unit, with_unit
from warplog.core.text import Table
from warplog.tables import published
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.worklog.cells import shown

Names = tuple[str, str]


@dataclass(frozen=True)
class TwoCampaigns:
    """What a family's page says about two campaigns.

    Attributes:
        speeds: Both speeds of each variant at the headline case, and their ratio as measured and normalised.
        steps: Steps that are faster than their parent in one campaign and slower in the other; None if there are none.
        claims: Claims with another verdict, of those judged in both; None if there are none.
        facts: What differs, one sentence each.
        fastest: The fastest variant besides the baseline in either campaign; "" if none has a time in both.
        ratio: Speed of the second one's fastest variant over that of the first; NaN without one.
    """

    speeds: Table
    steps: Table | None
    claims: Table | None
    facts: tuple[str, ...]
    fastest: Names
    ratio: float


def side_by_side(ours: FigureTables, theirs: FigureTables, names: Names) -> TwoCampaigns:
    """Returns the comparison of a family in two campaigns, called `names`, at the headline case of the first."""
    first, second = (_rows(tables, ours.case) for tables in (ours, theirs))
    both = [name for name in first if name in second]
    steps, claims = _steps(first, second, both, names), _claims(ours, theirs, names)
    own = [name for name in both if not first[name]["is_baseline"]]
    fastest, ratio = ("", ""), math.nan
    if own:
        fastest = (_ranked(first, own)[0], _ranked(second, own)[0])
        ratio = number(first[fastest[0]], "median_us") / number(second[fastest[1]], "median_us")
    speeds = _speeds(ours, theirs, both, names)
    facts = _facts(fastest, sorted({*first, *second} - set(both)), names, steps, claims)
    return TwoCampaigns(speeds, steps, claims, facts, fastest, ratio)


@dataclass(frozen=True)
class Grid:
    """A table as the site shows it: its cells are texts, or numbers that know their places; the rest as in `Table`."""

    titles: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    numeric: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


Section = tuple[str, Sequence[str], Table | Grid]  # heading, address of the first cell of each row, table


def overview(families: Mapping[str, TwoCampaigns], names: Names) -> Section:
    """Returns what differs in each family that has times in both campaigns, by its heading."""
    rows = tuple(
        (
            heading,
            *family.fastest,
            _times(family.ratio),
            *(str(len(table.rows) if table else 0) for table in (family.steps, family.claims)),
        )
        for heading, family in families.items()
        if family.fastest[0]
    )
    titles = (
        "family",
        f"fastest on {names[0]}",
        f"fastest on {names[1]}",
        "ratio of their speeds",
        "steps that turn",
        "claims with another verdict",
    )
    notes = ("A step turns if it is faster than its parent on one GPU and slower on the other.",)
    return "What differs", (), Table(titles, rows, frozenset({3, 4, 5}), notes)


def sections(heading: str, family: TwoCampaigns, address: str) -> list[Section]:
    """Returns what a page shows of a family in two campaigns; `address` is the pattern of a variant's page, or ""."""
    links = [address.format(variant=row[0]) for row in family.speeds.rows]
    first: Section = (heading, links, replace(family.speeds, notes=family.facts))
    return [first, *(("", (), table) for table in (family.steps, family.claims) if table)]


def lead(names: Names) -> str:
    """Returns how to read the ratios of `sections`."""
    return (
        f"Ratios are speeds on {names[1]} over speeds on {names[0]}: as measured, divided by the ratio of SMs times"
        " clock, and divided by the ratio of DRAM bandwidths. Near 1, the kernel scales with that resource."
    )


def _rows(tables: FigureTables, case: str) -> dict[str, Row]:
    """Returns the rows with a time, by variant in ladder order."""
    rows = as_rows(tables.ladder(case))
    return {
        str(row["variant"]): row for row in rows if row["status"] == "ok" and number(row, "median_us") > 0
    }


def _speeds(ours: FigureTables, theirs: FigureTables, both: Sequence[str], names: Names) -> Table:
    first, second = (_rows(tables, ours.case) for tables in (ours, theirs))
    quantity = ours.quantity()
    rates = [number(rows[name], quantity.column) for rows in (first, second) for name in both]
    unit, factor = rate_unit(quantity.unit, rates)
    places = [{name: place for place, name in enumerate(_ranked(rows, both), 1)} for rows in (first, second)]
    lines = []
    for name in both:
        pair = first[name], second[name]
        ratio = number(pair[0], "median_us") / number(pair[1], "median_us")
        cells = [published.speed(number(row, quantity.column) * factor) for row in pair]
        compute = ratio / (_compute(theirs, pair[1]) / _compute(ours, pair[0]))
        memory = ratio / (theirs.peak("dram_gbytes_per_s_peak") / ours.peak("dram_gbytes_per_s_peak"))
        moved = " → ".join(str(place[name]) for place in places)
        lines.append((name, *cells, _times(ratio), _times(compute), _times(memory), moved))
    where = (f"{unit}, {names[0]}", f"{unit}, {names[1]}")
    titles = ("variant", *where, "ratio", "per SM and clock", "per DRAM bandwidth", "place")
    return Table(titles, tuple(lines), frozenset({1, 2, 3, 4, 5}))


def _compute(tables: FigureTables, row: Row) -> float:
    """Returns SMs times SM clock in MHz while the row was timed; NaN if one is unknown."""
    clock = number(row, "sm_mhz")
    return tables.peak("sms") * (tables.peak("max_sm_mhz") if math.isnan(clock) else clock)


def _steps(
    first: Mapping[str, Row], second: Mapping[str, Row], both: Sequence[str], names: Names
) -> Table | None:
    lines = []
    for name in both:
        parent = str(first[name]["parent"] or "")
        if parent not in both or any(verdicts.tied(rows[name], rows[parent]) for rows in (first, second)):
            continue
        ratios = [
            number(rows[parent], "median_us") / number(rows[name], "median_us") for rows in (first, second)
        ]
        if (ratios[0] > 1) != (ratios[1] > 1):
            lines.append((name, parent, *map(_times, ratios)))
    titles = ("step", "over", f"on {names[0]}", f"on {names[1]}")
    return Table(titles, tuple(lines), frozenset({2, 3})) if lines else None


def _claims(ours: FigureTables, theirs: FigureTables, names: Names) -> Table | None:
    first, second = (
        {str(row["id"]): row for row in as_rows(tables.claims) if row["verdict"] != NOT_MEASURABLE}
        for tables in (ours, theirs)
    )
    lines = tuple(
        (f"{name}: {row['claim']}", _verdict(row), _verdict(second[name]))
        for name, row in first.items()
        if name in second and row["verdict"] != second[name]["verdict"]
    )
    return Table(("claim", f"on {names[0]}", f"on {names[1]}"), lines) if lines else None


def _verdict(claim: Row) -> str:
    """Returns the verdict on a claim and the number that it is based on: "refuted, 1.02 x"."""
    measured = number(claim, "measured")
    words = verdict_words(text(claim, "verdict"), measured, text(claim, "about"))
    return ", ".join(filter(None, (words, with_unit(measured, text(claim, "unit")))))


def _facts(
    fastest: Names, lost: Sequence[str], names: Names, steps: Table | None, claims: Table | None
) -> tuple[str, ...]:
    """Returns what differs; `lost` are the variants with a time in one campaign only."""
    first, second = fastest
    if not first:
        return ("No variant has a time in both campaigns.",)
    which = f"{first} on both" if first == second else f"{first} on {names[0]} and {second} on {names[1]}"
    facts = [f"The fastest variant is {which}."]
    if steps:
        count = len(steps.rows)
        facts.append(
            f"{count} step{'s are' if count > 1 else ' is'} faster than the parent on one GPU and slower on the other."
        )
    if claims:
        count = len(claims.rows)
        facts.append(f"{count} claim{'s have' if count > 1 else ' has'} another verdict.")
    facts += [f"Timed in one campaign only: {', '.join(lost)}."] if lost else []
    return tuple(facts)


def _ranked(rows: Mapping[str, Row], names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: number(rows[name], "median_us"))


def _times(ratio: float) -> str:
    return shown(ratio, "x")
