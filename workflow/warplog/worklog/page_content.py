"""Selects what a family's worklog page shows: rows of its tables, the campaign's record and its figures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from warplog.catalog.family import Family
from warplog.core.columns import Row, number, text
from warplog.core.numbers import rate_unit
from warplog.figures import OF_VARIANT
from warplog.figures.captions import caption
from warplog.figures.shared.highlight import of_family
from warplog.records.campaign import Campaign
from warplog.records.remarks import own_limits
from warplog.tables import conclusions, regimes
from warplog.tables.conclusions import Ceiling, Place, Verdict
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.worklog.cells import Cells
from warplog.worklog.page import Draft, Facts, Lead, Method, Page, PathStep, Picture, Section, Waterfall
from warplog.worklog.pictures import charts
from warplog.worklog.sections import Rows

_ORDER = (
    "warp_stalls",
    "roofline",
    "memory_chart",
    "throughput_vs_size",
    "occupancy",
    "bank_conflicts",
    "timeline",
)
_TITLES = {  # where the name of a figure does not say what it shows
    "chains_x_warps": "Chains against warps",
    "hierarchy": "Levels of memory",
    "lanes_over_banks": "Lanes over banks of shared memory",
    "lanes_over_sectors": "Lanes over sectors of memory",
    "latency_vs_footprint": "Latency by size of the ring",
    "error_vs_speed": "Error and speed by type",
    "owners": "Who writes which element",
    "power_trace": "Clock, power and speed over time",
    "swim_lanes": "Warps of one SM over time",
    "throughput_vs_size": "Throughput by problem size",
    "tile_order": "Order of the blocks' tiles",
    "timeline": "Trace of launches",
}
# The ladder opens the page; claims are shown in tables beside the variants.
_ELSEWHERE = ("ladder", "claims")
_LONG_NOISE = 1.02
_LEAST_PATH = 3


def gather(
    family: Family,
    tables: FigureTables,
    campaign: Campaign,
    pictures: Sequence[Path],
    captions: Path,
    machine_code: Mapping[str, Path] | None = None,
) -> Page:
    """Returns the worklog page of a family.

    Args:
        family: The family.
        tables: Its tables, with those of the conclusions.
        campaign: The campaign's record.
        pictures: The PNGs of the family's figures.
        captions: The folder with `<figure>.rst`.
        machine_code: The disassembly of each variant's library, by variant, where it was kept.

    Raises:
        WarplogError: if a source cannot be read.
    """
    rows = Rows(family, tables, machine_code or {})
    every = {path.stem: _picture(path, captions, tables) for path in pictures}
    drawn = {name: picture for name, picture in every.items() if OF_VARIANT not in name}
    order = [
        *(n for n in _ORDER if n in drawn),
        *sorted(set(drawn) - {*_ELSEWHERE, *_ORDER, *family.figures}),
    ]
    sections = tuple(
        replace(section, pictures=tuple(p for n, p in every.items() if n.endswith(OF_VARIANT + section.name)))
        for section in rows.sections()
    )
    path = sorted((place for place in rows.places.values() if place.step > 0), key=lambda place: place.step)
    by_size = as_rows(tables.measurements.sort_values("size", kind="stable"))
    return Page(
        family=family.name,
        title=family.title,
        summary=family.summary,
        case=tables.case,
        profiled_case=tables.profiled_case,
        baseline=family.baseline if family.baseline in rows.places else "",
        speed=tables.quantity().column,
        size_label=str(tables.variants["size_label"].iloc[0]),
        facts=_facts(rows, campaign),
        lead=_lead(rows, path),
        method=_method(rows),
        sections=sections,
        claims=tuple(Cells("claims", claim) for claim in rows.claims.get("", ())),
        ceilings=tuple(
            Cells(Ceiling.TABLE, row) for row in conclusions.rows(tables.ceilings, Ceiling, family.name)
        ),
        timed=_timed(by_size),
        not_run=_not_run(by_size),
        states=_states(sections),
        key=tuple(drawn[name] for name in family.figures if name in drawn),
        ladder=drawn.get("ladder"),
        pictures=tuple(drawn[name] for name in order),
        drafts=tuple(
            Draft(
                v.name,
                v.parent or "",
                v.idea,
                tuple(f"{p.value:g} {p.unit}, {p.gpu} ({p.source})" for p in v.published),
            )
            for v in family.variants
            if v.draft and v.name not in rows.places
        ),
        waterfall=_waterfall(rows, path),
        chart=_chart(rows, by_size, path),
    )


def _picture(path: Path, captions: Path, tables: FigureTables) -> Picture:
    """Returns the figure with the sentences of its .rst file that apply; those of variants have the note in them."""
    name, of_variant, _ = path.stem.partition(OF_VARIANT)
    title = _TITLES.get(name, name.replace("_", " ").capitalize())
    return Picture(path.stem, title, "" if of_variant else caption(captions / f"{name}.rst", tables), path)


def _chart(rows: Rows, by_size: Sequence[Row], path: Sequence[Place]) -> str:
    """Returns the specification of the interactive charts."""
    tables, quantity = rows.tables, rows.tables.quantity()
    unit, factor = rate_unit(quantity.unit, (number(row, quantity.column) for row in by_size))
    speed = quantity.column, unit, factor
    values = charts.points(by_size, list(rows.places), [place.variant for place in path], speed)
    label = str(tables.variants["size_label"].iloc[0])
    return charts.chart(values, tables.case, rows.family.baseline, unit, label, of_family(tables))


def _facts(rows: Rows, campaign: Campaign) -> Facts:
    tables = rows.tables
    clocked = [row for row in rows.measured.values() if number(row, "sm_mhz") > 0]
    ends = (
        [Cells("measurements", end(clocked, key=lambda row: number(row, "sm_mhz"))) for end in (min, max)]
        if clocked
        else [None, None]
    )
    gpu = next(iter(as_rows(tables.gpus)), None)
    return Facts(
        gpu=Cells("gpus", gpu) if gpu else None,
        gpu_name=campaign.gpu_name,
        driver=campaign.driver,
        cuda=campaign.cuda,
        campaign=campaign.campaign,
        origins=tuple(sorted(set(tables.measurements["origin"].dropna().astype(str)))),
        started=campaign.started,
        commits=campaign.commits,
        clocks=campaign.clocks,
        peaks=tables.peaks_text(),
        tools=tuple((n, version) for n in ("nvcc", "ncu", "nsys") if (version := campaign.tools.get(n))),
        slowest=ends[0],
        fastest=ends[1],
        shared_remarks=rows.shared_remarks,
    )


def _lead(rows: Rows, path: Sequence[Place]) -> Lead:
    best = next((place for place in rows.places.values() if place.fastest == "best"), None)
    if best is None:
        return Lead(None)
    total = rows.verdicts.get((best.variant, path[0].variant), ()) if len(path) > 1 else ()
    here = next((verdict for verdict in total if verdict.case == rows.tables.case), None)
    return Lead(
        Cells(Place.TABLE, best),
        tuple(place.variant for place in rows.places.values() if place.fastest == "tied"),
        Cells(Verdict.TABLE, here) if here else None,
        Cells(Place.TABLE, path[0]) if path else None,
        len(path) - 1,
        _longest(rows, best),
    )


def _longest(rows: Rows, best: Place) -> Cells | None:
    """Returns the fastest variant in a long run, if a long run is slower than the fastest one at rest."""
    if math.isnan(best.long_speed):
        return None

    def speed(place: Place) -> float:
        value = place.speed if math.isnan(place.long_speed) else place.long_speed
        return -value if rows.tables.quantity().column == "median_us" else value

    own = [
        place for place in rows.places.values() if place.variant != rows.family.baseline and place.speed > 0
    ]
    first = max(own, key=speed)
    return Cells(Place.TABLE, first if abs(speed(first)) > _LONG_NOISE * abs(speed(best)) else best)


def _method(rows: Rows) -> Method:
    family, tables = rows.family, rows.tables
    timed = [row for row in rows.measured.values() if number(row, "processes") > 1]
    ends = [end(timed, key=lambda row: number(row, "processes")) for end in (min, max)] if timed else []
    metrics = tables.metrics
    if "ncu" in family.measuring.profilers:
        counters = "ncu" if (metrics["value"].notna() & (metrics["tool"] == "ncu")).any() else "none"
    else:
        counters = "serial" if "overlap" in family.figures else "copies"
    runs = filter(None, map(regimes.long_run, as_rows(tables.measurements)))
    return Method(
        is_exact=not family.amount(family.work.flops, family.cases[family.headline_case], 1),
        is_host=family.measuring.timing == "host",
        is_at_rest=regimes.at_rest(rows.measured.values()),
        processes=tuple(Cells("measurements", row) for row in ends),
        sizes=_sizes(family, tables.case),
        counters=counters,
        regimes=tuple(sorted({run.regime.replace(" ", "_") for run in runs})),
        traced=tuple(tables.traced_cases),
    )


def _sizes(family: Family, case: str) -> tuple[tuple[str, str], ...]:
    """Returns the dimensions that the name of the headline case stands for, if it is one size; none if it says it."""
    values = family.cases[case].values if case in family.cases else {}
    sizes = {name: value for name, value in values.items() if name.isupper() or name == "n"}
    if not sizes or len(set(sizes.values())) > 1:
        return ()
    if "n" in sizes and (
        case == f"{sizes['n']:.0f}" or family.value(family.work.size, family.cases[case]) != sizes["n"]
    ):
        return ()  # the name says it, or is about bytes
    return tuple((name, f"{value:.0f}") for name, value in sizes.items())


def _timed(by_size: Sequence[Row]) -> dict[str, dict[str, Cells]]:
    by_case: dict[str, dict[str, Cells]] = {}
    for row in by_size:
        by_case.setdefault(str(row["case"]), {})[str(row["variant"])] = Cells("measurements", row)
    return by_case


def _not_run(rows: Sequence[Row]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns the sizes that variants exclude themselves, with their names."""
    limits: dict[str, dict[str, None]] = {}
    for row in rows:
        if exceeded := own_limits(text(row, "own_limits")):
            limit = " and ".join(f"{name} <= {most}" for name, most in exceeded.items())
            limits.setdefault(limit, {})[str(row["variant"])] = None
    return tuple((limit, tuple(names)) for limit, names in limits.items())


