"""Builds the worklog page of a family from its tables, the campaign's record and its figures."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from warplog.analysis import verdicts
from warplog.catalog.claims import WITHIN_NOISE
from warplog.catalog.family import Family, Variant
from warplog.core.columns import Row, number, text
from warplog.core.text import Table, listed
from warplog.figures.captions import caption
from warplog.figures.shared.highlight import of_family
from warplog.records.campaign import Campaign
from warplog.records.remarks import own_limits
from warplog.tables import activity, published, regimes
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.worklog import kinship
from warplog.worklog.asides import CLAIM_NOTE, LINE_NOTES, claims_table
from warplog.worklog.kinship import faster_ancestor
from warplog.worklog.ladder import Ladder
from warplog.worklog.pictures import charts
from warplog.worklog.rungs import Page, Picture, Rung, Summary
from warplog.worklog.sentences import times_text
from warplog.worklog.step_tables import (
    BOUND_NOTE,
    EXPECTED_NOTE,
    FACTOR_NOTES,
    KEPT_NOTE,
    STATE_NOTES,
    state_meanings,
)

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
    "power_trace": "Clock, power and speed over time",
    "swim_lanes": "Warps of one SM over time",
    "throughput_vs_size": "Throughput by problem size",
    "timeline": "Timeline of launches",
}
# The ladder opens the page; claims are shown in tables beside the variants.
_ELSEWHERE = ("ladder", "claims")
_CHECKED = "Every variant was checked against a reference, computed in float64, before it was timed."
_CHECKED_EXACTLY = "Every variant had to give exactly the expected result before it was timed."
_COLD = "A time is {median}, with a cold L2: before each launch the cache is filled with unrelated, unmodified lines."
_MEDIAN = "the median of launches"
_PROCESSES = "the median over {processes} processes of the median of each process's launches"
_CLOCKS = (
    "The SM clock is read twice: the set SM clock, which the driver has chosen, just before each launch (a launch that"
    " starts noticeably below the maximum is discarded), and the mean SM clock during the launch. The mean can be"
    " lower, since the clock generator skips cycles when the supply voltage drops, most of them in kernels that draw"
    " much power."
)
_EMPTY = " The time between two CUDA events with no work between them is subtracted."
_HOST = "A time is {median}, and includes the host's part of each launch, which cannot be queued ahead."
_NOISE = (
    "Two times are tied within noise if they differ by no more than their floor: the gap that the same code hardly ever"
    " exceeds between two runs."
)
_LONG_NOISE = 0.02
_LEFT_IN_L2 = (
    "If launches back to back are slower although the clock is unchanged, a likely cause is that results of the"
    " previous launch are still in L2 and have to be written to device memory."
)
_COUNTERS = (
    "Counters come from separate runs under Nsight Compute with flushed caches and its clock control off;"
    " they describe the longest kernel at {case}."
)
_NO_COUNTERS = "Nsight Systems traced separate runs; no hardware counters are captured, since {reason}."
_SERIAL = "Nsight Compute runs kernels one at a time, which removes the overlap"
_COPIES = "copies have none"
_PAGE = 100  # width in characters
_PUBLISHED = "Published results are quoted from their sources; their GPU, compiler and size may differ."


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
        tables: Its tables.
        campaign: The campaign's record.
        pictures: The PNGs of the family's figures; a timeline that only repeats the times is left out, and so are bank
            conflicts if there are none.
        captions: The folder with `<figure>.rst`.
        machine_code: The disassembly of each variant's library, by variant, where it was kept.

    Raises:
        WarplogError: if no excerpt can be taken from a source.
    """
    ladder = Ladder(family, tables, machine_code or {})
    shown = (path for path in pictures if not _shows_nothing(path.stem, tables))
    drawn = {path.stem: _picture(path, captions, tables) for path in shown}
    order = [
        *(n for n in _ORDER if n in drawn),
        *sorted(set(drawn) - {*_ELSEWHERE, *_ORDER, *family.figures}),
    ]
    why = _SERIAL if "overlap" in family.figures else _COPIES
    counters = (_COUNTERS if ladder.counted else _NO_COUNTERS).format(case=tables.profiled_case, reason=why)
    has_published = any(variant.published for variant in family.variants)
    rungs = ladder.rungs()
    return Page(
        family=family.name,
        title=family.title,
        summary=family.summary,
        facts=(*_facts(tables, campaign), *(("All variants", remark) for remark in ladder.shared)),
        lead=_lead(ladder),
        regimes=regimes.explained(as_rows(tables.measurements)),
        method=(*_method(family, tables), counters, *([_PUBLISHED] if has_published else [])),
        key=tuple(drawn[name] for name in family.figures if name in drawn),
        ladder=drawn.get("ladder"),
        notes=_notes(ladder, rungs),
        rungs=rungs,
        waiting=_waiting(ladder),
        summaries=_summaries(ladder),
        pictures=tuple(drawn[name] for name in order),
        waterfall=ladder.waterfall(),
        chart=_chart(ladder),
    )


