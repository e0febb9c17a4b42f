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
from warplog.records.fields import UNIQUE, CaseName, Frozen, Language, Name, each_once, matching

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
_CAPITALS = "capital letters, digits and _, beginning with a letter, such as TILE_M"
Constant = Annotated[str, matching("[A-Z][A-Z0-9_]*", _CAPITALS)]
Parameter = Annotated[str, matching("[A-Z][A-Z0-9_]{0,31}", f"up to 32 {_CAPITALS}")]
Condition = Annotated[str, Meta(max_length=500)]
Conditions = Annotated[tuple[Condition, ...], Meta(max_length=32)]
Formula = Condition | int | float
Floating = Literal["float32", "float64", "float16", "bfloat16", "float8_e4m3", "float8_e5m2"]
Dtype = Literal[Floating, "complex64", "int8", "uint8", "int16", "int32", "uint32", "int64", "bool"]
Values = Annotated[Mapping[Identifier, int | float], Meta(max_length=64)]
Cases = Annotated[Mapping[CaseKey, Values], Meta(max_length=200)]
_PATH = "[A-Za-z0-9_.-][A-Za-z0-9_./ +-]*"
_SPELT = "in letters, digits, spaces and _ . / + -"
Source = Annotated[str, matching(rf"{_PATH}\.(cu|py)", f"the path of a .cu or .py file, {_SPELT}")]
Library = Annotated[str, matching(rf"{_PATH}\.so", f"true, false or the path of a .so file, {_SPELT}")]


def _text(most: int) -> Meta:
    """Returns the rule that a text is not empty and has at most this many characters."""
    return Meta(min_length=1, max_length=most)


@dataclass(frozen=True)
class Case:
    """One problem: its name and the values of the family's parameters (sizes, scalars)."""

    name: str
    values: Mapping[str, float]


class Tolerance(Frozen, frozen=True, kw_only=True):
    """|out - reference| <= factor * eps(dtype)/2 * sqrt(reduction_length) * scale; reference.py gives the scale.

    Attributes:
        dtype: type whose rounding error counts.
        reduction_length: number of terms in a sum.
        factor: safety factor.
    """

    dtype: Floating
    reduction_length: Formula
    factor: Annotated[float, Meta(gt=0, le=1000)]


class ToleranceWhen(Tolerance, frozen=True, kw_only=True):
    """A tolerance of the cases whose parameters meet a condition.

    Attributes:
        when: condition on the case's parameters, such as `element_bytes == 2`.
    """

    when: Condition


Tolerances = Annotated[
    Tolerance | Annotated[tuple[ToleranceWhen, ...], Meta(min_length=2, max_length=32)],
    Meta(
        description="accepted error; if it depends on the case, a list of tolerances with conditions (`when`): the"
        " first whose condition holds"
    ),
]


class Argument(Frozen, frozen=True, kw_only=True):
    """An argument of the launcher: an array, or a scalar named after a case parameter.

    Attributes:
        name: name in C and in reference.py.
        kind: how the launcher uses the argument; workspace: memory that warplog allocates, with undefined contents.
        bytes: size of a workspace in bytes.
        tolerance: tolerance of this output, in place of the family's.
    """

    name: Identifier
    kind: Literal["input", "output", "inout", "workspace", "scalar"]
    element: Annotated[
        Dtype | Annotated[Mapping[Dtype, Condition], Meta(min_length=2)],
        Meta(
            description="element type; that of an array may depend on the case: types with conditions on the case's"
            " parameters, such as {float32: element_bytes == 4, bfloat16: element_bytes == 2}; the first whose"
            " condition holds. Its pointer is then void*"
        ),
    ] = field(name="dtype", default_factory=dict)
    dimensions: Annotated[
        tuple[Formula, ...],
        Meta(min_length=1, max_length=8, description="one formula per dimension, such as [M, K]"),
    ] = field(name="shape", default=())
    bytes: Formula = ""
    tolerance: Tolerances | None = None

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
    """Work of a case, used for GFLOP/s, GB/s and the x axis.

    Attributes:
        flops: floating-point operations of the algorithm; may name `sms`, the number of SMs, if each of them does the
            same.
        bytes: compulsory traffic in bytes: each input read once, each output written once; may name `sms`.
        size: problem size on the x axis.
        size_label: label of the x axis.
        limit: link that limits the traffic: dram (default), or pcie for host-device transfers; latency if none does:
            figures then show times instead of rates.
    """

    flops: Formula
    bytes: Formula
    size: Formula
    size_label: Annotated[str, Meta(max_length=80)]
    limit: Literal["dram", "pcie", "latency"] = "dram"


