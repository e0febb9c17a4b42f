"""The languages that a variant can be written in, and what a Python variant must be."""

import symtable
from collections.abc import Mapping
from pathlib import Path

from warplog.catalog.contract import VariantEntry
from warplog.core.errors import WarplogError

CUDA = "cuda"
# The modules that each language requires. Triton's launchers get PyTorch tensors.
MODULES: Mapping[str, tuple[str, ...]] = {
    CUDA: (),
    "triton": ("triton", "torch"),
    "cupy": ("cupy",),
    "torch": ("torch",),
}
_PYTHON = tuple(language for language in MODULES if language != CUDA)
_REFUSED = {
    "cute": "CuTe DSL keeps its compiled kernels to itself, so warplog cannot read their registers, spills and machine"
    " code, and none of its releases is tested with warplog; a module with `language: torch` can call such a kernel,"
    " which is then checked, timed and profiled without these"
}
LAUNCH = "launch(arrays, scalars, stream)"


def source_of(entry: VariantEntry, place: str) -> str:
    """Returns the name of a variant's source: what family.yaml says, else <name>.cu, or <name>.py.

    Args:
        place: family.yaml and variant, for errors.

    Raises:
        WarplogError: The language does not fit the file, or is not supported.
    """
    language, wanted = entry.language, ".cu" if entry.language == CUDA else ".py"
    if language in _REFUSED:
        raise WarplogError(f"{place}: language: {language} is not supported: {_REFUSED[language]}")
    file = entry.source or f"{entry.name}{wanted}"
    if not file.endswith(wanted):
        remedy = f"; {file} is Python; add language: {' | '.join(_PYTHON)}" if language == CUDA else ""
        raise WarplogError(f"{place}: language: {language} requires a {wanted} file, not {file}{remedy}")
    return file


def check_module(path: Path) -> None:
    """Checks that a Python variant defines `launch`, without running it: planning imports no array library.

    Raises:
        WarplogError: The file cannot be read as Python, or `launch` is missing.
    """
    if "launch" not in defined_names(path):
        raise WarplogError(f"{path}: the function launch is missing; define {LAUNCH}")


def defined_names(path: Path) -> set[str]:
    """Returns the names that a Python file defines or imports at its top level, without running it.

    Raises:
        WarplogError: The file cannot be read as Python.
    """
    try:
        table = symtable.symtable(path.read_text(encoding="utf-8"), str(path), "exec")
    except (SyntaxError, ValueError) as error:
        raise WarplogError(f"{path}: cannot be read as Python: {error}") from None
    return {name.get_name() for name in table.get_symbols() if name.is_assigned() or name.is_imported()}


def missing(language: str, versions: Mapping[str, str]) -> list[str]:
    """Returns the modules that the language requires and that have no version in `versions`."""
    return [module for module in MODULES[language] if not versions.get(module)]
