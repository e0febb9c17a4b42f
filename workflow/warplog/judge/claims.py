"""Stage claims: judge the claims of the families by a campaign's numbers, one row per claim."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TextIO

from warplog.analysis import answers
from warplog.analysis.answers import MET, MISSED, Campaign, Evaluation
from warplog.analysis.quantities import Number, Quantities
from warplog.catalog.claims import (
    CONFIRMED,
    NOT_MEASURABLE,
    REFUTED,
    SASS,
    WITHIN_NOISE,
    Claim,
    Range,
    Term,
    verdict_words,
)
from warplog.catalog.family import Family
from warplog.core.columns import Cell, Row, number
from warplog.core.text import join_notes, printable

_VERDICTS = {MET: CONFIRMED, MISSED: REFUTED, answers.WITHIN_NOISE: WITHIN_NOISE}
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
    those of the numbers that are known. `about` is the GPU of the claim, if another; the claim is then not judged.
    """

    verdict: str
    measured: float
    unit: str
    evidence: str
    reason: str
    margin: str = ""
    cases: tuple[str, ...] = ()
    about: str = ""


def judge(
    claim: Claim,
    values: Mapping[str, float],
    numbers: Quantities,
    gpu: Mapping[str, float],
    gpu_name: str,
) -> Judgement:
    """Judges a claim by the numbers of a campaign.

    Args:
        values: the parameters of the claim's case.
        gpu: the numbers of the table `gpus`; NaN for an unknown one.
        gpu_name: what the driver calls the GPU.
    """
    about = "" if answers.is_same_gpu(claim.about, gpu_name) else claim.about
    not_judged = ": ".join(filter(None, (f"about {about}" if about else "", claim.not_judged)))
    if claim.formula is None:
        return Judgement(NOT_MEASURABLE, math.nan, "", "", not_judged, about=about)
    terms, evaluation = claim.formula.terms, answers.evaluate(claim.formula, {**gpu, **values}, numbers)
    reasons = [number.reason for number in evaluation.numbers.values() if number.reason]
    reasons += [
        f"{name} of this GPU is not known" for name, value in evaluation.named.items() if math.isnan(value)
    ]
    if not reasons and math.isnan(evaluation.value):
        reasons = ["the formula has no value for these numbers"]
    measured = {name: number for name, number in evaluation.numbers.items() if not number.reason}
    evidence = [_shown(claim, terms[name], number) for name, number in measured.items()]
    evidence += [f"{name} = {value:.6g}" for name, value in evaluation.named.items() if not math.isnan(value)]
    verdict, margin = NOT_MEASURABLE, ""
    searched = answers.not_searched(evaluation)
    if not_judged:
        reasons = [not_judged, *reasons]
    elif searched and not reasons:
        reasons = [f"{terms[searched].variant} has default parameters: there is no search on this GPU"]
    elif not reasons and claim.allowed:
        verdict = _VERDICTS[evaluation.word(claim.allowed)]
        margin = EXCEEDED if verdict == CONFIRMED and _exceeds(claim.allowed, evaluation) else ""
        reasons = [
            f"note on {terms[name].variant}: {join_notes(*(remark.words() for remark in number.remarks))}"
            for name, number in measured.items()
            if number.remarks
        ]
    cases = tuple(dict.fromkeys(terms[name].case for name in measured if terms[name].quantity != SASS))
    return Judgement(
        verdict,
        evaluation.value,
        claim.unit or evaluation.unit,
        "; ".join(evidence),
        _joined(reasons),
        margin,
        cases,
        about,
    )


def judge_all(families: Mapping[str, Family], campaign: Campaign) -> list[dict[str, Cell]]:
    """Returns the rows of the table `claims` for each family in the campaign that is also in `families`."""
    rows = []
    for name in dict.fromkeys(campaign.measurements["family"]):
        if family := families.get(name):
            origin = campaign.origin(name)
            for claim in family.claims:
                values = family.cases[claim.case].values
                judged = judge(claim, values, campaign.numbers, campaign.gpu, str(origin["gpu_name"]))
                rows.append(_row(claim, name, judged) | origin)
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
        for label in ("published", "kernels", "evidence", "reason"):
            if row.get(label):
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
        "kernels": ", ".join(f"{kernel} = {variant}" for kernel, variant in claim.kernels.items()),
        "case": claim.case,
        "cases": ", ".join(judged.cases) or claim.case,
        "evidence": judged.evidence,
        "about": judged.about,
        "reason": judged.reason,
    }


def _exceeds(allowed: Range, evaluation: Evaluation) -> bool:
    """Returns whether a number that confirms a claim is far from its only bound, as `Judgement` says."""
    is_least = math.isinf(allowed.high)
    bound = allowed.low if is_least else allowed.high
    both = not is_least and not math.isinf(allowed.low)
    if both or not (evaluation.low < evaluation.high and evaluation.value > 0 and bound not in (0, 1)):
        return False
    distance = evaluation.value / bound if is_least else bound / evaluation.value
    if is_least and 1 < bound < _GAIN_HALVED:
        distance = (evaluation.value - 1) / (2 * (bound - 1))
    return distance >= _EXCEEDED_FROM


def _shown(claim: Claim, term: Term, number: Number) -> str:
    terms = claim.formula.terms.values() if claim.formula else ()
    family = f"{term.family}." if len({t.family for t in terms}) > 1 else ""
    case = f", {term.case}" if term.case != claim.case else ""
    return f"{term.quantity}({family}{term.variant}{case}) = {number.value:.6g} {number.unit}".strip()


def _joined(reasons: list[str]) -> str:
    distinct = list(dict.fromkeys(reasons))
    more = [f"and {len(distinct) - _MOST_REASONS} more"] if len(distinct) > _MOST_REASONS else []
    return "; ".join([*distinct[:_MOST_REASONS], *more])