class Measuring(Frozen, frozen=True, kw_only=True):
    """Measurement options for families other than kernels on arrays in device memory.

    Attributes:
        timing: stream (default): GPU time only: launches are queued behind a blocked stream, and hot launches form a
            CUDA graph; host: neither, host time included, for launchers that synchronise.
        hot_seconds: every case is also measured sustained, for at least this many seconds, with clock and power
            recorded over time.
        max_seconds: maximum sampling time at rest per case and process in seconds, overrides the configuration.
        profilers: profilers that can observe a launch.
        hot_cases: cases that get a hot time in addition to the profiled ones.
        sanitized_elements: largest check case to run under compute-sanitizer, in array elements, overrides the
            configuration.
    """

    timing: Literal["stream", "host"] = "stream"
    hot_seconds: Annotated[float, Meta(ge=1, le=60)] | None = None
    max_seconds: Annotated[float, Meta(gt=0, le=60)] | None = None
    profilers: Annotated[tuple[Literal["ncu", "nsys"], ...], UNIQUE] = ("ncu", "nsys")
    hot_cases: Annotated[tuple[str, ...], Meta(max_length=200), UNIQUE] = ()
    sanitized_elements: Annotated[int, Meta(ge=1)] | None = None

    def __post_init__(self) -> None:
        """Checks that nothing is named twice."""
        each_once(self.profilers, self.hot_cases)


class Requires(Frozen, frozen=True, kw_only=True):
    """Requirements of a variant.

    Attributes:
        arch: minimum architecture; with a trailing a, exactly that architecture.
        multiple_of: case parameters that must be multiples of a number.
        at_most: upper limits of case parameters, for variants that are too slow at the largest cases.
        where: conditions on case parameters, such as `N*C % 256 == 0` or `M >= 512`.
        dynamic_shared_bytes: dynamic shared memory per block, as a formula of `parameters`; on a GPU whose blocks have
            less, the variant is not launched. It may name `sm_shared_bytes`, the shared memory of an SM, and
            `reserved_shared_bytes`, what the driver takes per block, if the launcher asks the GPU for them. A variant
            with `tune` states it there.
    """

    arch: Annotated[
        str, matching("sm_[0-9]{2,3}a?", "an architecture such as sm_80, or sm_90a for exactly that one")
    ] = "sm_75"
    multiple_of: Mapping[str, Annotated[int, Meta(ge=2)]] = field(default_factory=dict)
    at_most: Values = field(default_factory=dict)
    where: Conditions = ()
    dynamic_shared_bytes: Formula = 0

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
    """Expected properties of the compiled code.

    Attributes:
        sass: opcode prefixes that must occur.
        spills: maximum number of spilled bytes.
    """

    sass: tuple[str, ...] = ()
    spills: Annotated[int, Meta(ge=0)] | None = None


Names = str | Annotated[tuple[str, ...], Meta(min_length=1, max_length=200), UNIQUE]


