"""Parts of a family's contract: launcher arguments, cases, requirements, probes and published results."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from warplog.core import formula


@dataclass(frozen=True)
class Argument:
    """One argument of the launcher: an array, or a scalar named after a case parameter.

    Attributes:
        kind: "input", "output", "inout", "workspace" or "scalar".
        dtype: element type; "void" if it depends on the case.
        shape: one formula per dimension; empty for scalars. A workspace is an array of bytes (uint8).
        dtypes: if it depends on the case, the condition for each type; the first that holds decides.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[str | int, ...] = ()
    dtypes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One problem: its name and the values of the family's parameters (sizes, scalars)."""

    name: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Measuring:
    """Measurement options for families other than kernels on arrays in device memory.

    Attributes:
        timing: "stream": launches are queued behind a blocked stream and hot launches form a CUDA graph, so that
            only GPU time counts; "host": neither, for launchers that synchronise; host time counts too.
        hot_seconds: every case is also measured sustained, for at least this many seconds, with clock and power
            recorded over time; None: only cases that a limit slows down, without a record over time.
        max_seconds: maximum sampling time at rest per case and process in seconds; None: as configured.
        profilers: profilers that can observe a launch.
        hot_cases: cases that get a hot time in addition to the profiled ones.
        sanitized_elements: largest check case for compute-sanitizer in array elements; None: as configured.
    """

    timing: str = "stream"
    hot_seconds: float | None = None
    max_seconds: float | None = None
    profilers: Sequence[str] = ("ncu", "nsys")
    hot_cases: Sequence[str] = ()
    sanitized_elements: int | None = None


@dataclass(frozen=True)
class Requires:
    """Requirements of a variant.

    Attributes:
        arch: minimum architecture (`sm_80`), or exactly this one with a trailing a (`sm_90a`).
        multiple_of: case parameters that must be multiples of a number.
        at_most: upper limits of case parameters.
        where: conditions on case parameters, such as `N*C % 256 == 0`.
    """

    arch: str = "sm_75"
    multiple_of: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    where: Sequence[str] = ()

    def why_not(self, compute_capability: tuple[int, int]) -> str:
        """Returns why the variant cannot run on a GPU; '' if it can."""
        required = int(self.arch.removeprefix("sm_").removesuffix("a"))
        have = compute_capability[0] * 10 + compute_capability[1]
        if self.arch.endswith("a") and have != required:
            return f"needs {self.arch}, this GPU is sm_{have}"
        return f"needs {self.arch} or later, this GPU is sm_{have}" if have < required else ""

    def why_not_case(self, case: Case) -> str:
        """Returns why the variant does not support a case; '' if it does.

        Raises:
            WarplogError: A condition cannot be evaluated.
        """
        misfits = [f"{k} to be a multiple of {m}" for k, m in self.multiple_of.items() if case.values[k] % m]
        misfits += [f"{k} to be at most {most}" for k, most in self.at_most.items() if case.values[k] > most]
        misfits += [text for text in self.where if not formula.holds(text, case.values, "requires.where")]
        return f"needs {' and '.join(misfits)}" if misfits else ""

    def own_limits(self, case: Case) -> dict[str, float]:
        """Returns the upper limits that a case exceeds, by parameter; {} if the variant does not support it otherwise.

        Raises:
            WarplogError: A condition cannot be evaluated.
        """
        exceeded = {k: most for k, most in self.at_most.items() if case.values[k] > most}
        return exceeded if exceeded and not replace(self, at_most={}).why_not_case(case) else {}


def status_words(status: str, own_limits: str = "") -> str:
    """Returns a status for display: "compile error", or "not run" for a case beyond a limit that the variant sets."""
    return "not run" if own_limits else status.replace("_", " ")


@dataclass(frozen=True)
class Probe:
    """A quantity whose true value is known for the kernels of a family.

    The measured value may differ from the expected one by `relative` times the expected value plus `absolute`.

    Attributes:
        name: the known property.
        cases: cases for which the value is known.
        quantity: column of the table `measurements`, metric, or quantity derived by the oracle.
        expected: formula over the case's parameters and other quantities, or a name (a stall reason or resource).
        minus: case whose quantity is subtracted first; "" for none.
        at_least: whether any larger measured value is accepted.
    """

    name: str
    cases: tuple[str, ...]
    quantity: str
    expected: str | float
    minus: str = ""
    relative: float = 0.0
    absolute: float = 0.0
    at_least: bool = False


def make_argument(data: Mapping[str, Any]) -> Argument:
    """Makes an argument of family.yaml; the formula `bytes` of a workspace becomes its shape."""
    if data["kind"] == "workspace":
        return Argument(data["name"], "workspace", "uint8", (data["bytes"],))
    dtype = data["dtype"]
    by_case = {} if isinstance(dtype, str) else dtype
    shape = tuple(data.get("shape", ()))
    return Argument(data["name"], data["kind"], "void" if by_case else dtype, shape, by_case)


def matching(patterns: Collection[str], names: Collection[str]) -> tuple[str, ...]:
    """Returns the names that match a pattern (`*`, `?`, `[...]`), in order, then the patterns without a match."""
    unmatched = [p for p in patterns if not any(fnmatchcase(name, p) for name in names)]
    return (*(name for name in names if any(fnmatchcase(name, p) for p in patterns)), *unmatched)


def make_probes(data: Iterable[Mapping[str, Any]], names: Collection[str]) -> tuple[Probe, ...]:
    """Makes the probes of family.yaml; `names` are the family's cases, which their patterns refer to."""
    renamed = ({**p, "name": p["probe"], "cases": matching(p["cases"], names)} for p in data)
    return tuple(Probe(**{key: value for key, value in p.items() if key != "probe"}) for p in renamed)


def probed(probes: Iterable[Probe]) -> tuple[str, ...]:
    """Returns the cases that the probes refer to."""
    return tuple(case for probe in probes for case in (*probe.cases, probe.minus) if case)


@dataclass(frozen=True)
class Published:
    """A published result for a variant; `case` is "" if the source names no timed case."""

    value: float
    unit: str
    gpu: str
    source: str
    case: str = ""