def _shows_nothing(figure: str, tables: FigureTables) -> bool:
    if figure == "timeline":
        return activity.is_one_activity(tables)
    excess = tables.metrics["metric"] == "shared_wavefronts_excess"
    return figure == "bank_conflicts" and not (tables.metrics.loc[excess, "value"] > 0).any()


def _chart(ladder: Ladder) -> str:
    """Returns the specification of the interactive charts."""
    rows = as_rows(ladder.tables.measurements.sort_values("size", kind="stable"))
    values = charts.points(rows, list(ladder.rows), ladder.path, ladder.unit)
    label = str(ladder.tables.variants["size_label"].iloc[0])
    shown = of_family(ladder.tables)
    return charts.chart(values, ladder.tables.case, ladder.family.baseline, ladder.unit[1], label, shown)


def _method(family: Family, tables: FigureTables) -> tuple[str, ...]:
    """Describes how the family was checked and timed."""
    rows = [row for row in as_rows(tables.measurements) if row["case"] == tables.case]
    exact = not family.value(family.work.flops, family.cases[family.headline_case])
    counts = sorted({int(count) for row in rows if (count := number(row, "processes")) > 1})
    many = bool(counts)
    ends = " to ".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) if many else ""
    how = _HOST if family.measuring.timing == "host" else _COLD
    how = how.format(median=_PROCESSES.format(processes=ends) if many else _MEDIAN) + _EMPTY
    how += f" {_CLOCKS}" if regimes.at_rest(rows) else ""
    runs = filter(None, map(regimes.long_run, rows))
    at_full_clock = "ncu" in family.measuring.profilers and any(not run.limited_by for run in runs)
    slower = [_LEFT_IN_L2] if at_full_clock else []
    return (*_headline(family, tables.case), _CHECKED_EXACTLY if exact else _CHECKED, how, _NOISE, *slower)


def _notes(ladder: Ladder, rungs: Sequence[Rung]) -> tuple[str, ...]:
    """Returns how to read the tables of the rungs, and the words that occur in answers to expectations and verdicts."""
    noisy = any(row["verdict"] == WITHIN_NOISE for rows in ladder.claimed.values() for row in rows)
    claims = (CLAIM_NOTE,) if noisy else ()
    answers = " ".join((rung.answer + " ".join(where for _, where in rung.elsewhere)) for rung in rungs)
    expected = (EXPECTED_NOTE,) if re.search(r"about (?:the|as) expected|within noise of", answers) else ()
    if not ladder.counted:
        return (*expected, *claims)
    kept = (KEPT_NOTE,) if ladder.keeps_results else ()
    tables = (*FACTOR_NOTES, *STATE_NOTES, BOUND_NOTE, *kept, *state_meanings(ladder.states), *LINE_NOTES)
    return (*expected, *claims, *tables)


def _headline(family: Family, case: str) -> tuple[str, ...]:
    """Says which problem the name of the headline case means, if it is one size: n, or that of all dimensions."""
    values = family.cases[case].values if case in family.cases else {}
    sizes = {name: value for name, value in values.items() if name.isupper() or name == "n"}
    if not sizes or len(set(sizes.values())) > 1:
        return ()
    if "n" in sizes and (
        case == f"{sizes['n']:.0f}" or family.value(family.work.size, family.cases[case]) != sizes["n"]
    ):
        return ()  # the name says it, or is about bytes
    return (f"Case {case} is {' = '.join(sizes)} = {next(iter(sizes.values())):.0f}.",)