class Prediction(Frozen, frozen=True, kw_only=True):
    """What the author of a variant expects of it; each campaign answers it in the table `answers`.

    Attributes:
        quantity: speedup (the time of `against` over the variant's), saved_us (their difference), tflops,
            percent_of_baseline, percent_of_dram_peak, spill_bytes, a numeric column of the table `measurements`, a
            metric, or total_<metric> (summed over the kernels of a launch).
        against: variant to compare with, or a list of them (default the parent for speedup and saved_us). With it, any
            other quantity is the ratio of the variant's value to that of `against`.
        case: timed case, or a list of them (default the headline case).
        regime: how the times were taken: rest (default), hot or sustained.
        low: smallest expected value.
        high: largest expected value.
        gpu: GPU that the numbers were said of, such as RTX A6000; on another one they are not judged. Omit it if they
            hold for any.
    """

    quantity: Name
    against: Names = ()
    case: Names = ()
    regime: Literal["rest", "hot", "sustained"] = "rest"
    low: float | None = None
    high: float | None = None
    gpu: Annotated[str, Meta(max_length=60)] = ""

    def __post_init__(self) -> None:
        """Checks that there is a range, and that nothing is named twice."""
        if self.low is None and self.high is None:
            raise ValueError("the required key 'low' or 'high' is missing")
        each_once(self.variants, self.cases)

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants to compare with."""
        return (self.against,) if isinstance(self.against, str) else self.against

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases; none for the headline case."""
        return (self.case,) if isinstance(self.case, str) else self.case


class Published(Frozen, frozen=True, kw_only=True):
    """A published result for a variant.

    Attributes:
        value: published number.
        unit: unit of the number.
        gpu: GPU of the measurement.
        source: author and title.
        case: timed case of the number; omit it if the source names none.
    """

    value: Annotated[float, Meta(gt=0)]
    unit: Literal["GFLOP/s", "TFLOP/s"]
    gpu: Annotated[str, _text(60)]
    source: Annotated[str, _text(200)]
    case: str = ""


class Tune(Frozen, frozen=True, kw_only=True):
    """Search space of `snakemake tune`; on GPUs without a search, the values in `parameters` apply.

    Attributes:
        values: values of each searched parameter, including the one in `parameters`.
        threads: threads per block as a formula of the parameters; available as THREADS in `where`.
        dynamic_shared_bytes: dynamic shared memory per block in bytes.
        where: conditions that every valid setting meets, such as `BM % TM == 0`.
        cases: timed cases that enter the score.
        first: settings to try first, such as the best ones on other GPUs.
    """

    values: Annotated[
        Mapping[Parameter, Annotated[tuple[int, ...], Meta(min_length=1, max_length=64), UNIQUE]],
        Meta(min_length=1, max_length=12),
    ]
    threads: Formula
    dynamic_shared_bytes: Formula = 0
    where: Conditions
    cases: Annotated[tuple[str, ...], Meta(min_length=1, max_length=8), UNIQUE]
    first: Annotated[tuple[Mapping[str, int], ...], Meta(max_length=32)] = ()

    def __post_init__(self) -> None:
        """Checks that no value and no case is named twice."""
        each_once(*self.values.values(), self.cases)


# What JSON Schema says of Prediction.__post_init__.
_RANGE = {"anyOf": [{"required": ["low"]}, {"required": ["high"]}]}


# What can make a variant faster or slower than its parent, named by what the child has less or more of.
Mechanism = Literal[
    "coalescing",  # sectors or lines per request of a warp
    "wide_accesses",  # words per access
    "loads_in_flight",  # loads of a thread that do not wait for one another
    "occupancy",  # resident warps
    "memory_level",  # which memory or cache answers
    "dram_bytes",
    "dram_rows",  # the order of the bytes in device memory
    "l2_bytes",
    "multicast",  # blocks that share what leaves L2 once
    "shared_accesses",  # accesses to shared memory or L1 for the same work, as by reuse in registers
    "bank_conflicts",
    "spills",
    "instructions",  # of the same kinds, for the same work
    "faster_unit",  # the same work by other instructions, such as tensor cores
    "independent_instructions",  # arithmetic that need not wait for a result
    "register_ports",  # operands from reuse caches
    "code_generation",  # the same algorithm by another compiler or library
    "barriers",
    "fences",
    "atomics",  # additions to the same address
    "load_overlap",  # loading while computing
    "store_overlap",  # storing while computing
    "block_starts",
    "idle_sms",  # fewer blocks than SMs
    "tail",  # a last wave that leaves SMs idle
    "launches",  # of kernels, and starts of copies
    "host_copies",  # copies within the host
    "bus_bytes",  # between host and device
    "page_faults",
    "concurrency",  # kernels and copies at the same time
    "tuning",  # a choice of sizes that names no mechanism
    "none",  # a change that should make no difference
]
Mechanisms = Mechanism | Annotated[tuple[Mechanism, ...], Meta(min_length=1, max_length=2), UNIQUE]


