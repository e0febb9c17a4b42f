"""The formula of a claim: numbers of variants by name, `median_us(naive, "1Mi")`, and arithmetic on them."""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from warplog.errors import WarplogError
from warplog.metrics import METRICS
from warplog.schema import suggest
from warplog.table_columns import GPUS, MEASUREMENTS

SASS = "sass"
TOTAL = "total_"
GPU_NAMES = tuple(name for name, column in GPUS.items() if column.kind in ("int", "float"))
_COLUMNS = tuple(name for name, column in MEASUREMENTS.items() if column.kind in ("int", "float"))
_FUNCTIONS = {"min": 2, "max": 2, "ceil": 1, "abs": 1}  # and their least number of arguments
_PARTS = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.USub, ast.UAdd, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
)
_LONGEST = 500


@dataclass(frozen=True)
class Term:
    """One number in a formula: `quantity` of a variant at a case.

    Of the quantity `sass`, `case` is the opcode: with its forms, `LDG` counts LDG.E.128, not LDGSTS.
    """

    quantity: str
    family: str
    variant: str
    case: str


@dataclass(frozen=True)
class Formula:
    """`text` as warplog.formula evaluates it: each term is a name, beside `names` of case and GPU."""

    text: str
    terms: Mapping[str, Term]
    names: tuple[str, ...]


def parse(text: str, family: str, case: str, where: str) -> Formula:
    """The formula in `text`.

    A term is `quantity(variant)`, `quantity(variant, "case")`, or `quantity(family.variant, "case")`; without
    a case, that of the claim is meant. A quantity is a number of the table `measurements`, a metric of the
    registry, `total_<metric>` (summed over the launch's kernels), or `sass(variant, "LDG.E.128")`, the
    instructions of the machine code that are this opcode or a form of it. Other names are parameters of the
    claim's case and numbers of the table `gpus`; the arithmetic is that of warplog.formula.

    Args:
        family: the one whose claim it is.
        case: the claim's case.
        where: file and key, for the error.

    Raises:
        WarplogError: it is no such formula, or longer than 500 characters.
    """
    if len(text) > _LONGEST:
        raise WarplogError(f"{where}: the formula is {len(text)} characters long; {_LONGEST} are allowed")
    reader = _Reader(family, case, f"{where}: {text!r}")
    try:
        tree = reader.visit(ast.parse(text.strip(), mode="eval"))
        plain = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise WarplogError(f"{where}: {text!r} is no formula ({error})") from None
    return Formula(plain, reader.terms, tuple(dict.fromkeys(reader.names)))


def check(
    formula: Formula, family: str, variants: Collection[str], cases: Collection[str], where: str
) -> None:
    """Raises WarplogError where a term names a variant or a timed case that `family` has not.

    Terms of other families are left alone.
    """
    for term in formula.terms.values():
        if term.family != family:
            continue
        if term.variant not in variants:
            raise WarplogError(f"{where}: no variant {term.variant!r}; {suggest(term.variant, variants)}")
        if term.quantity != SASS and term.case not in cases:
            raise WarplogError(f"{where}: no timed case {term.case!r}; {suggest(term.case, cases)}")


class _Reader(ast.NodeTransformer):
    """Replaces each term by a name and refuses what is no arithmetic."""

    def __init__(self, family: str, case: str, where: str) -> None:
        self.terms: dict[str, Term] = {}
        self.names: list[str] = []
        self._family, self._case, self._where = family, case, where

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self._refused("a term is quantity(variant) or quantity(variant, 'case')")
        if node.func.id in _FUNCTIONS:
            if len(node.args) < _FUNCTIONS[node.func.id]:
                raise self._refused(f"{node.func.id} needs {_FUNCTIONS[node.func.id]} arguments")
            node.args = [self.visit(argument) for argument in node.args]
            return node
        term = self._term(node.func.id, node.args)
        name = next((n for n, known in self.terms.items() if known == term), f"_{len(self.terms)}")
        self.terms[name] = term
        return ast.Name(name, ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self.names.append(node.id)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise self._refused(f"{node.value!r} is no number")
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _PARTS):
            raise self._refused("only terms, numbers, + - * / // % **, min, max, ceil and abs are allowed")
        return super().generic_visit(node)

    def _term(self, quantity: str, arguments: list[ast.expr]) -> Term:
        metric = quantity.removeprefix(TOTAL)
        if quantity != SASS and quantity not in _COLUMNS and metric not in METRICS:
            raise self._refused(
                f"unknown quantity {quantity!r}; {suggest(quantity, [*_COLUMNS, *METRICS, SASS])}"
            )
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
