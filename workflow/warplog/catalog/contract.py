"""The types of family.yaml: a family as its author wrote it, decoded and checked once.

`warplog schema family` prints their JSON Schema.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from warplog.catalog.compiling import Compile
from warplog.core import formula
from warplog.records.fields import Frozen, Name, each_once, matching, unique

Identifier = Annotated[
    str, matching("[A-Za-z][A-Za-z0-9_]{0,31}", "up to 32 letters, digits and _, beginning with a letter")
]
CaseKey = Annotated[
    str,
    matching(
        "[A-Za-z0-9][A-Za-z0-9_.x-]{0,63}",
        "up to 64 letters, digits and _ . -, beginning with a letter or digit",
    ),
]
CaseText = Annotated[str, Meta(max_length=64)]
Parameter = Annotated[
    str,
    matching(
        "[A-Z][A-Z0-9_]{0,31}",
        "up to 32 capital letters, digits and _, beginning with a letter, such as TILE_M",
    ),
]
Condition = Annotated[str, Meta(max_length=500)]
Formula = Condition | int | float
Floating = Literal["float32", "float64", "float16", "bfloat16", "float8_e4m3", "float8_e5m2"]
Dtype = Literal[Floating, "complex64", "int8", "uint8", "int16", "int32", "uint32", "int64", "bool"]
Values = Annotated[Mapping[Identifier, int | float], Meta(max_length=64)]
Cases = Annotated[Mapping[CaseKey, Values], Meta(max_length=200)]


@dataclass(frozen=True)
class Case:
    """One problem: its name and the values of the family's parameters (sizes, scalars)."""

    name: str
    values: Mapping[str, float]


class Tolerance(Frozen, frozen=True, kw_only=True):
    """|out - reference| <= factor * eps(dtype)/2 * sqrt(reduction_length) * scale; reference.py gives the scale."""

    dtype: Annotated[Floating, Meta(description="Type whose rounding error counts")]
    reduction_length: Annotated[Formula, Meta(description="Number of terms in a sum")]
    factor: Annotated[float, Meta(gt=0, le=1000, description="Safety factor")]


class Argument(Frozen, frozen=True, kw_only=True):
    """An argument of the launcher: an array, or a scalar named after a case parameter."""

    name: Annotated[Identifier, Meta(description="Name in C and in reference.py")]
    kind: Annotated[
        Literal["input", "output", "inout", "workspace", "scalar"],
        Meta(
            description="How the launcher uses the argument; workspace: memory that warplog allocates, with undefined"
            " contents"
        ),
    ]
    element: Annotated[
        Dtype | Annotated[Mapping[Dtype, Condition], Meta(min_length=2)],
        Meta(
            description="Element type. That of an array may depend on the case: types with conditions on the case's"
            " parameters, such as {float32: element_bytes == 4, bfloat16: element_bytes == 2}; the first whose"
            " condition holds. Its pointer is then void*"
        ),
    ] = field(name="dtype", default_factory=dict)
    dimensions: Annotated[
        tuple[Formula, ...],
        Meta(min_length=1, max_length=8, description="One formula per dimension, such as [M, K]"),
    ] = field(name="shape", default=())
    bytes: Annotated[Formula, Meta(description="Size of a workspace in bytes")] = ""
    tolerance: Annotated[Tolerance | None, Meta(description="Tolerance of this output")] = None

    def __post_init__(self) -> None:
        """Checks that a workspace has bytes, and others a dtype, arrays a shape."""
        if self.kind == "workspace":
            if self.bytes == "":
                raise ValueError("the required key 'bytes' is missing")
        elif not self.element or (self.kind != "scalar" and not self.dimensions):
            raise ValueError("the required key 'dtype' or 'shape' is missing")

    @property
    def shape(self) -> tuple[Formula, ...]:
        """One formula per dimension; () for scalars. A workspace is an array of bytes."""
        return (self.bytes,) if self.kind == "workspace" else self.dimensions

    @property
    def dtypes(self) -> Mapping[Dtype, str]:
        """The condition for each type if it depends on the case; the first that holds decides."""
        return {} if isinstance(self.element, str) or self.kind == "workspace" else self.element

    @property
    def dtype(self) -> str:
        """The element type; "void" if it depends on the case."""
        if self.kind == "workspace":
            return "uint8"
        return self.element if isinstance(self.element, str) else "void"

    def form(self) -> tuple[object, ...]:
        """Returns what a launcher depends on: name, kind, types and shape, without the tolerance."""
        return self.name, self.kind, self.dtype, self.shape, self.dtypes


