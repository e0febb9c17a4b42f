"""The parts of a family's contract: arguments of the launcher, problems, and what a variant requires."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Argument:
    """One argument of the launcher: an array in device memory, or a scalar named like a case parameter."""

    name: str
    kind: str  # input | output | inout | scalar
    dtype: str
    shape: tuple[str | int, ...] = ()


@dataclass(frozen=True)
class Case:
    """One problem: a name and the values of the family's parameters (sizes, scalars)."""

    name: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Measuring:
    """How a family is measured, where not as a kernel between arrays in device memory is.

    Attributes:
        timing: "stream": launches queue up behind a block and hot ones are a graph, so that only GPU time counts;
            "host": neither, for launchers that wait for the stream; the host's part of a launch counts too.
        hot_seconds: least length of the hot run, whose clock and power are kept over time; None: the campaign's
            length, and no more than medians.
        max_seconds: longest cold sampling of a case, in seconds; None: the campaign's.
        profilers: those that see something of a launch.
        hot_cases: cases that have a hot time beside those that the profilers capture.
        sanitized_elements: array elements of the largest check case that compute-sanitizer gets; None: the campaign's.
    """

    timing: str = "stream"
    hot_seconds: float | None = None
    max_seconds: float | None = None
    profilers: Sequence[str] = ("ncu", "nsys")
    hot_cases: Sequence[str] = ()
    sanitized_elements: int | None = None


@dataclass(frozen=True)
class Requires:
    """What a variant needs: a least architecture (`sm_80`, or `sm_90a` for that chip only), multiples, bounds."""

    arch: str = "sm_75"
    multiple_of: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)

    def why_not(self, compute_capability: tuple[int, int]) -> str:
        """'' where the GPU serves, else the reason."""
        wanted = int(self.arch.removeprefix("sm_").removesuffix("a"))
        have = compute_capability[0] * 10 + compute_capability[1]
        if self.arch.endswith("a") and have != wanted:
            return f"needs {self.arch}, this GPU is sm_{have}"
        return f"needs {self.arch} or later, this GPU is sm_{have}" if have < wanted else ""

    def why_not_case(self, case: Case) -> str:
        """'' where the case fits, else the reason."""
        misfits = [f"{k} a multiple of {m}" for k, m in self.multiple_of.items() if case.values[k] % m]
        misfits += [f"{k} of {most} at most" for k, most in self.at_most.items() if case.values[k] > most]
        return f"needs {' and '.join(misfits)}" if misfits else ""


@dataclass(frozen=True)
class Probe:
    """What kernels whose answer is known must show: a quantity, and its true value at each of the cases.

    `expected` is a formula of the case's values and of other quantities, or a name (a stall reason, a
    resource). `minus` is a case whose quantity is taken off first. The measured value may differ by
    `relative` times the expected one plus `absolute`; with `at_least` it may be any larger one.
    """

    name: str
    cases: tuple[str, ...]
    quantity: str
    expected: str | float
    minus: str = ""
    relative: float = 0.0
    absolute: float = 0.0
    at_least: bool = False


def matching(patterns: Collection[str], names: Collection[str]) -> tuple[str, ...]:
    """The names in their order that any pattern fits (`*`, `?`, `[...]`); a pattern that fits none stays itself."""
    strangers = [p for p in patterns if not any(fnmatchcase(name, p) for name in names)]
    return (*(name for name in names if any(fnmatchcase(name, p) for p in patterns)), *strangers)


def make_probes(data: Iterable[Mapping[str, Any]], names: Collection[str]) -> tuple[Probe, ...]:
    """The probes as family.yaml gives them, of a family with cases of these names."""
    renamed = ({**p, "name": p["probe"], "cases": matching(p["cases"], names)} for p in data)
    return tuple(Probe(**{key: value for key, value in p.items() if key != "probe"}) for p in renamed)


def probed(probes: Iterable[Probe]) -> tuple[str, ...]:
    """The cases that probes name."""
    return tuple(case for probe in probes for case in (*probe.cases, probe.minus) if case)


@dataclass(frozen=True)
class Published:
    """What someone else printed for a rung; `case` is "" where the source names no timed case."""

    value: float
    unit: str
    gpu: str
    source: str
    case: str = ""
