"""Tries `make_inputs` and `reference` of a family with NumPy, so that a mistake in them costs no GPU time."""

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from warplog.catalog.contract import Argument, Case
from warplog.catalog.family import Family, load_family
from warplog.core.errors import WarplogError, say
from warplog.core.schema import suggest
from warplog.core.text import listed, one_line
from warplog.measure.worker import encoding
from warplog.measure.worker.case_data import SEEDS

MOST_ELEMENTS = 1 << 20  # of the arrays of a case that is tried
_MOST_S = 10.0
# What arrays and their memory have in CuPy only. An unknown function of `xp` may be CuPy's too, such as rsqrt.
_CUPY_ATTRIBUTES = ("get", "set", "ptr")


class _Untried(BaseException):
    """The functions need CuPy, another package or more time; code of a family must not catch it as an Exception."""


def try_references(family_files: Iterable[Path]) -> None:
    """Tries the two functions of families, and says which are right and which were not tried.

    Raises:
        WarplogError: a family is wrong; the text is that of the last one, those of the others were said.
    """
    mistakes, right = [], []
    for file in family_files:
        family = load_family(file)
        try:
            why = try_reference(family)
        except WarplogError as error:
            mistakes.append(error)
            continue
        if why:
            say(f"  try     reference.py of {family.name}  not tried: {why}")
        else:
            right.append(family.name)
    if right:
        say(f"  try     reference.py of {listed(right)}  ok")
    for mistake in mistakes[:-1]:
        say(f"error: {mistake}")
    if mistakes:
        raise mistakes[-1]


def try_reference(family: Family) -> str:
    """Tries the two functions on the check cases that are small; returns why it could not, "" if it could.

    Reasons are a function that only CuPy has, a package that is missing here, cases that are all large, and a
    reference that takes longer than 10 s.

    Raises:
        WarplogError: a function raises an error, or an array is missing or has a shape, a type or values with which no
            kernel could be checked; the text names file, function, case, array, what was expected, and what was found.
    """
    file = family.folder / "reference.py"
    cases = [c for c in family.check_cases.values() if _elements(family, c) <= MOST_ELEMENTS]
    if not cases:
        return f"no check case has at most {MOST_ELEMENTS} elements"
    try:
        with _limited(_MOST_S), np.errstate(all="ignore"):
            module = _called(file, "when it is imported", family.reference)
            for case in cases:
                _try_case(family, file, module, case)
    except _Untried as why:
        return str(why)
    return ""


def _try_case(family: Family, file: Path, module: ModuleType, case: Case) -> None:
    rng = np.random.default_rng(SEEDS["check"])
    name = f"make_inputs (case {case.name!r})"
    made = _called(file, name, module.make_inputs, np, rng, case.values)
    for argument in _arrays(family, "input", "inout"):
        values = _entry(f"{file}: {name}", made, argument)
        _check_input(values, family, argument, case, f"{file}: {name}: {argument.name}")
    dtypes = {a.name: family.dtype(a, case) for a in family.arguments}
    inputs = {key: encoding.rounded(np, values, dtypes.get(key, "")) for key, values in made.items()}
    before = [
        (key, values, values.copy()) for key, values in inputs.items() if isinstance(values, np.ndarray)
    ]
    name = f"reference (case {case.name!r})"
    answers = _called(file, name, module.reference, np, inputs, case.values)
    for argument in _arrays(family, "output", "inout"):
        answer = _entry(f"{file}: {name}", answers, argument)
        _check_answer(answer, family.shape(argument, case), f"{file}: {name}: {argument.name}")
    for key, values, copy in before:
        if values.tobytes() != copy.tobytes():
            raise WarplogError(f"{file}: {name}: it changes its input {key!r}; work on a copy")


def _arrays(family: Family, *kinds: str) -> list[Argument]:
    return [argument for argument in family.arguments if argument.kind in kinds]


def _elements(family: Family, case: Case) -> int:
    return sum(int(np.prod(shape, dtype=np.int64)) for shape in family.shapes(case))


def _entry(where: str, returned: object, argument: Argument) -> Any:
    """Returns what a function returned for an array."""
    if not isinstance(returned, Mapping):
        raise WarplogError(f"{where}: expected a dict of arrays by name, got {_kind(returned)}")
    if argument.name not in returned:
        names = ", ".join(map(repr, returned)) or "none"
        raise WarplogError(f"{where}: expected the key {argument.name!r} of the {argument.kind}, got {names}")
    return returned[argument.name]