def _facts(tables: FigureTables, campaign: Campaign) -> tuple[tuple[str, str], ...]:
    origins = " and ".join(sorted(set(tables.measurements["origin"].dropna().astype(str)))) or "unknown"
    gpu = [campaign.gpu_name]
    gpu += [f"{campaign.device.sms} SMs"] if campaign.device.sms else []
    gpu += [f"driver {campaign.driver}"] if campaign.driver else []
    gpu += [f"CUDA {campaign.cuda}"] if campaign.cuda else []
    clocks = tables.measurements.loc[tables.measurements["case"] == tables.case, "sm_mhz"].dropna()
    ends = f"{clocks.min():.0f} to {clocks.max():.0f}" if len(clocks) else ""
    spread = f"; mean SM clock during a launch at {tables.case}: {ends} MHz" if ends else ""
    tools = campaign.tools
    shown = [f"{name} {tools[name]}" for name in ("nvcc", "ncu", "nsys") if tools.get(name)]
    found = {
        "GPU": ", ".join(gpu),
        "Campaign": f"{campaign.campaign} ({origins.replace('live', 'measured live')})",
        "Started": campaign.started.replace("T", " ").replace("Z", " UTC"),
        "Commit": campaign.commits,
        "Clocks": f"{campaign.clocks}{spread}",
        "Tools": ", ".join(shown),
    }
    return tuple((what, text) for what, text in found.items() if text)


def _lead(ladder: Ladder) -> tuple[str, ...]:
    """Describes what the data change, the fastest rungs at rest and in a long run, and the steps to the fastest."""
    good = {name: row for name, row in ladder.rows.items() if kinship.time_us(row) > 0}
    own = {name: row for name, row in good.items() if not row["is_baseline"]}
    if not own:
        return ("No variant of this campaign has a time at the headline case.",)
    best = ladder.best
    lead = [*_by_data(ladder), _fastest(ladder, own, best), *_in_a_long_run(ladder, own, best)]
    lead += _way(ladder)
    bad = [name for name, row in ladder.rows.items() if row["status"] != "ok"]
    lead += [f"Variants without a time: {', '.join(bad)}."] if bad else []
    return tuple(lead)


def _fastest(ladder: Ladder, own: Mapping[str, Row], best: str) -> str:
    """Names the fastest variant besides the baseline, and those that are tied with it within noise."""
    alike = ladder.alike.get(best, (best,))
    ends = [own[name] for name in sorted(alike, key=lambda name: -kinship.time_us(own[name]))]
    tied = [name for name in own if name not in alike and kinship.tied(name, best, ladder.rows, ladder.alike)]
    speed, ratio = _range(map(ladder.speed, ends)), number(own[best], "ratio_to_baseline")
    baseline = text(own[best], "baseline")
    if not math.isnan(ratio):
        shares = (f"{published.share(number(row, 'ratio_to_baseline'))} %" for row in ends)
        speed += f", {_range(shares)} of {_noted(ladder, baseline)}"
        known = baseline in ladder.rows
        tied += [baseline] if known and kinship.tied(baseline, best, ladder.rows, ladder.alike) else []
    besides, several = " besides the baseline" if ratio < 1 else "", len(alike) > 1
    which = f"the fastest variant{besides} is {best}"
    if several:
        which = f"the fastest variants{besides} are {listed(alike)}, which launch the same kernel,"
    lead = f"At {ladder.tables.case}, {which} with {speed}"
    return (
        f"{lead}; tied with {'them' if several else 'it'} within noise: {', '.join(tied)}."
        if tied
        else f"{lead}."
    )


def _range(texts: Iterable[str]) -> str:
    """Returns the range of values with their unit, of which the first is the least: "4278 to 4315 GB/s"."""
    known = list(texts)
    low, last = known[0].rpartition(" ")[0], known[-1]
    return last if last.startswith(f"{low} ") else f"{low} to {last}"