# What JSON Schema says of Argument.__post_init__.
_BY_KIND = {
    "allOf": [
        {
            "if": {"properties": {"kind": {"const": "workspace"}}},
            "then": {"required": ["bytes"]},
            "else": {"required": ["dtype"]},
        },
        {
            "if": {"properties": {"kind": {"enum": ["input", "output", "inout"]}}},
            "then": {"required": ["shape"]},
        },
    ]
}


class Work(Frozen, frozen=True, kw_only=True):
    """Work of a case, used for GFLOP/s, GB/s and the x axis; `Family.value` evaluates the formulas."""

    flops: Annotated[Formula, Meta(description="Floating-point operations of the algorithm")]
    bytes: Annotated[
        Formula,
        Meta(description="Compulsory traffic in bytes: each input read once, each output written once"),
    ]
    size: Annotated[Formula, Meta(description="Problem size on the x axis")]
    size_label: Annotated[str, Meta(max_length=80, description="Label of the x axis")]
    limit: Annotated[
        Literal["dram", "pcie"],
        Meta(description="Link that limits the traffic: dram (default), or pcie for host-device transfers"),
    ] = "dram"


class Measuring(Frozen, frozen=True, kw_only=True):
    """Measurement options for families other than kernels on arrays in device memory."""

    timing: Annotated[
        Literal["stream", "host"],
        Meta(
            description="stream (default): GPU time only; host: including host time, for launchers that synchronise"
        ),
    ] = "stream"
    hot_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=60)] | None,
        Meta(
            description="Every case is also measured sustained, for at least this many seconds, with clock and power"
            " recorded over time"
        ),
    ] = None
    max_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=60)] | None,
        Meta(
            description="Maximum sampling time at rest per case and process in seconds, overrides the configuration"
        ),
    ] = None
    profilers: Annotated[
        tuple[Literal["ncu", "nsys"], ...], unique("Profilers that can observe a launch")
    ] = ("ncu", "nsys")
    hot_cases: Annotated[
        tuple[str, ...],
        Meta(max_length=200),
        unique("Cases that get a hot time in addition to the profiled ones"),
    ] = ()
    sanitized_elements: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Largest check case to run under compute-sanitizer, in array elements, overrides the"
            " configuration"
        ),
    ] = None

    def __post_init__(self) -> None:
        """Checks that nothing is named twice."""
        each_once(self.profilers, self.hot_cases)


class Requires(Frozen, frozen=True, kw_only=True):
    """Requirements of a variant."""

    arch: Annotated[
        str,
        matching("sm_[0-9]{2,3}a?", "an architecture such as sm_80, or sm_90a for exactly that one"),
        Meta(description="Minimum architecture; with a trailing a, exactly that architecture"),
    ] = "sm_75"
    multiple_of: Annotated[
        Mapping[str, Annotated[int, Meta(ge=2)]],
        Meta(description="Case parameters that must be multiples of a number"),
    ] = field(default_factory=dict)
    at_most: Annotated[
        Values,
        Meta(
            description="Upper limits of case parameters, for variants that are too slow at the largest cases"
        ),
    ] = field(default_factory=dict)
    where: Annotated[
        tuple[Condition, ...],
        Meta(
            max_length=32,
            description="Conditions on case parameters, such as `N*C % 256 == 0` or `M >= 512`",
        ),
    ] = ()

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


class Expects(Frozen, frozen=True, kw_only=True):
    """Expected properties of the compiled code."""

    sass: Annotated[tuple[str, ...], Meta(description="Opcode prefixes that must occur")] = ()
    spills: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Maximum number of spilled bytes")
    ] = None


