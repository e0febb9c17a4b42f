"""The Markdown that MLflow shows: a note per experiment (message, ladder) and a note per run."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from warplog.core.numbers import rate_unit, with_unit
from warplog.tables.view import FigureTables, Quantity
from warplog.track.points import Row
from warplog.track.runs import Run

_MOST_CHARACTERS = 15_000  # MLflow takes 20,000 in an experiment's tag
_PADDING = "&nbsp;&nbsp;"  # the UI sets the cells of a table without any
_NUMBERS = {"gflops": "GFLOP/s", "gbytes_per_s": "GB/s", "median_us": "µs"}


def experiment_note(
    data: FigureTables, quantity: Quantity, runs: Sequence[Run], campaign: Mapping[str, Any]
) -> str:
    """The experiment's note. Its first heading is all that the UI shows before the note is unfolded."""
    label = text_of(data, "size_label", "problem size")
    ideas = {str(row["variant"]): str(row["idea"]) for row in data.variants.to_dict("records")}
    numbers = {name: _told_in(name, runs) for name in _NUMBERS if any(not _gap(run, name) for run in runs)}
    heads = ["variant", "idea", *(unit for unit, _ in numbers.values()), "% of baseline", "status", "origin"]
    lines = [
        f"### {_plain(text_of(data, 'title', data.family))}: {_message(quantity, data.case, runs)}",
        f"\n{provenance(campaign)}\n",
        f"Headline case: `{data.case}`. In charts against size, the step is the size ({_plain(label)}).\n",
        f"| {' | '.join(heads)} |",
        f"|---|---|{'--:|' * (len(numbers) + 1)}---|---|",
    ]
    for run in runs:
        rung = _rung(run, ideas[run.variant], numbers)
        if sum(map(len, lines)) + len(rung) > _MOST_CHARACTERS:
            lines += ["", "More variants: see the table of runs."]
            break
        lines.append(rung)
    return "\n".join([*lines, *_claims(data, _MOST_CHARACTERS - sum(map(len, lines)))]) + "\n"


def run_note(run: Run, variant: Row, data: FigureTables, campaign: Mapping[str, Any]) -> str:
    """The run's note: idea, where the numbers come from, the headline, parent and credit."""
    lines = [f"**{_plain(str(variant['idea']))}**", "", provenance(campaign), ""]
    if run.status != "ok" or run.reason:
        lines += [f"**{run.status.replace('_', ' ')}**: {_plain(run.reason)}", ""]
    known = {name: _told_in(name, [run]) for name in _NUMBERS if not _gap(run, name)}
    numbers = [f"{_number(run.headline(name) * factor)} {unit}" for name, (unit, factor) in known.items()]
    if not _gap(run, "pct_of_baseline") and not run.is_baseline:
        numbers += [f"{run.headline('pct_of_baseline'):.1f} % of the baseline"]
    facts = [f"Case `{data.case}`: {', '.join(numbers)}"] if numbers else []
    facts += ["The baseline of the family"] if run.is_baseline else []
    facts += [f"Step up from `{variant['parent']}`"] if variant["parent"] else []
    facts += [f"Credit: {_plain(str(variant['credit']))}"] if variant["credit"] else []
    if "main_kernel" in run.tags:
        kernel = " ".join(run.tags["main_kernel"].replace("`", "'").split())
        facts += [f"Counters: case `{run.tags['counters_case']}`, its longest kernel `{kernel}`"]
    return "\n".join([*lines, *(f"- {fact}" for fact in facts)]) + "\n"


def provenance(campaign: Mapping[str, Any]) -> str:
    """One line: measured or recorded, where, when, with what, from which sources."""
    recorded = campaign["origin"] == "recorded"
    verb = "**Recorded**, not measured on this machine:" if recorded else "Measured live:"
    tools = [f"driver {campaign['driver']}"] if campaign.get("driver") else []
    tools += [f"CUDA {campaign['cuda']}"] if campaign.get("cuda") else []
    source = str(campaign.get("commit") or "")[:12] or str(campaign.get("content_sha256") or "")[:12]
    where = ", ".join([str(campaign["gpu_name"]), *tools, str(campaign["started"])])
    return f"{verb} {where} · campaign `{campaign['campaign']}`" + (
        f" · sources `{source}`" if source else ""
    )


def text_of(data: FigureTables, column: str, fallback: str) -> str:
    """A text that the table `variants` holds for the whole family."""
    return next((str(text) for text in data.variants.get(column, ()) if text), fallback)


def _message(quantity: Quantity, case: str, runs: Sequence[Run]) -> str:
    name = quantity.column
    own = [run for run in runs if not run.is_baseline and not _gap(run, name)]
    if not own:
        return "no variant has a result yet"
    best = min(own, key=lambda run: run.headline("median_us"))
    unit, factor = _told_in(name, [best])
    text = f"{best.variant} reaches {_number(best.headline(name) * factor)} {unit}"
    baseline = next((run for run in runs if run.is_baseline), None)
    if baseline is not None and not _gap(best, "pct_of_baseline"):
        text += f", {best.headline('pct_of_baseline'):.0f} % of {baseline.variant}"
    return (
        f"{text} ({case}, {best.tags['gpu_name']}{', recorded' if best.tags['origin'] == 'recorded' else ''})"
    )


def _told_in(name: str, runs: Sequence[Run]) -> tuple[str, float]:
    return rate_unit(_NUMBERS[name], (run.headline(name) for run in runs))


def _rung(run: Run, idea: str, numbers: Mapping[str, tuple[str, float]]) -> str:
    share = "–" if _gap(run, "pct_of_baseline") else f"{run.headline('pct_of_baseline'):.1f}"
    name = f"**{run.variant}** (baseline)" if run.is_baseline else run.variant
    cells = [
        name,
        _plain(idea),
        *(_number(run.headline(n) * factor) for n, (_, factor) in numbers.items()),
        share,
    ]
    cells = [f"{cell}{_PADDING}" for cell in [*cells, run.status.replace("_", " ")]]
    return f"| {' | '.join([*cells, run.tags['origin']])} |"


def _claims(data: FigureTables, room: int) -> list[str]:
    """The verdicts on the family's claims, refuted ones first, in at most about `room` characters."""
    rows = sorted(data.claims.to_dict("records"), key=lambda row: str(row["verdict"]) != "refuted")
    lines = ["", "| claim | | verdict | measured | confirmed if |", "|---|---|---|--:|---|"] if rows else []
    for row in rows:
        told = _plain(with_unit(row["measured"], str(row["unit"]))) or "–"
        cells = [str(row["id"]), _plain(str(row["claim"])), str(row["verdict"]).replace("_", " "), told]
        lines.append(f"| {' | '.join(f'{c}{_PADDING}' for c in [*cells, _plain(str(row['condition']))])} |")
        if sum(map(len, lines)) > room - 500:
            return [*lines, "", "More claims: `tables/claims.csv` of the baseline's run."]
    return lines


def _gap(run: Run, name: str) -> bool:
    return math.isnan(run.headline(name))


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 99.95 or value == 0 else f"{value:#.3g}"


def _plain(text: str) -> str:
    """Text of the catalogue as plain Markdown: one line, without table borders, tags or links of its own."""
    line = " ".join(text.split())
    for mark in ("\\", "|", "<", "[", "`", "*", "_"):
        line = line.replace(mark, f"\\{mark}")
    return line