def _noted(ladder: Ladder, variant: str) -> str:
    """Returns the variant with the note that a ratio to its time must say, if it has one."""
    note = text(ladder.rows.get(variant, {}), "note")
    return f"{variant} ({note})" if note else variant


def _in_a_long_run(ladder: Ladder, own: Mapping[str, Row], best: str) -> list[str]:
    """Describes the fastest variants in a long run, if that is slower than launches at rest."""
    runs = {name: run for name, row in own.items() if (run := regimes.long_run(row))}
    if best not in runs:
        return []
    run = runs[best]
    times = {n: runs[n].long_us if n in runs else kinship.time_us(row) for n, row in own.items()}
    limit = f", limited by {run.limited_by}" if run.limited_by else ""
    speed = ladder.speed(own[best], run.factor)
    lead = [f"{run.regime.capitalize()}, {best} reaches {speed}{limit}."]
    first = min(times, key=times.__getitem__)
    if times[first] * (1 + _LONG_NOISE) < times[best]:
        speed = ladder.speed(own[first], runs[first].factor if first in runs else 1.0)
        both = run.regime if runs.get(first, run).regime == run.regime else regimes.BACK_TO_BACK
        lead.append(f"{both.capitalize()}, the fastest variant is {first} with {speed}.")
    return lead


def _way(ladder: Ladder) -> list[str]:
    """Describes the steps of the main path, by the times at the headline case."""
    way, rows = ladder.path, ladder.rows
    if len(way) < 2:
        return []
    first, best = way[0], way[-1]
    times = kinship.time_us(rows[first]) / kinship.time_us(rows[best])
    gain = (
        "" if rows[first]["is_baseline"] else f", which is {times_text(times)} as fast"
    )  # else told in percent
    lead = [
        f"In {len(way) - 1} step{'s' if len(way) > 2 else ''}, the main path leads from {first}"
        f" ({ladder.speed(rows[first])}) to {best}{gain}."
    ]
    ratios = {
        name: kinship.time_us(rows[before]) / kinship.time_us(rows[name])
        for before, name in itertools.pairwise(way)
        if before not in ladder.alike.get(name, ())
    }
    if len(ratios) > 1:
        most = max(ratios, key=ratios.__getitem__)
        over = f"{times_text(ratios[most])} the speed of the previous step"
        if above := faster_ancestor(rows, most):
            beyond = times_text(kinship.time_us(rows[above]) / kinship.time_us(rows[most]))
            over += f", {beyond} that of {above}" if beyond != times_text(ratios[most]) else ""
        lead.append(f"Of these steps, {most} brings the largest speed-up ({over}){_least(rows, ratios)}.")
    return lead


def _least(rows: Mapping[str, Row], ratios: Mapping[str, float]) -> str:
    """Names the steps that are slower than the previous one, otherwise the smallest speed-up."""
    same = {name for name in ratios if verdicts.tied(rows[name], rows[text(rows[name], "parent")])}
    slower = [
        f"{name} ({times_text(ratios[name])})" for name in ratios if ratios[name] < 1 and name not in same
    ]
    if slower:
        which = "one step is" if len(slower) == 1 else "some steps are"
        return f"; {which} slower than the previous one by more than the noise: {', '.join(slower)}"
    least = min(ratios, key=ratios.__getitem__)
    if least in same:
        return f"; {least} is as fast as the previous step within noise ({times_text(ratios[least])})"
    if sum(times_text(one) == times_text(ratios[least]) for one in ratios.values()) > 1:
        return ""  # a smallest one that is tied after rounding
    return f", {least} the smallest ({times_text(ratios[least])})"


