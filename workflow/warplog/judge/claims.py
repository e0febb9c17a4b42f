"""Stage claims: judge the claims of the families by a campaign's numbers, one row per claim."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TextIO

from warplog.analysis.quantities import Found, Quantities
from warplog.analysis.verdicts import EXACT, Noise, between
from warplog.catalog.claims import (
    CONFIRMED,
    GPU_NAMES,
    NOT_MEASURABLE,
    REFUTED,
    SASS,
    WITHIN_NOISE,
    Claim,
    Term,
    verdict_words,
)
from warplog.catalog.family import Family
from warplog.core import formula
from warplog.core.columns import Cell, Row, number
from warplog.core.errors import WarplogError
from warplog.core.text import join_notes, printable
from warplog.tables.files import ORIGIN_COLUMNS, read_table

_MOST_REASONS = 2
EXCEEDED = "exceeded"
_EXCEEDED_FROM = 1.5
_GAIN_HALVED = 1.15  # a lower bound of a speed-up is half of the published gain


@dataclass(frozen=True)
class Judgement:
    """The verdict on one claim: `measured` in `unit` (NaN if missing), and as `evidence` the numbers it is based on.

    The verdict is WITHIN_NOISE if the times' intervals include values that confirm the claim and others that refute it.
    `reason` states why there is no verdict; if there is one, it holds the tables' remarks on the rows used. `margin` is
    EXCEEDED if a confirmed speed or time is at least 1.5 times as far as the condition requires (a bound of 1 only says
    which is faster), or a gain 1.5 times the published one, of which the condition asks for half; else "". `cases` are
    those of the numbers that are known.
    """

    verdict: str
    measured: float
    unit: str
    evidence: str
    reason: str
    margin: str = ""
    cases: tuple[str, ...] = ()


def judge(
    claim: Claim, values: Mapping[str, float], numbers: Quantities, gpu: Mapping[str, float]
) -> Judgement:
    """Judges a claim by the numbers of a campaign.

    Args:
        values: the parameters of the claim's case.
        gpu: the numbers of the table `gpus`; NaN for an unknown one.
    """
    if claim.formula is None:
        return Judgement(NOT_MEASURABLE, math.nan, "", "", claim.not_judged)
    found = {name: _find(term, numbers) for name, term in claim.formula.terms.items()}
    named = {name: {**gpu, **values}[name] for name in claim.formula.names}
    reasons = [number.reason for number in found.values() if number.reason]
    reasons += [f"{name} of this GPU is not known" for name, value in named.items() if math.isnan(value)]
    evidence = [
        _shown(claim, claim.formula.terms[n], number) for n, number in found.items() if not number.reason
    ]
    evidence += [f"{name} = {value:.6g}" for name, value in named.items() if not math.isnan(value)]
    margin = ""
    measured = math.nan if reasons else _value(claim, {**named, **{n: f.value for n, f in found.items()}})
    if not reasons and math.isnan(measured):
        reasons = ["the formula has no value for these numbers"]
    single = next(iter(found.values())).unit if claim.formula.text in found else ""
    if claim.not_judged or reasons:
        verdict, reasons = NOT_MEASURABLE, [claim.not_judged, *reasons] if claim.not_judged else reasons
    else:
        verdict, margin = _verdict(claim, measured, named, found)
        terms = claim.formula.terms
        reasons = [
            f"note on {terms[n].variant}: {join_notes(*(one.words() for one in number.remarks))}"
            for n, number in found.items()
            if number.remarks
        ]
    known = [claim.formula.terms[n] for n, number in found.items() if not number.reason]
    cases = tuple(dict.fromkeys(term.case for term in known if term.quantity != SASS))
    return Judgement(
        verdict, measured, claim.unit or single, "; ".join(evidence), _joined(reasons), margin, cases
    )


def judge_all(families: Mapping[str, Family], tables: Path) -> list[dict[str, Cell]]:
    """Returns the rows of the table `claims` for each family in the tables that is also in `families`.

    Raises:
        WarplogError: a table is not readable.
    """
    names = ("measurements", "metrics", "gpus", "floors")
    measurements, metrics, gpus, floors = (read_table(tables, name) for name in names)
    numbers = Quantities(measurements, metrics, floors)
    peaks = {
        name: float(gpus[name].iloc[0]) if name in gpus and len(gpus) else math.nan for name in GPU_NAMES
    }
    rows = []
    for name in dict.fromkeys(measurements["family"]):
        origin = measurements.loc[measurements["family"] == name, ORIGIN_COLUMNS].iloc[0].to_dict()
        family = families.get(name)
        for claim in family.claims if family else ():
            values = family.cases[claim.case].values if family else {}
            rows.append(_row(claim, name, judge(claim, values, numbers, peaks)) | origin)
    return rows


def show(rows: Iterable[Row], stream: TextIO) -> None:
    """Prints the claims: verdict, number, condition, published value and evidence."""
    for row in rows:
        measured = number(row, "measured")
        verdict = verdict_words(str(row["verdict"]), measured, str(row["about"]))
        value = "" if math.isnan(measured) else f"{measured:.4g} {row['unit']}".strip()
        condition = f"(confirmed if {row['condition']})" if row["condition"] else ""
        case = f" [{row['case']}]" if row.get("case") else ""
        print(printable(f"{row['family']} {row['id']}{case}: {row['claim']}"), file=stream)
        margin = f"({row['margin']})" if row.get("margin") else ""
        print(
            printable("  " + "  ".join(filter(None, [verdict.upper(), margin, value, condition]))),
            file=stream,
        )
        for label in ("published", "evidence", "reason"):
            if row[label]:
                print(printable(f"  {label}: {row[label]}"), file=stream)


def _row(claim: Claim, family: str, judged: Judgement) -> dict[str, Cell]:
    return {
        "family": family,
        "id": claim.id,
        "claim": claim.claim,
        "source": claim.source,
        "published": claim.published,
        "verdict": judged.verdict,
        "margin": judged.margin,
        "measured": judged.measured,
        "unit": judged.unit,
        "condition": claim.confirmed_if,
        "measure": claim.measure,
        "case": claim.case,
        "cases": ", ".join(judged.cases) or claim.case,
        "evidence": judged.evidence,
        "about": claim.about,
        "reason": judged.reason,
    }


def _verdict(
    claim: Claim, measured: float, named: Mapping[str, float], found: Mapping[str, Found]
) -> tuple[str, str]:
    """Returns the verdict on a claim that can be judged, and EXCEEDED or ""."""
    holds = claim.holds(measured)
    low, high = _interval(claim, measured, named, found)
    if claim.holds(low) != holds or claim.holds(high) != holds:
        return WITHIN_NOISE, ""
    if not holds:
        return REFUTED, ""
    bound = claim.one_sided_bound
    if not (low < high and bound and measured > 0 and bound[1] not in (0, 1)):
        return CONFIRMED, ""
    distance = measured / bound[1] if bound[0] else bound[1] / measured
    if bound[0] and 1 < bound[1] < _GAIN_HALVED:
        distance = (measured - 1) / (2 * (bound[1] - 1))
    return CONFIRMED, EXCEEDED if distance >= _EXCEEDED_FROM else ""


def _interval(
    claim: Claim, measured: float, named: Mapping[str, float], found: Mapping[str, Found]
) -> tuple[float, float]:
    """Returns the ends between which the same code shows the formula's value, with the probability of a verdict.

    Each time is moved by its standard deviation, and the changes of the value add up in quadrature. A product or
    quotient of times has the interval of its logarithm, so that a claim about which of two times is shorter is judged
    as the two are compared.
    """
    values = {**named, **{name: number.value for name, number in found.items()}}

    def moved(name: str, by: float) -> float:
        value = _value(claim, {**values, name: values[name] * math.exp(by)})
        return measured if math.isnan(value) else value

    noisy = {name: number.noise for name, number in found.items() if number.noise.deviation > 0}
    ends = [(moved(name, noise.deviation), moved(name, -noise.deviation)) for name, noise in noisy.items()]
    is_product = measured > 0 and all(
        min(pair) > 0 and math.isclose(pair[0] * pair[1], measured**2, rel_tol=1e-9) for pair in ends
    )
    scale = math.log if is_product else float
    changes = [
        Noise(abs(scale(up) - scale(down)) / 2, noise.freedom)
        for (up, down), noise in zip(ends, noisy.values(), strict=True)
    ]
    groups = [
        abs(scale(moved(name, by)) - scale(measured))
        for name, noise in noisy.items()
        for by in (noise.groups, -noise.groups)
    ]
    half = max(reduce(between, changes, EXACT).half(), *groups, 0.0)
    if is_product:
        return measured * math.exp(-half), measured * math.exp(half)
    return measured - half, measured + half


def _find(term: Term, numbers: Quantities) -> Found:
    if term.quantity == SASS:
        return numbers.opcodes(term.family, term.variant, term.case)
    return numbers.find(term.family, term.variant, term.case, term.quantity)


def _value(claim: Claim, values: Mapping[str, float]) -> float:
    """Returns the formula's value; NaN if it has none, as for a division by zero."""
    assert claim.formula is not None
    try:
        value = float(formula.evaluate(claim.formula.text, values, claim.id))
    except (WarplogError, OverflowError):
        return math.nan
    return value if math.isfinite(value) else math.nan


def _shown(claim: Claim, term: Term, number: Found) -> str:
    terms = claim.formula.terms.values() if claim.formula else ()
    family = f"{term.family}." if len({t.family for t in terms}) > 1 else ""
    case = f", {term.case}" if term.case != claim.case else ""
    return f"{term.quantity}({family}{term.variant}{case}) = {number.value:.6g} {number.unit}".strip()


def _joined(reasons: list[str]) -> str:
    distinct = list(dict.fromkeys(reasons))
    more = [f"and {len(distinct) - _MOST_REASONS} more"] if len(distinct) > _MOST_REASONS else []
    return "; ".join([*distinct[:_MOST_REASONS], *more])