def _check_array(values: Any, shape: tuple[int, ...], where: str) -> None:
    if _of_cupy(values):
        raise _Untried(f"{where} is an array of CuPy, although `xp` was NumPy")
    if not isinstance(values, np.ndarray | np.generic) or values.dtype.kind not in "biufc":
        raise WarplogError(f"{where}: expected an array of numbers, got {_kind(values)}")
    if values.shape != shape:
        raise WarplogError(
            f"{where}: expected the shape {list(shape)} of family.yaml, got {list(values.shape)}; correct one of them"
        )


def _check_input(values: Any, family: Family, argument: Argument, case: Case, where: str) -> None:
    """Checks that the kernels get the values that `reference` gets: arrays are stored in the type of family.yaml."""
    _check_array(values, family.shape(argument, case), where)
    dtype = family.dtype(argument, case)
    if dtype.startswith("float8"):  # rounded before `reference` sees them
        return
    stored = np.asarray(encoding.encoded(np, values, dtype)).astype(encoding.stored_dtype(dtype))
    wide = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    held = encoding.decoded(np, stored, dtype)
    other = np.isfinite(wide) & (held != wide)
    if not other.any():
        return
    first = tuple(int(i) for i in np.argwhere(other)[0])
    remedy = f"return {argument.name}.astype({dtype!r})"
    if dtype == "bfloat16":
        remedy = "round them with warplog.reference.round_to_bfloat16(xp, values)"
    raise WarplogError(
        f"{where}{list(first)}: expected values that {dtype} holds, got {wide[first]!s} ({values.dtype}), which becomes"
        f" {held[first]!s}, so that `reference` and the kernels would compute with different numbers; {remedy}"
    )


def _check_answer(answer: Any, shape: tuple[int, ...], where: str) -> None:
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise WarplogError(f"{where}: expected a pair (values, scale), got {_kind(answer)}")
    values, scale = answer
    _check_array(values, shape, where)
    if values.dtype in (np.float16, np.float32, np.complex64):
        raise WarplogError(
            f"{where}: expected values in float64, got {values.dtype}; compute with x.astype(xp.float64)"
        )
    _check_numbers(values, np.isfinite, "finite values, since no kernel agrees with NaN or Inf", where)
    where = f"{where}: the scale"
    if not isinstance(scale, int | float):
        _check_array(scale, np.shape(scale), where)
        pairs = zip(reversed(scale.shape), reversed(shape), strict=False)
        if scale.ndim > len(shape) or any(own not in (1, full) for own, full in pairs):
            raise WarplogError(f"{where}: expected the shape {list(shape)}, got {list(scale.shape)}")
    _check_numbers(np.asarray(scale), _is_scale, "finite values of at least 0, such as abs(values)", where)


def _is_scale(scale: Any) -> Any:
    return np.isfinite(scale) & (scale.real >= 0)


def _check_numbers(values: Any, right: Callable[[Any], Any], expected: str, where: str) -> None:
    wrong = ~right(values)
    if wrong.any():
        counted = f"{int(wrong.sum())} of {values.size} are not, the first is {values[wrong][0]!s}"
        raise WarplogError(f"{where}: expected {expected}; {counted}")


def _called(file: Path, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the result of code of a family.

    Raises:
        _Untried: It needs CuPy, or a package that is missing.
        WarplogError: It raises anything else.
    """
    try:
        return function(*arguments)
    except WarplogError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) or _of_cupy(error) or _needs_cupy(error):
            raise _Untried(f"{file}: {name}: {one_line(str(error))[:300]}") from None
        keys = [key for mapping in arguments if isinstance(mapping, Mapping) for key in mapping]
        hint = f"; {suggest(str(error), keys)}" if isinstance(error, KeyError) else ""
        raise WarplogError(
            f"{file}: {name}: {_line(error, file)}{type(error).__name__}: {one_line(str(error))[:300]}{hint}"
        ) from None


def _needs_cupy(error: BaseException) -> bool:
    """Returns whether an attribute is missing that CuPy may have, or the error comes from CuPy."""
    if isinstance(error, AttributeError) and (error.obj is np or error.name in _CUPY_ATTRIBUTES):
        return True
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("cupy")


def _line(error: BaseException, file: Path) -> str:
    """Returns "line 12: ", the last one of the file that led to the error; "" if none of it did."""
    if isinstance(error, SyntaxError):
        return ""  # names it
    trace, line = error.__traceback__, ""
    while trace:
        if trace.tb_frame.f_code.co_filename == str(file.absolute()):
            line = f"line {trace.tb_lineno}: "
        trace = trace.tb_next
    return line


def _of_cupy(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in ("cupy", "cupyx", "cupy_backends")


def _kind(value: object) -> str:
    """Returns what a value is, such as "an array of object" or "None"."""
    if value is None:
        return "None"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Ends the block, which the main thread runs, with `_Untried` after a time."""

    def stop(*_: object) -> None:
        raise _Untried(f"it takes longer than {seconds:g} s with NumPy")

    former = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