def _by_data(ladder: Ladder) -> list[str]:
    """Compares the data that take least energy with those of the headline case, for families with a power figure."""
    if "power_trace" not in ladder.family.figures:
        return []
    lead, case = [], ladder.tables.case
    for name in ladder.rows:
        rows = {
            str(row["case"]): row for row in as_rows(ladder.tables.measurements) if row["variant"] == name
        }
        size = rows[case]["size"] if case in rows else None
        times = {
            other: us
            for other, row in rows.items()
            if row["size"] == size and (us := number(row, "sustained_us")) > 0
        }
        if len(times) < 2 or case not in times:
            continue
        joules = {other: number(rows[other], "pj_per_flop") for other in times}
        known = not any(map(math.isnan, joules.values()))
        best = min(times, key=(joules if known else times).__getitem__)
        ratio = times[case] / times[best]
        text = f"With the data of {best} instead of {case}, {name} is {times_text(ratio)} as fast"
        energy = f" and takes {joules[best]:#.3g} instead of {joules[case]:#.3g} pJ/FLOP" if known else ""
        lead += [f"{text}{energy}."] if ratio > 1 + _LONG_NOISE else []
    return lead


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
        return published.speed(number(row, column) * factor, str(row["status"]), text(row, "own_limits"))

    def share(row: Row) -> str:
        return published.share(number(row, "ratio_to_baseline"))

    label = ladder.tables.variants["size_label"].iloc[0]
    speeds = replace(_by_case(ladder, speed), notes=_not_run(ladder))
    found = [Summary(f"{unit} by case, in order of {label}", speeds)]
    if ladder.family.baseline in ladder.rows:
        baseline = ladder.family.baseline
        notes = (f"{baseline}: {note}.",) if (note := text(ladder.rows[baseline], "note")) else ()
        found.append(Summary(f"Percent of {baseline}", replace(_by_case(ladder, share), notes=notes)))
    if ladder.counted:
        found.append(Summary(f"Resources at {ladder.tables.profiled_case}", _resources(ladder)))
    claims = claims_table(ladder.claimed.get("", ()))
    return (*found, *([Summary("Claims about the whole ladder", claims)] if claims else ()))


def _not_run(ladder: Ladder) -> tuple[str, ...]:
    """Returns a note that names the sizes that variants exclude themselves; none if there are none."""
    limits: dict[str, dict[str, None]] = {}
    for row in as_rows(ladder.tables.measurements):
        if exceeded := own_limits(text(row, "own_limits")):
            limit = " and ".join(f"{name} at most {most}" for name, most in exceeded.items())
            limits.setdefault(limit, {})[str(row["variant"])] = None
    found = "; ".join(f"{limit} ({', '.join(names)})" for limit, names in limits.items())
    return (f"Not run: cases beyond the size to which a variant is limited: {found}.",) if found else ()


def _by_case(ladder: Ladder, cell: Callable[[Row], str]) -> Table:
    """Returns a table with one row per variant and one column per timed case, in order of size.

    If that is wider than a page, rows and columns are exchanged, provided that the result is narrower.
    """
    rows = as_rows(ladder.tables.measurements.sort_values("size", kind="stable"))
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
        "registers per thread",
        "threads per block",
        "shared bytes per block",
        "spill stores / loads (B)",
        "theoretical occupancy %",
        "achieved occupancy %",
    )
    lines = []
    for name, row in ladder.rows.items():
        launch, bound = ladder.launches[name], ladder.bounds[name]
        counts = [launch[m] for m in ("registers_per_thread", "block_threads", "shared_bytes_per_block")]
        cells = [_count(value) for value in counts]
        cells += [_spills(ladder.spills(row), number(row, "spill_bytes"))]
        cells += [_one(bound.theoretical_pct), _one(bound.achieved_pct)]
        lines.append((name, *cells))
    notes = ("Shared memory includes the part that the driver reserves.",)
    return Table(titles, tuple(lines), frozenset(range(1, len(titles))), notes)


def _spills(split: tuple[int, int] | None, total: float) -> str:
    """Returns the bytes of spill stores and loads: "2328 / 2840", or their sum if only that is known."""
    return f"{split[0]} / {split[1]}" if split else _count(total)


def _count(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0f}"


def _one(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.1f}"


def _picture(path: Path, captions: Path, tables: FigureTables) -> Picture:
    """Returns the figure with the sentences of its .rst file that apply."""
    title = _TITLES.get(path.stem, path.stem.replace("_", " ").capitalize())
    return Picture(path.stem, title, caption(captions / f"{path.stem}.rst", tables), path)