class Published(Frozen, frozen=True, kw_only=True):
    """A published result for a variant."""

    value: Annotated[float, Meta(gt=0, description="Published number")]
    unit: Annotated[Literal["GFLOP/s", "TFLOP/s"], Meta(description="Unit of the number")]
    gpu: Annotated[str, Meta(min_length=1, max_length=60, description="GPU of the measurement")]
    source: Annotated[str, Meta(min_length=1, max_length=200, description="Author and title")]
    case: Annotated[str, Meta(description="Timed case of the number; omit it if the source names none")] = ""


class Tune(Frozen, frozen=True, kw_only=True):
    """Search space of `snakemake tune`; on GPUs without a search, the values in `parameters` apply."""

    values: Annotated[
        Mapping[Parameter, Annotated[tuple[int, ...], Meta(min_length=1, max_length=64), unique()]],
        Meta(
            min_length=1,
            max_length=12,
            description="Values of each searched parameter, including the one in `parameters`",
        ),
    ]
    threads: Annotated[
        Formula,
        Meta(description="Threads per block as a formula of the parameters; available as THREADS in `where`"),
    ]
    dynamic_shared_bytes: Annotated[Formula, Meta(description="Dynamic shared memory per block in bytes")] = 0
    where: Annotated[
        tuple[Condition, ...],
        Meta(max_length=32, description="Conditions that every valid setting meets, such as `BM % TM == 0`"),
    ]
    cases: Annotated[
        tuple[str, ...], Meta(min_length=1, max_length=8), unique("Timed cases that enter the score")
    ]
    first: Annotated[
        tuple[Mapping[str, int], ...],
        Meta(max_length=32, description="Settings to try first, such as the best ones on other GPUs"),
    ] = ()

    def __post_init__(self) -> None:
        """Checks that no value and no case is named twice."""
        each_once(*self.values.values(), self.cases)


class VariantEntry(Frozen, frozen=True, kw_only=True):
    """A variant: a source with its compile-time parameters."""

    name: Annotated[Name, Meta(description="Name that states the idea")]
    source: Annotated[
        str,
        matching(
            r"[A-Za-z0-9_.-][A-Za-z0-9_./ +-]*\.(cu|py)",
            "the path of a .cu or .py file, in letters, digits, spaces and _ . / + -",
        ),
        Meta(description="Source in the project, relative to family.yaml (default <name>.cu, or <name>.py)"),
    ] = field(name="file", default="")
    own_options: Annotated[Compile, Meta(description="How this variant is compiled")] = field(
        name="compile", default=Compile()
    )
    language: Annotated[
        Literal["cuda", "triton", "cupy", "torch", "cute"],
        Meta(description="Language of the source: cuda (default), or what a .py file is written with"),
    ] = "cuda"
    parent: Annotated[str | None, Meta(description="Variant that this one is based on")] = None
    draft: Annotated[
        bool, Meta(description="Draft variant, excluded from campaigns unless `variants` names it")
    ] = False
    idea: Annotated[str, Meta(max_length=160, description="The idea in one sentence for figures and tables")]
    note: Annotated[
        str,
        Meta(
            max_length=120,
            description="What a ratio to its time must say, such as `its time includes a copy of the result`",
        ),
    ] = ""
    credit: Annotated[str, Meta(max_length=300, description="Publication of the idea")] = ""
    expected: Annotated[
        str,
        Meta(
            max_length=600,
            description="What was expected of it before it was measured, in place of that field of its source's header",
        ),
    ] = ""
    published: Annotated[
        tuple[Published, ...],
        Meta(max_length=64, description="Published results for this variant, with their source"),
    ] = ()
    parameters: Annotated[
        Mapping[
            Annotated[
                str,
                matching(
                    "[A-Z][A-Z0-9_]*",
                    "capital letters, digits and _, beginning with a letter, such as TILE_M",
                ),
            ],
            int,
        ],
        Meta(
            description="Compile-time parameters such as tile sizes, passed to nvcc as -D; of a Python module, values"
            " for its constants"
        ),
    ] = field(default_factory=dict)
    requires: Annotated[Requires, Meta(description="Requirements of the variant")] = Requires()
    memory: Annotated[
        Mapping[str, Literal["pinned", "pageable"]],
        Meta(
            description="Arrays in host memory: pinned (page-locked and mapped for kernels) or pageable (from malloc)"
        ),
    ] = field(default_factory=dict)
    expects: Annotated[Expects, Meta(description="Expected properties of the compiled code")] = Expects()
    calls: Annotated[
        bool
        | Annotated[
            str,
            matching(
                r"[A-Za-z0-9_.-][A-Za-z0-9_./ +-]*\.so",
                "true, false or the path of a .so file, in letters, digits, spaces and _ . / + -",
            ),
        ],
        Meta(
            description="Whether the variant calls a library, or the path of a shared library in the project, relative"
            " to family.yaml, that is compiled already and takes the place of `file`. nsys then captures every timed"
            " case, and the tables list its kernels"
        ),
    ] = field(name="library", default=False)
    search: Annotated[Tune | None, Meta(description="Search space of `snakemake tune`")] = field(
        name="tune", default=None
    )

    @property
    def library(self) -> bool:
        """Whether the variant calls a library, or is one."""
        return bool(self.calls)

    @property
    def prebuilt(self) -> bool:
        """Whether a shared library with the launcher takes the place of the source."""
        return isinstance(self.calls, str)


