"""What is concluded about a family, as rows of the tables `verdicts`, `ladder`, `steps`, `changes`, `bounds`, ..."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from warplog.analysis import roles, sass_steps, traced, verdicts
from warplog.analysis.decomposition import Step as Decomposed
from warplog.analysis.explanation import Explanation, Sources
from warplog.analysis.verdicts import Timed
from warplog.core.columns import Row, number, text
from warplog.core.numbers import rate_unit
from warplog.tables import regimes
from warplog.tables.conclusions import (
    NAN,
    AccessLine,
    Bound,
    Change,
    Conclusion,
    Place,
    SassStep,
    Step,
    Traced,
    Verdict,
)
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables

REST = "rest"
_Compared: TypeAlias = tuple[str, float, float, float]  # word, speed-up and its interval


@dataclass(frozen=True)
class Conclusions:
    """The rows about a family, by table."""

    verdicts: tuple[Verdict, ...]
    ladder: tuple[Place, ...]
    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    bounds: tuple[Bound, ...]
    sass_steps: tuple[SassStep, ...]
    traced: tuple[Traced, ...]
    access_lines: tuple[AccessLine, ...]

    def rows(self, table: str) -> Sequence[Conclusion]:
        """Returns the rows of a table, by its name."""
        conclusions: Sequence[Conclusion] = getattr(self, table)
        return conclusions


def conclude(tables: FigureTables, sources: Sources) -> Conclusions:
    """Returns what is concluded about a family.

    Args:
        tables: of the family.
        sources: the text of each variant's source and headers, as far as they are known.
    """
    explanation = Explanation(tables, sources)
    limits = {bound.variant: bound for bound in explanation.bounds}
    traces = traced.traces(tables)
    changes = {
        step.variant: [*(counted := roles.changes(step, limits)), *traced.changes(step, traces, len(counted))]
        for step in explanation.steps
    }
    return Conclusions(
        tuple(_verdicts(explanation)),
        tuple(_places(explanation)),
        tuple(_step(explanation, step, changes[step.variant]) for step in explanation.steps),
        tuple(change for step in explanation.steps for change in changes[step.variant]),
        explanation.bounds,
        tuple(sass_steps.rows(as_rows(tables.instructions), as_rows(tables.variants))),
        traces.variants,
        traces.lines,
    )


def _verdicts(explanation: Explanation) -> Iterator[Verdict]:
    """Yields each variant against its ancestors, the baseline, the fastest one of the case and of the ladder."""
    tables, rows = explanation.tables, explanation.rows
    baseline = next((name for name, row in rows.items() if row["is_baseline"]), "")
    sustained = _sustained(tables)
    for case, by_variant in explanation.by_case.items():
        rest = {name: us for name, row in by_variant.items() if (us := _at_rest(row))}
        own = [name for name in rest if name != baseline]
        fastest = min(own, key=lambda name: rest[name].us, default="")
        for regime, times in ((REST, rest), (regimes.SUSTAINED, sustained.get(case, {}))):
            for name, timed in times.items():
                for other in dict.fromkeys((*_ancestors(rows, name), baseline, fastest, explanation.best)):
                    if other != name and other in times:
                        yield _verdict(tables.family, name, other, case, regime, timed, times[other])


def _ancestors(rows: Mapping[str, Row], name: str) -> list[str]:
    ancestors: list[str] = []
    while (name := text(rows.get(name, {}), "parent")) in rows and name not in ancestors:
        ancestors.append(name)
    return ancestors


def _at_rest(row: Row) -> Timed | None:
    return verdicts.timed(row) if row["status"] == "ok" else None


def _sustained(tables: FigureTables) -> dict[str, dict[str, Timed]]:
    """Returns the sustained times that have a floor, by case and variant."""
    floors = {
        (str(row["variant"]), str(row["case"])): verdicts.noise_of(row)
        for row in as_rows(tables.floors)
        if row["regime"] == regimes.SUSTAINED
    }
    times: dict[str, dict[str, Timed]] = {}
    for row in as_rows(tables.measurements):
        key, us = (str(row["variant"]), str(row["case"])), number(row, "sustained_us")
        if key in floors and us > 0 and row["status"] == "ok":
            times.setdefault(key[1], {})[key[0]] = Timed(us, floors[key])
    return times


def _verdict(
    family: str, name: str, other: str, case: str, regime: str, own: Timed, theirs: Timed
) -> Verdict:
    judgement = verdicts.judge(theirs, own)
    return Verdict(
        family, name, other, case, regime, judgement.word, judgement.reason, own.us, theirs.us, 1 / judgement.ratio,
        1 / judgement.high, 1 / judgement.low, 100 * judgement.floor, judgement.p,
    )  # fmt: skip


def _compared(rows: Mapping[str, Row], name: str, other: str) -> _Compared:
    """Returns word, speed-up and interval of a variant against another one, given the rows of a case."""
    own, theirs = (_at_rest(rows[variant]) if variant in rows else None for variant in (name, other))
    if own is None or theirs is None:
        return "", NAN, NAN, NAN
    verdict = _verdict("", name, other, "", REST, own, theirs)
    return verdict.word, verdict.speedup, verdict.low, verdict.high


def _places(explanation: Explanation) -> Iterator[Place]:
    tables = explanation.tables
    quantity = tables.quantity()
    rates = (number(row, quantity.column) for row in as_rows(tables.measurements))
    unit, factor = rate_unit(quantity.unit, rates)
    path, rows, best = explanation.path, explanation.rows, explanation.best
    for order, (name, row) in enumerate(rows.items()):
        place = path.index(name) + 1 if name in path else 0
        beside = (ancestor for ancestor in _ancestors(rows, name) if ancestor in path)
        previous = path[place - 2] if place > 1 else "" if place else next(beside, "")
        first = explanation.alike.get(name, (name,))[0]
        is_timed = row["status"] == "ok"
        run = regimes.long_run(row) if is_timed else None
        speed = number(row, quantity.column) * factor if is_timed else NAN
        slower = (
            NAN if run is None else speed * (1 / run.factor if quantity.column == "median_us" else run.factor)
        )
        tied = name != best and best in rows and verdicts.tied(row, rows[best])
        yield Place(
            tables.family, name, tables.case, order, place, previous, *_compared(rows, name, previous),
            first if first != name else "", "best" if name == best else "tied" if tied else "", speed, slower,
            unit, 100 * number(row, "ratio_to_baseline"),
            run.regime.replace(" ", "_") if run else "", run.limited_by if run else "",
        )  # fmt: skip


def _step(explanation: Explanation, step: Decomposed, changes: Sequence[Change]) -> Step:
    at_case = {str(row["variant"]): row for row in as_rows(explanation.tables.ladder(step.case))}
    twin, ancestor = step.twin, step.ancestor or ("", NAN)
    alike = ("", NAN) if twin is None else _compared(at_case, step.variant, twin.variant)[:2]
    (parent_us, own_us), (parent_others, own_others) = step.kernel_us, step.others_us
    return Step(
        step.family, step.variant, step.parent, step.case, step.gap, ",".join(step.gap_of), ",".join(step.gap_detail),
        *_compared(at_case, step.variant, step.parent), _explained(step, changes), step.remainder,
        own_us, parent_us, own_others, parent_others, _share_pct(own_us, own_others),
        _share_pct(parent_us, parent_others), *ancestor,
        twin.variant if twin else "", ("same" if twin.same else "recompiled") if twin else "", *alike,
        *(twin.instructions if twin else (-1, -1)), twin.registers if twin else -1, step.use.idle,
    )  # fmt: skip


def _explained(step: Decomposed, changes: Sequence[Change]) -> str:
    has_cause = any(change.role == roles.CAUSE for change in changes)
    if step.gap:
        return traced.EXPLAINED if has_cause else ""
    if step.tied:
        return "tied"
    if step.same_kernel:
        return "same_kernel"
    if step.is_elsewhere:
        return "other_kernels"
    if step.is_within_runs:
        return "within_runs"
    if not step.explicable:
        return "little"
    return "counters" if has_cause else "no_cause"


def _share_pct(kernel_us: float, others_us: float) -> float:
    return 100 * kernel_us / (kernel_us + others_us) if kernel_us > 0 else NAN