class VariantEntry(Frozen, frozen=True, kw_only=True):
    """A variant: a source with its compile-time parameters.

    Attributes:
        name: name that states the idea.
        language: language of the source: cuda (default), or what a .py file is written with.
        parent: variant that this one is based on.
        draft: draft variant, excluded from campaigns unless `variants` names it.
        idea: the idea in one sentence for figures and tables.
        note: what a ratio to its time must say, such as `its time includes a copy of the result`.
        credit: publication of the idea.
        expected: what was expected of it before it was measured, in place of that field of its source's header.
        predicts: what of that can be measured, as ranges of quantities.
        cause: the mechanism that makes the difference to the parent, by its author; of two, the weightier one first.
            Pages and models of performance are tested against it, and do not read it.
        decoy: of a cause `none`: the mechanism that changes without effect, so that naming it is an error.
        planted: the variant differs from its parent in `cause` alone. Constants of a model are fitted to some such
            pairs, and it is judged by the others. A family with such variants belongs to the oracle.
        published: published results for this variant, with their source.
        parameters: compile-time parameters such as tile sizes, passed to nvcc as -D; of a Python module, values for its
            constants.
        requires: requirements of the variant.
        memory: arrays elsewhere than in device memory: pinned (page-locked host memory, mapped for kernels), pageable
            (host memory from malloc) or managed (its pages move between host and device).
        profilers: profilers that can observe its launches (default those of the family); ncu sees no copies.
        expects: expected properties of the compiled code.
    """

    name: Name
    source: Annotated[
        Source,
        Meta(description="source in the project, relative to family.yaml (default <name>.cu, or <name>.py)"),
    ] = field(name="file", default="")
    own_options: Annotated[Compile, Meta(description="how this variant is compiled")] = field(
        name="compile", default=Compile()
    )
    language: Literal[Language, "cute"] = "cuda"
    parent: str | None = None
    draft: bool = False
    idea: Annotated[str, Meta(max_length=160)]
    note: Annotated[str, Meta(max_length=120)] = ""
    credit: Annotated[str, Meta(max_length=300)] = ""
    expected: Annotated[str, Meta(max_length=600)] = ""
    predicts: Annotated[
        tuple[Annotated[Prediction, Meta(extra_json_schema=_RANGE)], ...], Meta(max_length=64)
    ] = ()
    cause: Mechanisms | None = None
    decoy: Mechanism | None = None
    planted: Literal["fitted", "judged"] | None = None
    published: Annotated[tuple[Published, ...], Meta(max_length=64)] = ()
    parameters: Mapping[Constant, int] = field(default_factory=dict)
    requires: Requires = Requires()
    memory: Mapping[str, Literal["pinned", "pageable", "managed"]] = field(default_factory=dict)
    profilers: Annotated[tuple[Literal["ncu", "nsys"], ...], UNIQUE] = ()
    expects: Expects = Expects()
    calls: Annotated[
        bool | Library,
        Meta(
            description="whether the variant calls a library, or the path of a shared library in the project, relative"
            " to family.yaml, that is compiled already and takes the place of `file`. nsys then captures every timed"
            " case, and the tables list its kernels"
        ),
    ] = field(name="library", default=False)
    search: Annotated[Tune | None, Meta(description="search space of `snakemake tune`")] = field(
        name="tune", default=None
    )

    def __post_init__(self) -> None:
        """Checks that causes fit together, and that nothing is planted without one."""
        each_once(self.causes)
        if self.cause and not self.parent:
            raise ValueError("the required key 'parent' is missing: a cause is that of a difference to it")
        if self.planted and not self.cause:
            raise ValueError("the required key 'cause' is missing: it is what is planted")
        if "none" in self.causes and len(self.causes) > 1:
            raise ValueError("the cause 'none' excludes another one")
        if self.decoy and self.cause != "none":
            raise ValueError("a decoy has no effect: it requires the cause 'none'")

    @property
    def causes(self) -> tuple[Mechanism, ...]:
        """The causes in order of weight; () if none is stated."""
        return (self.cause,) if isinstance(self.cause, str) else self.cause or ()

    @property
    def library(self) -> bool:
        """Whether the variant calls a library, or is one."""
        return bool(self.calls)

    @property
    def prebuilt(self) -> bool:
        """Whether a shared library with the launcher takes the place of the source."""
        return isinstance(self.calls, str)


