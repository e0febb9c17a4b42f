"""Published claims about kernels, and the formulas over a campaign's numbers that decide them."""

import ast
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import asdict

from warplog.catalog.contract import Case, ClaimEntry
from warplog.core.columns import GPUS, MEASUREMENTS
from warplog.core.errors import WarplogError
from warplog.core.schema import suggest
from warplog.metrics import METRICS

CONFIRMED, REFUTED, WITHIN_NOISE, NOT_MEASURABLE = VERDICTS = (
    "confirmed",
    "refuted",
    "within_noise",
    "not_measurable",
)
NOT_JUDGED = "not judged"
SASS = "sass"
KERNELS_PER_LAUNCH = "kernels_per_launch"
TOTAL = "total_"
GPU_NAMES = tuple(name for name, column in GPUS.items() if column.kind in ("int", "float"))
NUMERIC_COLUMNS = tuple(name for name, column in MEASUREMENTS.items() if column.kind in ("int", "float"))
_FUNCTIONS = {"min": 2, "max": 2, "ceil": 1, "abs": 1}  # with their minimum number of arguments
# Python's parser reads a formula, since a claim names variants and cases in ways that simpleeval does not know
# (`median_us(naive, "1Mi")`, `sgemm.cublas`). Each term becomes a name, and simpleeval evaluates what is left.
_PARTS = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.USub, ast.UAdd, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
)


@dataclass(frozen=True)
class Term:
    """One number in a formula: `quantity` of a variant at a case.

    For the quantity `sass`, `case` is an opcode and includes its modifiers: `LDG` counts LDG.E.128 but not LDGSTS.
    """

    quantity: str
    family: str
    variant: str
    case: str


@dataclass(frozen=True)
class Formula:
    """A formula for warplog.core.formula: `text` refers to terms by name; `names` are those of case and GPU."""

    text: str
    terms: Mapping[str, Term]
    names: tuple[str, ...]


def parse_formula(text: str, family: str, case: str, where: str) -> Formula:
    """Parses the formula of a claim.

    A term is `quantity(variant)`, `quantity(variant, "case")` or `quantity(family.variant, "case")`; the default
    case is the claim's. A quantity is a numeric column of the table `measurements`, a metric of the registry,
    `total_<metric>` (summed over the launch's kernels), `kernels_per_launch` or `sass(variant, "LDG.E.128")`, the
    number of SASS instructions with this opcode and any further modifiers. Other names are parameters of the claim's
    case and numeric columns of the table `gpus`. The arithmetic is that of warplog.core.formula.

    Args:
        family: family of the claim.
        case: case of the claim.
        where: prefix of errors, usually file and key.

    Raises:
        WarplogError: The text is not such a formula.
    """
    reader = _Reader(family, case, f"{where}: {text!r}")
    try:
        tree = reader.visit(ast.parse(text.strip(), mode="eval"))
        plain = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise WarplogError(f"{where}: {text!r} is not a formula ({error})") from None
    return Formula(plain, reader.terms, tuple(dict.fromkeys(reader.names)))


def check_formula(
    formula: Formula, family: str, variants: Collection[str], cases: Collection[str], where: str
) -> None:
    """Checks the names in a formula; terms of other families are not checked.

    Raises:
        WarplogError: A term names a variant or a timed case that `family` does not have.
    """
    for term in formula.terms.values():
        if term.family != family:
            continue
        if term.variant not in variants:
            raise WarplogError(f"{where}: no variant {term.variant!r}; {suggest(term.variant, variants)}")
        if term.quantity != SASS and term.case not in cases:
            raise WarplogError(f"{where}: no timed case {term.case!r}; {suggest(term.case, cases)}")


