"""Answers what is asserted of kernels by the numbers of a campaign: claims, predictions, properties of compiled code.

Ceilings of the GPU are answered like these, into a table of their own.

Each assertion is a formula and a range. Its value comes with the interval in which the same code shows it in another
run, with the probability of a verdict (`analysis.verdicts`). It is met if the whole interval lies in the range, missed
if none of it does, and within noise otherwise.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.analysis.quantities import Number, Quantities
from warplog.analysis.verdicts import EXACT, Noise, between
from warplog.catalog.assertions import Assertion, claimed, expected, predicted, shown
from warplog.catalog.claims import GPU_NAMES, SASS, Formula, Range, Term
from warplog.catalog.family import Family
from warplog.core import formula as arithmetic
from warplog.core.columns import Cell
from warplog.core.errors import WarplogError
from warplog.records.remarks import NotTuned
from warplog.tables.conclusions import Answer, Ceiling, cells
from warplog.tables.files import ORIGIN_COLUMNS, as_rows, read_table

if TYPE_CHECKING:
    import pandas as pd

MET, MISSED, WITHIN_NOISE, NOT_MEASURABLE = WORDS = ("met", "missed", "within_noise", "not_measurable")
OTHER_GPU, NOT_JUDGED, NO_VALUE, NO_PEAK = "other_gpu", "not_judged", "no_value", "no_peak"
NOT_TUNED = "not_tuned"


@dataclass(frozen=True)
class Campaign:
    """What assertions are answered by: the tables of a campaign on one GPU.

    Attributes:
        gpu: the numbers of the table `gpus`; NaN for an unknown one.
    """

    measurements: "pd.DataFrame"
    numbers: Quantities
    gpu: Mapping[str, float]

    def origin(self, family: str) -> dict[str, Cell]:
        """Returns the origin columns of the rows of a family."""
        rows = self.measurements.loc[self.measurements["family"] == family, ORIGIN_COLUMNS]
        return as_rows(rows.head(1))[0]


@dataclass(frozen=True)
class Evaluation:
    """The value of a formula with its interval, in `unit`; NaN if it has none.

    Attributes:
        unit: that of the formula's only number; "" if it is computed from several.
        numbers, named: those of its terms, and of its other names.
    """

    value: float
    low: float
    high: float
    unit: str
    numbers: Mapping[str, Number]
    named: Mapping[str, float]

    def word(self, allowed: Range) -> str:
        """Returns whether the value, which is known, is in a range: MET, MISSED or WITHIN_NOISE."""
        inside = [allowed.holds(value) for value in (self.low, self.value, self.high)]
        if all(inside):
            return MET
        spanned = self.low < allowed.low and allowed.high < self.high
        return WITHIN_NOISE if any(inside) or spanned else MISSED


_NOTHING = Evaluation(math.nan, math.nan, math.nan, "", {}, {})


def read(tables: Path) -> Campaign:
    """Returns the campaign in a folder of tables.

    Raises:
        WarplogError: A table is not readable.
    """
    names = ("measurements", "metrics", "gpus", "floors")
    measurements, metrics, gpus, floors = (read_table(tables, name) for name in names)
    peaks = {
        name: float(gpus[name].iloc[0]) if name in gpus and len(gpus) else math.nan for name in GPU_NAMES
    }
    return Campaign(measurements, Quantities(measurements, metrics, floors), peaks)


def answer_all(families: Mapping[str, Family], campaign: Campaign) -> list[dict[str, Cell]]:
    """Returns the rows of the table `answers`, of the families and variants in both `families` and the tables."""
    rows = []
    for name, measured in campaign.measurements.groupby("family", sort=False):
        if family := families.get(str(name)):
            origin = campaign.origin(family.name)
            for assertion in _asserted(family, set(measured["variant"])):
                rows.append(cells(answer(assertion, family, campaign, str(origin["gpu_name"]))) | origin)
    return rows


def ceilings(families: Mapping[str, Family], campaign: Campaign) -> list[dict[str, Cell]]:
    """Returns the rows of the table `ceilings`, of the families in both `families` and the tables."""
    rows = []
    for name in campaign.measurements["family"].unique():
        for entry in families[name].ceilings if name in families else ():
            family = families[name]
            origin = campaign.origin(family.name)
            assertion = shown(entry, family.name, family.headline_case, str(family.file))
            found = answer(assertion, family, campaign, str(origin["gpu_name"]))
            row = Ceiling(
                family.name,
                found.variant,
                found.case,
                found.id,
                entry.about,
                entry.measure,
                found.measured,
                found.measured_low,
                found.measured_high,
                found.unit,
                found.low,
                found.high,
                found.word,
                found.reason,
                found.reason_of,
            )
            rows.append(cells(row) | origin)
    return rows


def answer(assertion: Assertion, family: Family, campaign: Campaign, gpu_name: str) -> Answer:
    """Returns the answer to an assertion about a family on the GPU of this name."""
    evaluation, allowed = _NOTHING, assertion.allowed
    if assertion.formula is not None:
        values = family.cases[assertion.case].values if assertion.case else {}
        evaluation = evaluate(assertion.formula, {**campaign.gpu, **values}, campaign.numbers)
    if assertion.said_of and not is_same_gpu(assertion.said_of, gpu_name):
        reason, reason_of = OTHER_GPU, assertion.said_of
    elif assertion.formula is None or allowed is None:
        reason, reason_of = NOT_JUDGED, ""
    else:
        reason, reason_of = _missing(assertion.formula, evaluation)
        if not reason and assertion.kind == "claim" and (name := not_searched(evaluation)):
            reason, reason_of = NOT_TUNED, assertion.formula.terms[name].variant
    word = NOT_MEASURABLE if reason or allowed is None else evaluation.word(allowed)
    low, high = (allowed.low, allowed.high) if allowed else (-math.inf, math.inf)
    nearest = low if evaluation.value < low else high
    return Answer(
        family.name,
        assertion.variant,
        assertion.kind,
        assertion.id,
        assertion.quantity,
        assertion.against,
        assertion.case,
        assertion.regime,
        low if math.isfinite(low) else math.nan,
        high if math.isfinite(high) else math.nan,
        assertion.unit or evaluation.unit,
        assertion.said_of,
        assertion.source,
        evaluation.value,
        evaluation.low,
        evaluation.high,
        word,
        evaluation.value / nearest - 1 if word == MISSED and nearest else math.nan,
        reason,
        reason_of,
    )


def is_same_gpu(said: str, name: str) -> bool:
    """Returns whether the driver's name of a GPU has all words of what a text calls one: "RTX A6000", "an H100"."""
    of_said, of_name = (set(re.findall(r"\w+", text.lower())) for text in (said, name))
    return of_said - {"a", "an"} <= of_name