class ClaimEntry(Frozen, frozen=True, kw_only=True):
    """A published claim about the kernels; each campaign judges it in the table `claims`."""

    id: Annotated[
        str,
        matching("[A-Za-z][A-Za-z0-9_]{0,15}", "up to 16 letters, digits and _, beginning with a letter"),
        Meta(description="Short identifier for tables and text"),
    ]
    claim: Annotated[str, Meta(min_length=1, max_length=200, description="The assertion in one sentence")]
    source: Annotated[str, Meta(min_length=1, max_length=300, description="Publication that makes the claim")]
    published: Annotated[str, Meta(max_length=200, description="Published number")] = ""
    measure: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=500,
            description='Formula of the number to judge, such as median_us(naive) / median_us(gmem_coalesced, "1024").'
            " Quantities: numeric columns of the table `measurements`, metrics, total_<metric> (summed over the"
            ' kernels of a launch) and sass(variant, "LDG.E.128"). Names: parameters of the case and numeric columns'
            " of the table `gpus`. Variants of another family are written as sgemm.naive",
        ),
    ] = ""
    unit: Annotated[
        str, Meta(max_length=20, description="Unit of the number (default the unit of a single quantity)")
    ] = ""
    case: Annotated[str, Meta(description="Timed case of the claim (default the headline case)")] = ""
    confirmed_if: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=60,
            description="Condition on the number that confirms the claim, such as >= 5 or 4 .. 6; otherwise it is"
            " refuted",
        ),
    ] = ""
    about: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=60,
            description="GPU or machine of the published number, such as `an A6000`, if others cannot share it; the"
            " claim is then not judged, the number only shown",
        ),
    ] = ""
    not_judged: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="Why the claim is not judged; the number, if any, is only shown",
        ),
    ] = ""


class Probe(Frozen, frozen=True, kw_only=True):
    """A quantity whose true value is known for the kernels of a family.

    The measured value may differ from the expected one by `relative` times the expected value plus `absolute`.
    """

    name: Annotated[str, Meta(min_length=1, max_length=60, description="The known property")] = field(
        name="probe"
    )
    cases: Annotated[
        tuple[CaseText, ...],
        Meta(min_length=1, description="Cases with a known value: names, or patterns with *"),
    ]
    quantity: Annotated[
        Name,
        Meta(
            description="Column of `measurements`, metric, dominant_stall, occupancy_limiter or"
            " occupancy_by_formula_pct"
        ),
    ]
    expected: Annotated[
        Formula,
        Meta(
            description="Formula over the case's parameters and other quantities of the case; or the name of a stall"
            " reason or resource"
        ),
    ]
    minus: Annotated[CaseText, Meta(description="Case whose quantity is subtracted first")] = ""
    relative: Annotated[float, Meta(ge=0, le=1, description="Tolerance as a share of the expected value")] = (
        0.0
    )
    absolute: Annotated[float, Meta(ge=0, description="Tolerance in the quantity's unit")] = 0.0
    at_least: Annotated[bool, Meta(description="Whether any larger measured value is accepted")] = False


