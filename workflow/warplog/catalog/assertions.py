"""What is asserted of a family's kernels: a formula over a campaign's numbers, the allowed range, and who says so.

Published claims (`claims:`), what the author of a variant expects (`predicts:`), properties of the compiled code
(`expects:`) and ceilings of the GPU (`ceilings:`) are all of this kind. `analysis.answers` answers them.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from warplog.catalog.claims import (
    NUMERIC_COLUMNS,
    SASS,
    TOTAL,
    Claim,
    Formula,
    Range,
    Term,
    check_formula,
    check_measure,
    parse_formula,
)
from warplog.catalog.contract import Case, CeilingEntry, Prediction, VariantEntry
from warplog.core.columns import MEASUREMENTS
from warplog.core.errors import WarplogError
from warplog.core.schema import suggest
from warplog.metrics import METRICS

_MOST_NAMED = 3
# Formula and unit of the quantities of predictions that are neither a column nor a metric.
DEFINED = {
    "speedup": ("median_us(against) / median_us(variant)", "x"),
    "saved_us": ("median_us(against) - median_us(variant)", "us"),
    "tflops": ("gflops(variant) / 1000", "TFLOP/s"),
    "percent_of_baseline": ("100 * ratio_to_baseline(variant)", "%"),
    "percent_of_dram_peak": ("100 * gbytes_per_s(variant) / dram_gbytes_per_s_peak", "%"),
    "spill_bytes": ("spill_store_bytes(variant) + spill_load_bytes(variant)", "byte"),
}


@dataclass(frozen=True)
class Assertion:
    """One assertion: its `formula`, the values that it allows, and what identifies it in the table `answers`.

    Attributes:
        variant: the variant that it is about; "" if it is about several.
        id: of a claim or ceiling; else "".
        against: variant that the quantity compares with; "" for none.
        regime: of the times in the formula; "" if it has none, or names them itself.
        formula: None if nothing can be measured.
        allowed: None if it is not judged.
        unit: "" for that of the formula's only number.
        said_of: the GPU of the numbers; "" if they hold for any.
    """

    kind: Literal["claim", "predicts", "expects", "ceiling"]
    variant: str
    quantity: str
    formula: Formula | None
    allowed: Range | None
    id: str = ""
    against: str = ""
    case: str = ""
    regime: str = ""
    unit: str = ""
    said_of: str = ""
    source: str = ""


def predicted(variant: VariantEntry, family: str, headline_case: str, where: str) -> Iterator[Assertion]:
    """Yields what `predicts` of a variant says: one assertion per variant to compare with and case.

    Raises:
        WarplogError: A quantity is unknown, or not known in the regime, or has nothing to compare with.
    """
    for prediction in variant.predicts:
        here = f"{where}: predicts: {prediction.quantity}"
        allowed = _range(prediction, here)
        text, unit, compared = _definition(prediction, variant.parent, where)
        for against in compared:
            for case in prediction.cases or (headline_case,):
                formula = parse_formula(text, family, case, here)
                names = {"variant": variant.name, "against": against}
                terms = {
                    name: replace(
                        term,
                        variant=names[term.variant],
                        quantity=_column(term.quantity, prediction.regime, here),
                    )
                    for name, term in formula.terms.items()
                }
                timed = any(term.quantity in MEASUREMENTS for term in terms.values())
                yield Assertion(
                    "predicts",
                    variant.name,
                    prediction.quantity,
                    replace(formula, terms=terms),
                    allowed,
                    against=against,
                    case=case,
                    regime=prediction.regime if timed else "",
                    unit=unit,
                    said_of=prediction.gpu,
                )


def shown(entry: CeilingEntry, family: str, headline_case: str, where: str) -> Assertion:
    """Returns what a family shows of the GPU, with the range that is expected of any GPU.

    Raises:
        WarplogError: The formula is invalid, or the range is empty.
    """
    here, case = f"{where}: ceilings: {entry.ceiling}", entry.case or headline_case
    formula = parse_formula(entry.measure, family, case, f"{here}: measure")
    named = dict.fromkeys(term.variant for term in formula.terms.values())
    return Assertion(
        "ceiling",
        ", ".join(named),
        entry.measure,
        formula,
        _range(entry, here),
        id=entry.ceiling,
        case=case,
        unit=entry.unit,
    )


def expected(variant: VariantEntry, family: str) -> Iterator[Assertion]:
    """Yields what `expects` of a variant says about its compiled code: opcodes that occur, and spilled bytes."""
    for prefix in variant.expects.sass:
        formula = Formula("count", {"count": Term(SASS, family, variant.name, f"{prefix}*")}, ())
        yield Assertion("expects", variant.name, f"sass_{prefix}", formula, Range(low=1))
    if variant.expects.spills is not None:
        terms = {name: Term(f"spill_{name}_bytes", family, variant.name, "") for name in ("store", "load")}
        formula = Formula("store + load", terms, ())
        yield Assertion(
            "expects",
            variant.name,
            "spill_bytes",
            formula,
            Range(high=variant.expects.spills),
            unit=DEFINED["spill_bytes"][1],
        )


def claimed(
    claims: Collection[Claim], family: str, order: Collection[str], baseline: str
) -> Iterator[Assertion]:
    """Yields the claims of a family, whose variants are in this order.

    A claim is about the last variant that its formula names, the baseline only if it names no other; about none if it
    names more than three.
    """
    for claim in claims:
        terms = claim.formula.terms.values() if claim.formula else ()
        named = {term.variant for term in terms if term.family == family}
        own = [name for name in order if name in named - {baseline}] or [*named]
        yield Assertion(
            "claim",
            own[-1] if 0 < len(own) <= _MOST_NAMED else "",
            claim.measure,
            claim.formula,
            claim.allowed,
            id=claim.id,
            case=claim.case,
            unit=claim.unit,
            said_of=claim.about,
            source=claim.source,
        )


def check_predictions(
    variant: VariantEntry,
    family: str,
    headline_case: str,
    variants: Collection[str],
    cases: Mapping[str, Case],
    where: str,
) -> None:
    """Checks `predicts` of a variant of a family with these variants and timed cases.

    Raises:
        WarplogError: As for `predicted`, or a variant or case is unknown.
    """
    for prediction in predicted(variant, family, headline_case, where):
        assert prediction.formula is not None
        check_formula(
            prediction.formula, family, variants, cases, f"{where}: predicts: {prediction.quantity}"
        )


def check_ceilings(
    entries: Collection[CeilingEntry],
    family: str,
    headline_case: str,
    variants: Collection[str],
    cases: Mapping[str, Case],
    where: str,
) -> None:
    """Checks `ceilings` of a family with these variants and timed cases.

    Raises:
        WarplogError: As for `shown`, or a ceiling occurs twice, or a variant, case or number is unknown.
    """
    names = [entry.ceiling for entry in entries]
    for entry in entries:
        if names.count(entry.ceiling) > 1:
            raise WarplogError(f"{where}: ceilings: {entry.ceiling!r} occurs twice")
        ceiling = shown(entry, family, headline_case, where)
        assert ceiling.formula is not None
        check_measure(
            ceiling.formula, ceiling.case, family, variants, cases, f"{where}: ceilings: {entry.ceiling}"
        )


def _range(given: Prediction | CeilingEntry, where: str) -> Range:
    low, high = (
        (-math.inf if given.low is None else given.low),
        (math.inf if given.high is None else given.high),
    )
    if low > high:
        raise WarplogError(f"{where}: low: {low:g} is larger than high: {high:g}; swap them")
    return Range(low, high)


def _definition(prediction: Prediction, parent: str | None, where: str) -> tuple[str, str, tuple[str, ...]]:
    """Returns the formula of what is predicted of `variant`, its unit, and the variants that `against` stands for."""
    text, unit = DEFINED.get(prediction.quantity, (f"{prediction.quantity}(variant)", ""))
    quantities = [*DEFINED, *NUMERIC_COLUMNS, *METRICS]
    if prediction.quantity.removeprefix(TOTAL) not in quantities:
        raise WarplogError(
            f"{where}: predicts: unknown quantity {prediction.quantity!r}; {suggest(prediction.quantity, quantities)}"
        )
    if "(against)" in text:
        if not (prediction.variants or parent):
            raise WarplogError(
                f"{where}: predicts: {prediction.quantity}: requires `against`, since the variant has no parent"
            )
        return text, unit, prediction.variants or (str(parent),)
    if prediction.variants:
        return f"({text}) / ({text.replace('(variant)', '(against)')})", "x", prediction.variants
    return text, unit, ("",)


def _column(quantity: str, regime: str, where: str) -> str:
    """Returns the column of a quantity in a regime."""
    if regime == "rest":
        return quantity
    column = f"{regime}_us" if quantity == "median_us" else f"{regime}_{quantity}"
    if column not in NUMERIC_COLUMNS:
        raise WarplogError(f"{where}: is not known in the regime {regime!r}; remove `regime`")
    return column