class ClaimEntry(Frozen, frozen=True, kw_only=True):
    """A published claim about the kernels; each campaign judges it in the table `claims`.

    Attributes:
        id: short identifier for tables and text.
        claim: the assertion in one sentence.
        source: publication that makes the claim.
        published: published number.
        measure: formula of the number to judge, such as median_us(naive) / median_us(gmem_coalesced, "1024").
            Quantities: numeric columns of the table `measurements`, metrics, total_<metric> (summed over the kernels of
            a launch), kernels_per_launch and sass(variant, "LDG.E.128"). Names: parameters of the case and numeric
            columns of the table `gpus`. Variants of another family are written as sgemm.naive.
        kernels: which variant in `measure` stands for which kernel of the publication, by the name that it has there,
            such as {kernel 4: wgmma_pipelined}, unless `measure` shows it.
        unit: unit of the number (default the unit of a single quantity).
        case: timed case of the claim (default the headline case).
        confirmed_if: condition on the number that confirms the claim, such as >= 5 or 4 .. 6; otherwise it is refuted.
        about: GPU or machine of the published number, such as `an A6000`, if others cannot share it: the claim is
            judged on that GPU only, and elsewhere the number is shown.
        not_judged: why the claim is not judged; the number, if any, is only shown.
    """

    id: Annotated[
        str, matching("[A-Za-z][A-Za-z0-9_]{0,15}", "up to 16 letters, digits and _, beginning with a letter")
    ]
    claim: Annotated[str, _text(200)]
    source: Annotated[str, _text(300)]
    published: Annotated[str, Meta(max_length=200)] = ""
    measure: Annotated[str, _text(500)] = ""
    kernels: Annotated[Mapping[Annotated[str, _text(60)], str], Meta(max_length=8)] = field(
        default_factory=dict
    )
    unit: Annotated[str, Meta(max_length=20)] = ""
    case: str = ""
    confirmed_if: Annotated[str, _text(60)] = ""
    about: Annotated[str, _text(60)] = ""
    not_judged: Annotated[str, _text(200)] = ""


class CeilingEntry(Frozen, frozen=True, kw_only=True):
    """What the kernels of a family show of the GPU: the best rate of a unit, a latency, or what an action costs.

    Each campaign measures it into the table `ceilings`; `dram_gbytes_per_s`, `l2_gbytes_per_s`, `l1_gbytes_per_s` and
    `fp32_tflops` take the place of peaks in rooflines, the first two also where a kernel's bound is named.

    Attributes:
        ceiling: name that ends in the unit, such as barrier_us.
        about: what it is, in a few words.
        measure: formula of its value, as `measure` of a claim.
        unit: unit of the value.
        case: timed case of the formula (default the headline case).
        low: smallest value that any GPU can be expected to show; below it, the value is not used.
        high: largest such value.
    """

    ceiling: Name
    about: Annotated[str, _text(120)]
    measure: Annotated[str, _text(500)]
    unit: Annotated[str, _text(20)]
    case: str = ""
    low: float | None = None
    high: float | None = None


