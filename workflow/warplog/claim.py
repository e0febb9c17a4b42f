"""A claim: what an article asserts of a family's kernels, and the number of a campaign that decides it."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from warplog import claim_formula
from warplog.claim_formula import GPU_NAMES, Formula
from warplog.contract import Case
from warplog.errors import WarplogError
from warplog.schema import suggest

_NUMBER = r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?"
_AGAINST = re.compile(rf"\s*(>=|<=|==|>|<)\s*({_NUMBER})\s*")
_WITHIN = re.compile(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*")
_GRAMMAR = "write '>= 5', '> 5', '<= 5', '< 5', '== 5' or '4 .. 6'"


@dataclass(frozen=True)
class Claim:
    """An assertion and how a campaign judges it.

    `formula` gives the measured number (None where there is none to be had), `confirmed_if` is the condition
    on it. `not_judged` says why no condition is set: then the number, if any, is only shown.
    """

    id: str
    claim: str
    source: str
    published: str
    measure: str
    formula: Formula | None
    unit: str
    case: str
    confirmed_if: str
    not_judged: str

    def holds(self, measured: float) -> bool:
        """Whether the condition holds for a measured number."""
        return condition_holds(self.confirmed_if, measured)


def condition_holds(condition: str, value: float) -> bool:
    """Whether `value` fulfils '>= 5', '> 5', '<= 5', '< 5', '== 5' (to nine digits) or '4 .. 6' (both included).

    Raises:
        WarplogError: the condition is none of these.
    """
    within = _WITHIN.fullmatch(condition)
    if within:
        low, high = map(float, within.groups())
        return low <= value <= high
    against = _AGAINST.fullmatch(condition)
    if not against:
        raise WarplogError(f"{condition!r}: {_GRAMMAR}")
    limit = float(against[2])
    return {
        ">=": value >= limit,
        ">": value > limit,
        "<=": value <= limit,
        "<": value < limit,
        "==": math.isclose(value, limit, rel_tol=1e-9),
    }[against[1]]


def make_claim(data: Mapping[str, Any], family: str, headline_case: str, where: str) -> Claim:
    """The claim of one entry of family.yaml; its case is the headline case unless it names one.

    Raises:
        WarplogError: formula or condition are not right, or are missing without a reason.
    """
    where = f"{where}: claims: {data['id']}"
    case, measure = data.get("case", headline_case), data.get("measure", "")
    condition, not_judged = data.get("confirmed_if", ""), data.get("not_judged", "")
    if bool(condition) == bool(not_judged) or (condition and not measure):
        raise WarplogError(f"{where}: needs measure and confirmed_if, or not_judged with the reason")
    if condition:
        try:
            condition_holds(condition, 0.0)
        except WarplogError as error:
            raise WarplogError(f"{where}: confirmed_if: {error}") from None
    return Claim(
        id=data["id"],
        claim=data["claim"],
        source=data["source"],
        published=data.get("published", ""),
        measure=measure,
        formula=claim_formula.parse(measure, family, case, f"{where}: measure") if measure else None,
        unit=data.get("unit", ""),
        case=case,
        confirmed_if=condition,
        not_judged=not_judged,
    )


def check_claims(
    claims: Collection[Claim], family: str, variants: Collection[str], cases: Mapping[str, Case], where: str
) -> None:
    """Raises WarplogError where claims share an id, or name a variant, case or number that is not there."""
    ids = [claim.id for claim in claims]
    twice = {i for i in ids if ids.count(i) > 1}
    if twice:
        raise WarplogError(f"{where}: claims: {min(twice)!r} is there twice")
    for claim in claims:
        here = f"{where}: claims: {claim.id}"
        if claim.case not in cases:
            raise WarplogError(f"{here}: case: no timed case {claim.case!r}; {suggest(claim.case, cases)}")
        if claim.formula is None:
            continue
        claim_formula.check(claim.formula, family, variants, cases, f"{here}: measure")
        known = {*GPU_NAMES, *cases[claim.case].values}
        for name in claim.formula.names:
            if name not in known:
                raise WarplogError(f"{here}: measure: unknown name {name!r}; {suggest(name, known)}")