class _Reader(ast.NodeTransformer):
    """Replaces each term by a name and rejects everything but arithmetic."""

    def __init__(self, family: str, case: str, where: str) -> None:
        self.terms: dict[str, Term] = {}
        self.names: list[str] = []
        self._family, self._case, self._where = family, case, where

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self._refused("a term is quantity(variant) or quantity(variant, 'case')")
        if node.func.id in _FUNCTIONS:
            if len(node.args) < _FUNCTIONS[node.func.id]:
                raise self._refused(f"{node.func.id} requires {_FUNCTIONS[node.func.id]} arguments")
            node.args = [self.visit(argument) for argument in node.args]
            return node
        term = self._term(node.func.id, node.args)
        name = next((n for n, other in self.terms.items() if other == term), f"_{len(self.terms)}")
        self.terms[name] = term
        return ast.Name(name, ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self.names.append(node.id)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise self._refused(f"{node.value!r} is not a number")
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _PARTS):
            raise self._refused("only terms, numbers, + - * / // % **, min, max, ceil and abs are allowed")
        return super().generic_visit(node)

    def _term(self, quantity: str, arguments: list[ast.expr]) -> Term:
        known = [*NUMERIC_COLUMNS, *METRICS, SASS, KERNELS_PER_LAUNCH]
        if quantity not in known and quantity.removeprefix(TOTAL) not in METRICS:
            raise self._refused(f"unknown quantity {quantity!r}; {suggest(quantity, known)}")
        match arguments:
            case [ast.Name(id=variant)] if quantity != SASS:
                return Term(quantity, self._family, variant, self._case)
            case [ast.Name(id=variant), ast.Constant(value=str(case))]:
                return Term(quantity, self._family, variant, case)
            case [ast.Attribute(value=ast.Name(id=family), attr=variant), ast.Constant(value=str(case))]:
                return Term(quantity, family, variant, case)
            case _:
                raise self._refused(
                    f"write {quantity}(variant), or {quantity}(variant, 'case') or (family.variant, 'case')"
                )

    def _refused(self, why: str) -> WarplogError:
        return WarplogError(f"{self._where}: {why}")


