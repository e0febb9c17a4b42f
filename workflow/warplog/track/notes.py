"""Markdown notes in MLflow: one per experiment (main result, ladder of variants, claims) and one per run."""

import math
from collections.abc import Mapping, Sequence

from warplog.catalog.claims import verdict_words
from warplog.core.columns import Row, number
from warplog.core.numbers import rate_unit, with_unit
from warplog.core.text import escape_markdown, visible
from warplog.figures.shared import gallery
from warplog.records.campaign import Campaign
from warplog.tables import regimes
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables, Quantity
from warplog.track.points import headlines
from warplog.track.runs import Run

_MOST_CHARACTERS = 15_000  # MLflow accepts 20,000 in an experiment's tag
_PADDING = "&nbsp;&nbsp;"  # the UI shows table cells without padding
# Column -> its unit, and the regime if it is not at rest.
_NUMBERS = {
    "gflops": ("GFLOP/s", ""),
    "sustained_gflops": ("GFLOP/s", " sustained"),
    "gbytes_per_s": ("GB/s", ""),
    "median_us": ("µs", ""),
}


def experiment_note(
    data: FigureTables,
    quantity: Quantity,
    runs: Sequence[Run],
    campaign: Campaign,
    links: Mapping[str, str],
) -> str:
    """Returns the experiment's note; lists of experiments show its first line as plain text.

    `links` are the addresses of runs by variant.
    """
    label = text_of(data, "size_label", "problem size")
    ideas = {str(row["variant"]): str(row["idea"]) for row in as_rows(data.variants)}
    # Narrow columns break their numbers: the time is in the table of runs, and the origin above.
    shown = [name for name in _shown(quantity.column) if name in (quantity.column, "sustained_gflops")]
    numbers = {name: _scale(name, runs) for name in shown if any(not _lacks(run, name) for run in runs)}
    explained = " ".join(filter(None, ("", regimes.explained(as_rows(data.measurements)))))
    heads = ["variant", "idea", *(unit for unit, _ in numbers.values()), "% of baseline", "status"]
    lines = [
        f"{escape_markdown(text_of(data, 'title', data.family))}: {_result(quantity, data.case, runs)}",
        f"\n{provenance(campaign)}\n",
        f"Headline case: `{data.case}`. In charts over problem size, step = {escape_markdown(label)}.{explained}\n",
        f"| {' | '.join(heads)} |",
        f"|---|---|{'--:|' * (len(numbers) + 1)}---|",
    ]
    for run in runs:
        row = _ladder_row(run, ideas[run.variant], numbers, links.get(run.variant, ""))
        if sum(map(len, lines)) + len(row) > _MOST_CHARACTERS:
            lines += ["", "The table of runs lists the remaining variants."]
            break
        lines.append(row)
    return visible("\n".join([*lines, *_claims(data, _MOST_CHARACTERS - sum(map(len, lines)))])) + "\n"


def run_note(run: Run, variant: Row, data: FigureTables, campaign: Campaign) -> str:
    """Returns the run's note: idea, provenance, headline numbers, parent and credit."""
    lines = [f"**{escape_markdown(str(variant['idea']))}**", "", provenance(campaign), ""]
    if run.status != "ok" or run.reason:
        head = "Note" if run.status == "ok" else run.status.replace("_", " ")
        lines += [f"**{head}**: {escape_markdown(run.reason)}", ""]
    shown = _shown(data.quantity().column)
    known = {name: _scale(name, [run]) for name in shown if not _lacks(run, name)}
    numbers = [f"{_number(run.headline(name) * factor)} {unit}" for name, (unit, factor) in known.items()]
    if not _lacks(run, "ratio_to_baseline") and not run.is_baseline:
        numbers += [f"{100 * run.headline('ratio_to_baseline'):.1f} % of the baseline"]
    facts = [f"Case `{data.case}`: {', '.join(numbers)}"] if numbers else []
    facts += ["Baseline of the family"] if run.is_baseline else []
    facts += [f"Based on `{variant['parent']}`"] if variant["parent"] else []
    facts += [f"Credit: {escape_markdown(str(variant['credit']))}"] if variant["credit"] else []
    if "main_kernel" in run.tags:
        kernel = " ".join(run.tags["main_kernel"].replace("`", "'").split())
        facts += [f"Counters: case `{run.tags['counters_case']}`, longest kernel `{kernel}`"]
    if "traced_case" in run.tags:
        facts += [
            f"Accesses (`traced/...`): addresses of one launch of case `{run.tags['traced_case']}`, no counters"
        ]
    facts += [
        f"Artifacts: figures of the family in `{gallery.NAME}`, all numbers of the variant in `tables/`"
    ]
    return visible("\n".join([*lines, *(f"- {fact}" for fact in facts)])) + "\n"


