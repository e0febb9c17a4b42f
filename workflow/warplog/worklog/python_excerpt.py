"""Finds the lines of a Python module that show its idea: its longest kernel, or the function `launch`."""

import ast
import re
from collections.abc import Iterator

Span = tuple[int, int]


def main_lines(text: str, most: int, kernel: str = "") -> Span | None:
    """Returns the first and last line of a kernel, or of its longest loop if it has more than `most` lines.

    That is the one named `kernel`, or else the longest. Kernels are functions with a decorator that ends with `jit`,
    and strings that contain `__global__`. Without any it is the function `launch`; None if there is none either, or the
    text is not valid Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    found = list(_kernels(tree)) or [node for node in _functions(tree) if node.name == "launch"]
    if not found:
        return None
    launched = [node for node in found if kernel and _has_name(node, kernel)]
    longest = max(launched or found, key=_height)
    if _height(longest) > most:
        loops = (node for node in ast.walk(longest) if isinstance(node, ast.For | ast.While))
        longest = max(loops, key=_height, default=longest)
    return _span(longest)


def _kernels(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    for function in _functions(tree):
        if any(ast.unparse(one).partition("(")[0].endswith("jit") for one in function.decorator_list):
            yield function
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__global__" in node.value:
            yield node


def _has_name(node: ast.expr | ast.stmt, kernel: str) -> bool:
    """Returns whether it is the function of that name, or a string with CUDA C++ that defines it."""
    if isinstance(node, ast.FunctionDef):
        return node.name == kernel
    text = str(node.value) if isinstance(node, ast.Constant) else ""
    return re.search(rf"\b{re.escape(kernel)}\s*\(", text) is not None


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef))


def _height(node: ast.expr | ast.stmt) -> int:
    first, last = _span(node)
    return last - first


def _span(node: ast.expr | ast.stmt) -> Span:
    decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
    return min(node.lineno, *decorators, node.lineno), node.end_lineno or node.lineno