_NUMBER = r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?"
_AGAINST = re.compile(rf"\s*(>=|<=|==|>|<)\s*({_NUMBER})\s*")
_RATIO = re.compile(
    r"(x|%)(?: .*)?|"
)  # units of ratios, where a range is a tolerance: "x", "% of the wall time"
_COUNT_TOLERANCE = 0.0101
_WITHIN = re.compile(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*")
_GRAMMAR = "write '>= 5', '> 5', '<= 5', '< 5', '== 5' or '4 .. 6'"


@dataclass(frozen=True)
class Range:
    """The values that an assertion allows: from `low` to `high`, which belong to it unless it is `open`.

    A single value allows others that are equal to nine digits.
    """

    low: float = -math.inf
    high: float = math.inf
    open: bool = False

    def holds(self, value: float) -> bool:
        """Returns whether a value is allowed."""
        if self.low == self.high:
            return math.isclose(value, self.low, rel_tol=1e-9)
        return self.low < value < self.high if self.open else self.low <= value <= self.high


class Claim(ClaimEntry, frozen=True, kw_only=True):
    """A published claim and how a campaign judges it; `case` is the one that the formula refers to by default.

    Attributes:
        formula: the parsed formula of the measured number; None if it cannot be measured.
        allowed: the numbers that confirm the claim; None if it is not judged.
    """

    formula: Formula | None
    allowed: Range | None


def parse_range(condition: str) -> Range:
    """Returns the numbers that meet '>= 5', '> 5', '<= 5', '< 5', '== 5' or '4 .. 6' (both included).

    Raises:
        WarplogError: The condition has none of these forms.
    """
    if within := _WITHIN.fullmatch(condition):
        return Range(float(within[1]), float(within[2]))
    against = _AGAINST.fullmatch(condition)
    if not against:
        raise WarplogError(f"{condition!r}: {_GRAMMAR}")
    sign, limit = against[1], float(against[2])
    return Range(
        -math.inf if sign[0] == "<" else limit, math.inf if sign[0] == ">" else limit, open=len(sign) == 1
    )


def condition_words(condition: str, unit: str) -> str:
    """Returns the condition as shown: with the unit of a ratio, as in ">= 2x" or ">= 85 %".

    A range of at most 0.01 around an integer count is "== 2", not "1.99 .. 2.01".
    """
    within, ratio = _WITHIN.fullmatch(condition), _RATIO.fullmatch(unit)
    if ratio and condition:
        return f"{condition}{ {'x': 'x', '%': ' %'}.get(ratio[1], '') }"
    if not within:
        return condition
    low, high = map(float, within.groups())
    middle = round((low + high) / 2)
    return f"== {middle}" if max(middle - low, high - middle) <= _COUNT_TOLERANCE else condition


def make_claim(entry: ClaimEntry, family: str, headline_case: str, where: str) -> Claim:
    """Makes a claim from its entry in family.yaml; its case defaults to the headline case.

    Raises:
        WarplogError: The formula or the condition is invalid, or missing without `not_judged`.
    """
    where, case = f"{where}: claims: {entry.id}", entry.case or headline_case
    if bool(entry.confirmed_if) == bool(entry.not_judged) or (entry.confirmed_if and not entry.measure):
        raise WarplogError(f"{where}: requires measure and confirmed_if, or not_judged with the reason")
    try:
        allowed = parse_range(entry.confirmed_if) if entry.confirmed_if else None
    except WarplogError as error:
        raise WarplogError(f"{where}: confirmed_if: {error}") from None
    formula = parse_formula(entry.measure, family, case, f"{where}: measure") if entry.measure else None
    return Claim(**{**asdict(entry), "case": case}, formula=formula, allowed=allowed)


def check_claims(
    claims: Collection[Claim], family: str, variants: Collection[str], cases: Mapping[str, Case], where: str
) -> None:
    """Checks the claims of a family.

    Raises:
        WarplogError: Two claims share an id, or a claim names an unknown variant, case or number.
    """
    ids = [claim.id for claim in claims]
    twice = {i for i in ids if ids.count(i) > 1}
    if twice:
        raise WarplogError(f"{where}: claims: the id {min(twice)!r} occurs twice")
    for claim in claims:
        here = f"{where}: claims: {claim.id}"
        check_measure(claim.formula, claim.case, family, variants, cases, here)
        terms = claim.formula.terms.values() if claim.formula else ()
        measured = {name for term in terms for name in (term.variant, f"{term.family}.{term.variant}")}
        for kernel, variant in claim.kernels.items():
            if variant not in measured:
                raise WarplogError(f"{here}: kernels: {kernel}: {variant!r} is not in `measure`")


def check_measure(
    formula: Formula | None,
    case: str,
    family: str,
    variants: Collection[str],
    cases: Mapping[str, Case],
    where: str,
) -> None:
    """Checks the formula of a claim or ceiling, None if it has none, and the case that it refers to.

    Raises:
        WarplogError: It names an unknown variant, case or number.
    """
    if case not in cases:
        raise WarplogError(f"{where}: case: no timed case {case!r}; {suggest(case, cases)}")
    if formula is None:
        return
    check_formula(formula, family, variants, cases, f"{where}: measure")
    names = {*GPU_NAMES, *cases[case].values}
    for name in formula.names:
        if name not in names:
            raise WarplogError(f"{where}: measure: unknown name {name!r}; {suggest(name, names)}")


def verdict_words(verdict: str, measured: float, about: str) -> str:
    """Returns a verdict for display: "within noise", "not measurable", "not judged: about an A6000".

    A claim whose number is measured but not judged is "not judged", and so is one that is `about` another GPU.
    """
    if verdict != NOT_MEASURABLE:
        return verdict.replace("_", " ")
    if about:
        return f"{NOT_JUDGED}: about {about}"
    return verdict.replace("_", " ") if math.isnan(measured) else NOT_JUDGED


def counts(verdicts: Iterable[str]) -> dict[str, int]:
    """Counts the verdicts; all of VERDICTS are keys of the result."""
    listed = list(verdicts)
    return {verdict: listed.count(verdict) for verdict in VERDICTS}