def _states(sections: Sequence[Section]) -> frozenset[str]:
    """Returns the warp states that the page names."""
    changes = [change for s in sections if s.step for change in (*s.step.argument, *s.step.details)]
    states = {str(change.quantity) for change in changes if change.kind == "state"}
    states |= {str(s.bound.stall) for s in sections if s.bound}
    return frozenset(states | {str(line.stall) for s in sections for line in s.lines} - {""})


def _waterfall(rows: Rows, path: Sequence[Place]) -> Waterfall | None:
    if len(path) < _LEAST_PATH:
        return None
    rates = {name: 1 / us for name, row in rows.measured.items() if (us := number(row, "median_us")) > 0}
    baseline = rows.family.baseline if rows.family.baseline in rates else ""
    shown = [*(place.variant for place in path), *([baseline] if baseline else [])]
    logs = [math.log10(rates[name]) for name in shown]
    spread = max(logs) - min(logs)
    low, high = min(logs) - 0.04 * spread, max(logs) + 0.02 * spread

    def place(rate: float) -> float:
        return (math.log10(rate) - low) / (high - low)

    names = [place.variant for place in path]
    detours = {
        name: tuple(Cells(Place.TABLE, o) for o in rows.places.values() if o.step == 0 and o.previous == name)
        for name in names
    }
    steps = [
        PathStep(
            Cells(Place.TABLE, step), place(rates[before]), place(rates[step.variant]), detours[step.variant]
        )
        for before, step in zip((names[0], *names), path, strict=False)
    ]
    relative = baseline or names[-1]
    marks = [digit * 10.0**power for power in range(-3, 3) for digit in (1, 2, 5)]
    ticks = [(place(mark * rates[relative] / 100), mark) for mark in marks]
    ticks = [tick for tick in ticks if 0 <= tick[0] <= 1]
    ticks = ticks if len(ticks) < 9 else [tick for tick in ticks if f"{tick[1]:e}".startswith("1")]
    return Waterfall(tuple(steps), place(rates[baseline]) if baseline else None, relative, tuple(ticks))