class FamilyFile(Frozen, frozen=True, kw_only=True):
    """Contract of a kernel family (kernels/<family>/family.yaml)."""

    name: Annotated[Name, Meta(description="Name of the family, equal to the name of its folder")] = field(
        name="family"
    )
    title: Annotated[str, Meta(max_length=120, description="Heading of figures and of the MLflow experiment")]
    summary: Annotated[str, Meta(max_length=300, description="What the kernels compute, in one line")]
    arguments: Annotated[
        tuple[Annotated[Argument, Meta(extra_json_schema=_BY_KIND)], ...],
        Meta(
            min_length=1,
            max_length=64,
            description="Arguments of the launcher in order, followed by a cudaStream_t",
        ),
    ]
    tolerance: Annotated[Tolerance, Meta(description="Tolerance of outputs without one of their own")]
    shared_options: Annotated[
        Compile, Meta(description="How all variants are compiled, extended by `compile` of a variant")
    ] = field(name="compile", default=Compile())
    work: Work
    defaults: Annotated[Values, Meta(description="Default values of the case parameters")] = field(
        default_factory=dict
    )
    timed: Annotated[Cases, Meta(description="Problems that are timed")] = field(name="cases")
    checked: Annotated[
        Cases,
        Meta(
            description="Problems for the correctness check, with awkward sizes; never timed, profiled only if"
            " profile_cases names them"
        ),
    ] = field(name="check_cases")
    profile_cases: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="Cases to profile with ncu and nsys: names, or patterns with *"),
    ]
    headline_case: Annotated[
        str, Meta(description="Timed case that single-number summaries quote; one of profile_cases")
    ]
    baseline: Annotated[
        str,
        Meta(
            description="Variant that ratios refer to, or <family>.<variant>: a variant of another family with the same"
            " arguments"
        ),
    ] = ""
    draft: Annotated[
        bool, Meta(description="Draft family, excluded from campaigns unless `families` names it")
    ] = False
    empty_arrays: Annotated[
        bool, Meta(description="Whether arrays of check cases may have no elements, as with n: 0")
    ] = False
    measuring: Annotated[Measuring, Meta(description="Measurement options")] = Measuring()
    timeline: Annotated[
        Mapping[Name, CaseText],
        Meta(
            min_length=1,
            max_length=50,
            description="Variants whose kernels have marks (timeline.cuh), and the case of each that"
            " `snakemake timeline` captures",
        ),
    ] = field(default_factory=dict)
    figures: Annotated[
        tuple[Name, ...],
        Meta(max_length=20, description="Additional figures, drawn only for families that list them"),
    ] = ()
    variants: Annotated[
        tuple[VariantEntry, ...],
        Meta(min_length=1, max_length=200, description="Variants in ladder order"),
    ]
    claims: Annotated[
        tuple[ClaimEntry, ...], Meta(max_length=200, description="Published claims about these kernels")
    ] = ()
    probes: Annotated[
        tuple[Probe, ...],
        Meta(
            min_length=1,
            max_length=500,
            description="Known true values of quantities; a family with probes belongs to `snakemake oracle`",
        ),
    ] = ()


def status_words(status: str, own_limits: str = "") -> str:
    """Returns a status for display: "compile error", or "not run" for a case beyond a limit that the variant sets."""
    return "not run" if own_limits else status.replace("_", " ")


def matched(patterns: Collection[str], names: Collection[str]) -> tuple[str, ...]:
    """Returns the names that match a pattern (`*`, `?`, `[...]`), in order, then the patterns without a match."""
    unmatched = [p for p in patterns if not any(fnmatchcase(name, p) for name in names)]
    return (*(name for name in names if any(fnmatchcase(name, p) for p in patterns)), *unmatched)


def probed(probes: Iterable[Probe]) -> tuple[str, ...]:
    """Returns the cases that the probes refer to."""
    return tuple(case for probe in probes for case in (*probe.cases, probe.minus) if case)