def evaluate(formula: Formula, names: Mapping[str, float], numbers: Quantities) -> Evaluation:
    """Returns the value of a formula.

    Args:
        names: the parameters of the case and the numbers of the GPU; NaN for an unknown one.
    """
    terms = {name: _find(term, numbers) for name, term in formula.terms.items()}
    named = {name: names[name] for name in formula.names}
    values = {**named, **{name: number.value for name, number in terms.items()}}
    value = math.nan if any(map(math.isnan, values.values())) else _value(formula, values)
    low, high = (math.nan, math.nan) if math.isnan(value) else _interval(formula, value, values, terms)
    unit = terms[formula.text].unit if formula.text in terms else ""
    return Evaluation(value, low, high, unit, terms, named)


def not_searched(evaluation: Evaluation) -> str:
    """Returns the first term whose variant has default parameters instead of those of a search; "" if there is none.

    What is claimed of a tuned kernel says nothing about such a variant.
    """
    return next(
        (
            name
            for name, number in evaluation.numbers.items()
            if any(isinstance(remark, NotTuned) for remark in number.remarks)
        ),
        "",
    )


def _asserted(family: Family, chosen: Iterable[str]) -> Iterator[Assertion]:
    """Yields what is asserted of a family and of those of its variants that were chosen."""
    for variant in family.variants:
        if variant.name in chosen:
            yield from predicted(variant, family.name, family.headline_case, str(family.file))
            yield from expected(variant, family.name)
    order = [variant.name for variant in family.variants]
    yield from claimed(family.claims, family.name, order, family.baseline)


def _missing(formula: Formula, evaluation: Evaluation) -> tuple[str, str]:
    """Returns the code of what a formula without a value lacks, and of what; two empty texts if it has one."""
    for name, number in evaluation.numbers.items():
        if number.code:
            return number.code, formula.terms[name].variant
    for name, value in evaluation.named.items():
        if math.isnan(value):
            return NO_PEAK, name
    return (NO_VALUE, "") if math.isnan(evaluation.value) else ("", "")


def _interval(
    formula: Formula, measured: float, values: Mapping[str, float], numbers: Mapping[str, Number]
) -> tuple[float, float]:
    """Returns the ends between which the same code shows the formula's value, with the probability of a verdict.

    Each time is moved by its standard deviation, and the changes of the value add up in quadrature. A product or
    quotient of times has the interval of its logarithm, so that an assertion about which of two times is shorter is
    answered as the two are compared.
    """

    def moved(name: str, by: float) -> float:
        value = _value(formula, {**values, name: values[name] * math.exp(by)})
        return measured if math.isnan(value) else value

    noisy = {name: number.noise for name, number in numbers.items() if number.noise.deviation > 0}
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


def _find(term: Term, numbers: Quantities) -> Number:
    if term.quantity == SASS:
        return numbers.opcodes(term.family, term.variant, term.case)
    return numbers.find(term.family, term.variant, term.case, term.quantity)


def _value(formula: Formula, values: Mapping[str, float]) -> float:
    """Returns the formula's value; NaN if it has none, as for a division by zero."""
    try:
        value = float(arithmetic.evaluate(formula.text, values, "formula"))
    except (WarplogError, OverflowError):
        return math.nan
    return value if math.isfinite(value) else math.nan