def provenance(campaign: Campaign) -> str:
    """Returns one line: live or recorded, GPU, driver, CUDA, date, campaign and version of the sources."""
    recorded = campaign.origin == "recorded"
    verb = "**Recorded**, not measured on this machine:" if recorded else "Measured live:"
    tools = [f"driver {campaign.driver}"] if campaign.driver else []
    tools += [f"CUDA {campaign.cuda}"] if campaign.cuda else []
    names = {"commit": campaign.commit, "sources with SHA-256": campaign.content_sha256}
    source = [f"{name} `{text[:12]}`" for name, text in names.items() if text][:1]
    where = ", ".join([campaign.gpu_name, *tools, campaign.started])
    return " · ".join([f"{verb} {where}", f"campaign `{campaign.campaign}`", *source])


def text_of(data: FigureTables, column: str, fallback: str) -> str:
    """Returns the text in a column of `variants` that is the same for the whole family."""
    return next((str(text) for text in data.variants.get(column, ()) if text), fallback)


def _result(quantity: Quantity, case: str, runs: Sequence[Run]) -> str:
    name = quantity.column
    timed = [run for run in runs if not run.is_baseline and not _lacks(run, name)]
    if not timed:
        return "no variant has a result yet"
    best = min(timed, key=lambda run: run.headline("median_us"))
    unit, factor = _scale(name, [best])
    text = f"{best.variant} reaches {_number(best.headline(name) * factor)} {unit}"
    if name == "gflops" and not _lacks(best, "sustained_gflops"):
        longer, factor = _scale("sustained_gflops", [best])
        speed = f"{_number(best.headline('sustained_gflops') * factor)} {longer}"
        text += (
            " at rest and sustained"
            if text.endswith(speed.removesuffix(" sustained"))
            else f" at rest, {speed}"
        )
    baseline = next((run for run in runs if run.is_baseline), None)
    if baseline is not None and not _lacks(best, "ratio_to_baseline"):
        text += f", {100 * best.headline('ratio_to_baseline'):.0f} % of {baseline.variant}"
    return (
        f"{text} ({case}, {best.tags['gpu_name']}{', recorded' if best.tags['origin'] == 'recorded' else ''})"
    )


def _scale(name: str, runs: Sequence[Run]) -> tuple[str, float]:
    """Returns the unit to show the numbers in, and the factor that converts them."""
    unit, regime = _NUMBERS[name]
    scaled, factor = rate_unit(unit, (run.headline(name) for run in runs))
    return f"{scaled}{regime}", factor


def _shown(speed: str) -> list[str]:
    """Returns the columns of _NUMBERS that a note shows of a family whose speed is the column `speed`."""
    return [name for name in _NUMBERS if name in headlines(speed)]


def _ladder_row(run: Run, idea: str, numbers: Mapping[str, tuple[str, float]], link: str) -> str:
    share = "–" if _lacks(run, "ratio_to_baseline") else f"{100 * run.headline('ratio_to_baseline'):.1f}"
    name = f"[{run.variant}]({link})" if link else run.variant
    name = f"**{name}** (baseline)" if run.is_baseline else name
    cells = [
        name,
        escape_markdown(idea),
        *(_number(run.headline(n) * factor) for n, (_, factor) in numbers.items()),
        share,
    ]
    cells = [f"{cell}{_PADDING}" for cell in [*cells, run.status.replace("_", " ")]]
    return f"| {' | '.join(cells)} |"


def _claims(data: FigureTables, room: int) -> list[str]:
    """Returns the verdicts on the family's claims, refuted ones first, in at most about `room` characters."""
    rows = sorted(as_rows(data.claims), key=lambda row: str(row["verdict"]) != "refuted")
    lines = ["", "| claim | | verdict | measured | confirmed if |", "|---|---|---|--:|---|"] if rows else []
    for row in rows:
        measured = number(row, "measured")
        verdict = verdict_words(str(row["verdict"]), measured, str(row["about"]))
        shown = with_unit(measured, str(row["unit"])) or "–"
        texts = [str(row["claim"]), verdict, shown, str(row["condition"])]
        cells = [str(row["id"]), *map(escape_markdown, texts)]
        lines.append(f"| {' | '.join(f'{cell}{_PADDING}' for cell in cells)} |")
        if sum(map(len, lines)) > room - 500:
            return [*lines, "", "More claims: `tables/claims.csv` in the baseline's run."]
    return lines


def _lacks(run: Run, name: str) -> bool:
    return math.isnan(run.headline(name))


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 99.95 or value == 0 else f"{value:#.3g}"