class Probe(Frozen, frozen=True, kw_only=True):
    """A quantity whose true value is known for the kernels of a family.

    The measured value may differ from the expected one by `relative` times the expected value plus `absolute`.

    Attributes:
        cases: cases with a known value: names, or patterns with *.
        quantity: column of `measurements`, metric, dominant_stall, occupancy_limiter or occupancy_by_formula_pct.
        expected: formula over the case's parameters and other quantities of the case; or the name of a stall reason or
            resource.
        minus: case whose quantity is subtracted first.
        relative: tolerance as a share of the expected value.
        absolute: tolerance in the quantity's unit.
        at_least: whether any larger measured value is accepted.
    """

    name: Annotated[str, _text(60), Meta(description="the known property")] = field(name="probe")
    cases: Annotated[tuple[CaseName, ...], Meta(min_length=1)]
    quantity: Name
    expected: Formula
    minus: CaseName = ""
    relative: Annotated[float, Meta(ge=0, le=1)] = 0.0
    absolute: Annotated[float, Meta(ge=0)] = 0.0
    at_least: bool = False


class FamilyFile(Frozen, frozen=True, kw_only=True):
    """Contract of a kernel family (kernels/<family>/family.yaml).

    Attributes:
        title: heading of figures and of the MLflow experiment.
        summary: what the kernels compute, in one line.
        arguments: arguments of the launcher in order, followed by a cudaStream_t.
        tolerance: tolerance of outputs without one of their own.
        work: work of a case.
        defaults: default values of the case parameters.
        profile_cases: cases to profile with ncu and nsys: names, or patterns with *.
        headline_case: timed case that single-number summaries quote; one of profile_cases.
        baseline: variant that ratios refer to, or <family>.<variant>: a variant of another family with the same
            arguments.
        draft: draft family, excluded from campaigns unless `families` names it.
        empty_arrays: whether arrays of check cases may have no elements, as with n: 0.
        measuring: measurement options.
        timeline: variants whose kernels have marks (timeline.cuh), and the case of each that `snakemake timeline`
            captures.
        accesses: cases whose memory accesses `snakemake accesses` traces: names, or patterns with *; by default, and
            for variants that support none of them, the smallest timed one.
        figures: additional figures, drawn only for families that list them.
        variants: variants in ladder order.
        claims: published claims about these kernels; each campaign judges them in the table `claims`.
        ceilings: what these kernels show of the GPU; each campaign measures it into the table `ceilings`.
        probes: known true values of quantities; a family with probes belongs to `snakemake oracle`.
    """

    name: Annotated[Name, Meta(description="name of the family, equal to the name of its folder")] = field(
        name="family"
    )
    title: Annotated[str, Meta(max_length=120)]
    summary: Annotated[str, Meta(max_length=300)]
    arguments: Annotated[
        tuple[Annotated[Argument, Meta(extra_json_schema=_BY_KIND)], ...], Meta(min_length=1, max_length=64)
    ]
    tolerance: Tolerances
    shared_options: Annotated[
        Compile, Meta(description="how all variants are compiled, extended by `compile` of a variant")
    ] = field(name="compile", default=Compile())
    work: Work
    defaults: Values = field(default_factory=dict)
    timed: Annotated[Cases, Meta(description="problems that are timed")] = field(name="cases")
    checked: Annotated[
        Cases,
        Meta(
            description="problems for the correctness check, with awkward sizes; never timed, profiled only if"
            " profile_cases names them"
        ),
    ] = field(name="check_cases")
    profile_cases: Annotated[tuple[str, ...], Meta(min_length=1)]
    headline_case: str
    baseline: str = ""
    draft: bool = False
    empty_arrays: bool = False
    measuring: Measuring = Measuring()
    timeline: Annotated[Mapping[Name, CaseName], Meta(min_length=1, max_length=50)] = field(
        default_factory=dict
    )
    accesses: Annotated[tuple[str, ...], Meta(max_length=50)] = ()
    figures: Annotated[tuple[Name, ...], Meta(max_length=20)] = ()
    variants: Annotated[tuple[VariantEntry, ...], Meta(min_length=1, max_length=200)]
    claims: Annotated[tuple[ClaimEntry, ...], Meta(max_length=200)] = ()
    ceilings: Annotated[tuple[CeilingEntry, ...], Meta(max_length=64)] = ()
    probes: Annotated[tuple[Probe, ...], Meta(min_length=1, max_length=500)] = ()


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
