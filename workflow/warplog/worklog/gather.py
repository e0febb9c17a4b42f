"""Builds the worklog page of a family from its tables, the campaign's record and its figures."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warplog.catalog.family import Family, Variant
from warplog.core.text import Table
from warplog.tables import published
from warplog.tables.view import FigureTables
from warplog.worklog.asides import Row, claims_table, number, records
from warplog.worklog.ladder import Ladder
from warplog.worklog.page import Page, Picture, Summary
from warplog.worklog.step_tables import FACTOR_NOTES, STATE_NOTES

_ORDER = ("warp_stalls", "roofline", "throughput_vs_size", "occupancy", "bank_conflicts", "timeline")
# The ladder opens the page; claims are shown in tables beside the variants.
_ELSEWHERE = ("ladder", "claims")
_METHOD = (
    "Every variant was checked against a float64 reference before it was timed.",
    "A time is the median of launches with a cold L2: before each launch the cache is filled with unrelated,"
    " unmodified lines. The interval between two events with nothing between them is subtracted.",
)
_COUNTERS = (
    "Counters come from separate runs under Nsight Compute with flushed caches and without its clock control;"
    " they describe the longest kernel at {case}."
)
_NO_COUNTERS = "Nsight Systems traced separate runs; counters are not captured because copies have none."
_PAGE = 100  # width in characters
_PUBLISHED = "Published results are quoted from their sources; their GPU, compiler and size may differ."


def gather(
    family: Family,
    tables: FigureTables,
    campaign: Mapping[str, Any],
    pictures: Sequence[Path],
    captions: Path,
) -> Page:
    """Returns the worklog page of a family.

    Args:
        family: The family.
        tables: Its tables.
        campaign: The campaign's record.
        pictures: The PNGs of the family's figures.
        captions: The folder with `<figure>.rst`.

    Raises:
        WarplogError: if no excerpt can be taken from a source.
    """
    device = campaign.get("device", {})
    major, minor = device.get("compute_capability") or (0, 0)
    ladder = Ladder(family, tables, (int(major), int(minor)))
    drawn = {path.stem: _picture(path, captions, family.name) for path in pictures}
    order = [*(n for n in _ORDER if n in drawn), *sorted(set(drawn) - {*_ELSEWHERE, *_ORDER})]
    counters = _COUNTERS.format(case=tables.profiled_case) if ladder.counted else _NO_COUNTERS
    has_published = any(variant.published for variant in family.variants)
    return Page(
        family=family.name,
        title=family.title,
        summary=family.summary,
        facts=(*_facts(tables, campaign), *(("All variants", remark) for remark in ladder.shared)),
        lead=_lead(ladder),
        method=(*_METHOD, counters, *([_PUBLISHED] if has_published else [])),
        ladder=drawn.get("ladder"),
        notes=(*FACTOR_NOTES, *STATE_NOTES) if ladder.counted else (),
        rungs=ladder.rungs(),
        waiting=_waiting(ladder),
        summaries=_summaries(ladder),
        pictures=tuple(drawn[name] for name in order),
    )


def _facts(tables: FigureTables, campaign: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    device, tools = campaign.get("device", {}), campaign.get("tools", {})
    origins = " and ".join(sorted(set(tables.measurements["origin"].dropna().astype(str)))) or "unknown"
    gpu = [str(campaign.get("gpu_name", "unknown"))]
    gpu += [f"{device['sms']} SMs"] if device.get("sms") else []
    gpu += [f"driver {campaign['driver']}"] if campaign.get("driver") else []
    gpu += [f"CUDA {campaign['cuda']}"] if campaign.get("cuda") else []
    clocks = tables.measurements.loc[tables.measurements["case"] == tables.case, "sm_mhz"].dropna()
    spread = f"; SM at {clocks.min():.0f} to {clocks.max():.0f} MHz at {tables.case}" if len(clocks) else ""
    shown = [f"{name} {tools[name]}" for name in ("nvcc", "ncu", "nsys") if tools.get(name)]
    found = {
        "GPU": ", ".join(gpu),
        "Campaign": f"{campaign.get('campaign', 'unknown')}, {origins}",
        "Started": str(campaign.get("started", "")).replace("T", " ").replace("Z", " UTC"),
        "Commit": str(campaign.get("commit", ""))[:12],
        "Clocks": f"{campaign.get('clocks', 'unknown')}{spread}",
        "Tools": ", ".join(shown),
    }
    return tuple((what, text) for what, text in found.items() if text)


def _lead(ladder: Ladder) -> tuple[str, ...]:
    """Describes the fastest rung, the rung that its steps start from, and the extreme steps between them."""
    good = {name: row for name, row in ladder.rows.items() if row["status"] == "ok" and row["median_us"] > 0}
    own = {name: row for name, row in good.items() if not row["is_baseline"]}
    if not own:
        return ("No variant of this campaign has a time at the headline case.",)
    best = min(own, key=lambda name: float(own[name]["median_us"]))
    way = [best]
    while (parent := str(own[way[-1]]["parent"] or "")) in own and parent not in way:
        way.append(parent)
    lead = [f"The fastest variant is {best} with {ladder.speed(own[best])}{_of_baseline(own[best])}."]
    if len(way) > 1:
        times = own[way[-1]]["median_us"] / own[best]["median_us"]
        lead.append(
            f"It is {times:.3g}x as fast as {way[-1]} ({ladder.speed(own[way[-1]])}),"
            f" {len(way) - 1} step{'s' if len(way) > 2 else ''} earlier on the ladder."
        )
    ratios = {name: ladder.steps[name].ratio for name in way[:-1]}
    if len(ratios) > 1:
        most, least = max(ratios, key=ratios.__getitem__), min(ratios, key=ratios.__getitem__)
        last = f", {least} the smallest" if ratios[least] >= 1 else f"; {least} is slower than its parent"
        lead.append(
            f"Of these steps, {most} brings the largest speed-up ({ratios[most]:.3g}x over its parent)"
            f"{last} ({ratios[least]:.3g}x)."
        )
    bad = [name for name, row in ladder.rows.items() if row["status"] != "ok"]
    lead += [f"Variants without a time: {', '.join(bad)}."] if bad else []
    return tuple(lead)


def _of_baseline(row: Row) -> str:
    ratio = number(row.get("ratio_to_baseline"))
    return "" if math.isnan(ratio) else f", {published.share(ratio)} % of {row['baseline']}"


def _waiting(ladder: Ladder) -> Table | None:
    absent = [v for v in ladder.family.variants if v.draft and v.name not in ladder.rows]
    lines = tuple((v.name, v.parent or "", v.idea, _published(v)) for v in absent)
    return Table(("variant", "based on", "idea", "published results"), lines) if lines else None


def _published(variant: Variant) -> str:
    results = (
        f"{published.speed(p.value)} {p.unit}, {p.gpu}{f', at {p.case}' if p.case else ''} ({p.source})"
        for p in variant.published
    )
    return "; ".join(results)


def _summaries(ladder: Ladder) -> tuple[Summary, ...]:
    column, unit, factor = ladder.unit

    def speed(row: Row) -> str:
        return published.speed(number(row.get(column)) * factor, str(row["status"]))

    def share(row: Row) -> str:
        return published.share(number(row.get("ratio_to_baseline")))

    found = [Summary(f"{unit} by {ladder.tables.variants['size_label'].iloc[0]}", _by_case(ladder, speed))]
    if ladder.family.baseline in ladder.rows:
        found.append(Summary(f"Percent of {ladder.family.baseline}", _by_case(ladder, share)))
    if ladder.counted:
        found.append(Summary(f"Resources at {ladder.tables.profiled_case}", _resources(ladder)))
    claims = claims_table(ladder.claimed.get("", ()))
    return (*found, *([Summary("Claims about the whole ladder", claims)] if claims else ()))


def _by_case(ladder: Ladder, cell: Callable[[Row], str]) -> Table:
    """Returns a table with one row per variant and one column per timed case, in order of size.

    If that is wider than a page, rows and columns are exchanged, provided that the result is narrower.
    """
    rows = records(ladder.tables.measurements.sort_values("size", kind="stable"))
    cases = list(dict.fromkeys(str(row["case"]) for row in rows))
    at = {(str(row["variant"]), str(row["case"])): row for row in rows}
    blank: Row = {"status": "missing"}
    lines = tuple((v, *(cell(at.get((v, case), blank)) for case in cases)) for v in ladder.rows)
    table = Table(("variant", *cases), lines, frozenset(range(1, len(cases) + 1)))
    turned = list(zip(*(table.titles, *lines), strict=True))
    other = Table(("case", *turned[0][1:]), tuple(turned[1:]), frozenset(range(1, len(lines) + 1)))
    return min(table, other, key=_width) if _width(table) > _PAGE else table


def _width(table: Table) -> int:
    """Returns the width in characters, including the space between columns."""
    return sum(max(map(len, column)) + 3 for column in zip(table.titles, *table.rows, strict=True))


def _resources(ladder: Ladder) -> Table:
    titles = (
        "variant",
        "registers",
        "threads per block",
        "shared bytes per block",
        "spill bytes",
        "theoretical occupancy %",
        "achieved occupancy %",
    )
    lines = []
    for name, row in ladder.rows.items():
        launch, bound = ladder.launches[name], ladder.bounds[name]
        counts = [launch[m] for m in ("registers_per_thread", "block_threads", "shared_bytes_per_block")]
        cells = [_count(value) for value in (*counts, number(row.get("spill_bytes")))]
        cells += [_one(bound.theoretical_pct), _one(bound.achieved_pct)]
        lines.append((name, *cells))
    notes = ("Shared memory includes the part that the driver reserves.",)
    return Table(titles, tuple(lines), frozenset(range(1, len(titles))), notes)


def _count(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0f}"


def _one(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.1f}"


def _picture(path: Path, captions: Path, family: str) -> Picture:
    """Returns the figure with the caption of its .rst file as plain text."""
    source = captions / f"{path.stem}.rst"
    text = source.read_text(encoding="utf-8") if source.is_file() else ""
    lines = [line for line in text.splitlines() if not line.startswith("..")]
    caption = re.sub(r"\*([^*]+)\*", r"\1", " ".join(" ".join(lines).split())).replace("|family|", family)
    return Picture(path.stem, path.stem.replace("_", " ").capitalize(), caption, path)
