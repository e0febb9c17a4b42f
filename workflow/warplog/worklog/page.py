"""The content of a worklog page: rows of the tables, authored texts and code, selected and ordered but not worded.

Every row is a `Cells`, so that a template shows its numbers with their places; the words are made in the templates from
the codes in the rows. A text is authored (by the family, a source or a publication), a name, or a code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from warplog.catalog.header import Header
from warplog.figures.shared.memory_boxes import MemoryChart
from warplog.worklog.cells import Cells
from warplog.worklog.code.heat import HeatMap
from warplog.worklog.code.listing import Code
from warplog.worklog.code.machine_code import MachineCode
from warplog.worklog.code.sources import SourceView


@dataclass(frozen=True)
class Picture:
    """A figure drawn from the tables, with its caption."""

    name: str
    title: str
    caption: str
    path: Path


@dataclass(frozen=True)
class Origin:
    """Where a variant comes from; "" for what it lacks.

    Attributes:
        parameters: Name and value of each compile-time parameter.
        unused: Names of those that make no difference at the headline case, where it launches its parent's kernel.
        changed: Name, parent's value and own value of each that differs from the parent's.
    """

    parent: str
    credit: str
    compile: str
    parameters: tuple[tuple[str, str], ...] = ()
    unused: frozenset[str] = frozenset()
    changed: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Step:
    """What a variant changes against its parent.

    Attributes:
        row: of the table `steps`.
        headline: The one or two of `changes` that say why, the first one first; empty if counters do not explain it.
        argument: The causes, then the costs.
        details: The other changes, in their order.
    """

    row: Cells
    headline: tuple[Cells, ...]
    argument: tuple[Cells, ...]
    details: tuple[Cells, ...]


@dataclass(frozen=True)
class Argued:
    """Why a variant is faster or slower, as the model of mechanisms argues it.

    Attributes:
        row: of the table `mechanisms`.
        counts: of `metrics`: what the mechanism rests on and changed most, in the parent and in the variant.
        wait: of `changes`: the warp state that accounts for the saving; None if no state does.
        units: of `unit_times`: units with a part of the predicted saving, the largest first.
    """

    row: Cells
    counts: tuple[Cells, ...]
    wait: Cells | None
    units: tuple[Cells, ...]


@dataclass(frozen=True)
class Conclusions:
    """What is concluded about a variant; a row that does not exist is None.

    Attributes:
        place: of `ladder`.
        over: of `verdicts`: against its parent at the headline case.
        turned: of `verdicts`: cases at which it is faster or slower than its parent, but not at the headline case, the
            largest difference first.
        cases: At how many cases both have a time.
        argued: None where the model knows too little of the kernels or of the GPU; `step` explains it then.
        forecasts: of `forecasts`: what would help next, the best first.
        bound: of `bounds`.
        traced: of `traced`; None if it was not traced.
        wavefronts: of `metrics`: those of shared memory by the addresses and by L1, where L1 had fewer; else None.
        accesses: of `access_lines`: those with findings, and those with most requests, in the order of the code.
        more_accesses: How many others there are.
        duel: of `duels`: against its parent; None without one of these sources.
        same_kernel: First variant of the ladder that launches the same kernel, if its parent does too; else "".
    """

    place: Cells
    over: Cells | None
    turned: tuple[Cells, ...]
    cases: int
    step: Step | None
    argued: Argued | None
    forecasts: tuple[Cells, ...]
    bound: Cells | None
    duel: Cells | None
    same_kernel: str
    traced: Cells | None
    wavefronts: tuple[Cells, Cells] | None
    accesses: tuple[Cells, ...]
    more_accesses: int

    @property
    def is_on_path(self) -> bool:
        """Whether it is a step of the main path; the others are detours."""
        return int(str(self.place.raw("step"))) > 0


@dataclass(frozen=True)
class Section(Conclusions):
    """A variant on the page; a row that does not exist is None.

    Attributes:
        language: of the source if the family has several, else "".
        badges: The status if it is not ok, or "other_cases" if it is unsupported at the headline case alone;
            "baseline", "draft".
        gap: Why there are no numbers, as the record says it; "" if there are.
        note: What a ratio to its time must say.
        header: The fields of the source's header; `expected` is what the campaign recorded.
        measured: of `measurements` at the headline case; None without a time.
        answers, claims, published: Rows of these tables; answers are the predictions and what came of them.
        lines: of `lines`: its hottest ones.
        overlap: of `metrics` by metric: copies and kernels at once.
        resources: of `metrics` by metric: registers, threads and shared memory of its longest kernel.
        built: of `variants`; `spill_bytes` is there.
        remarks: What to know of its numbers, as the records say it.
        code: Its code as a diff to its parent's.
        heat: Where the samples of its longest kernel fall in `sources`.
        loops: Its hottest loops in machine code, each beside its counterpart in the parent; empty without samples.
        sass: The machine code of its longest kernel; empty where the campaign did not keep it.
        chips: of `chips`: what it needs on each architecture that it was compiled for; empty if it was not.
        pictures: Figures of this variant.
        memory: The memory charts of its parent, if that has counters, and of its own longest kernel.
    """

    name: str
    language: str
    badges: tuple[str, ...]
    gap: str
    idea: str
    note: str
    origin: Origin
    header: Header
    measured: Cells | None
    answers: tuple[Cells, ...]
    claims: tuple[Cells, ...]
    published: tuple[Cells, ...]
    lines: tuple[Cells, ...]
    overlap: Mapping[str, Cells]
    resources: Mapping[str, Cells]
    built: Cells
    remarks: tuple[str, ...]
    code: Code
    heat: HeatMap = field(default_factory=HeatMap)
    sources: tuple[SourceView, ...] = ()
    loops: tuple[MachineCode, ...] = ()
    sass: tuple[str, ...] = ()
    chips: tuple[Cells, ...] = ()
    pictures: tuple[Picture, ...] = ()
    memory: tuple[MemoryChart, ...] = ()


@dataclass(frozen=True)
class PathStep:
    """A step of the main path on a logarithmic axis of speed, from 0 to 1, with the variants that branch off there.

    `start` and `end` are the places of the previous step and of its own; `detours` are rows of `ladder`.
    """

    place: Cells
    start: float
    end: float
    detours: tuple[Cells, ...]


@dataclass(frozen=True)
class Waterfall:
    """The main path; `baseline` is the baseline's place on the axis, None without one.

    `relative` is the variant that `ticks`, (place, percent), refer to.
    """

    steps: tuple[PathStep, ...]
    baseline: float | None
    relative: str
    ticks: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Lead:
    """What the page says first.

    Attributes:
        best: of `ladder`: the fastest variant besides the baseline; None if none has a time.
        tied: The variants that are as fast within noise.
        total: of `verdicts`: the fastest variant against the first step of the main path; None without a path.
        first: of `ladder`: that step.
        steps: How many steps follow the first one.
        long: of `ladder`: the fastest variant in a long run, if a long run is slower than the fastest one at rest.
    """

    best: Cells | None
    tied: tuple[str, ...] = ()
    total: Cells | None = None
    first: Cells | None = None
    steps: int = 0
    long: Cells | None = None


@dataclass(frozen=True)
class Facts:
    """GPU, campaign and tools; "" for what is unknown. `peaks` are the source of the GPU's peaks.

    `tools` are name and version; `slowest` and `fastest` are rows of `measurements` with the lowest and the highest
    mean SM clock at the headline case; `campaign` is its name and `origins` where its numbers come from.
    """

    gpu: Cells | None
    gpu_name: str
    driver: str
    cuda: str
    campaign: str
    origins: tuple[str, ...]
    started: str
    commits: str
    clocks: str
    peaks: str
    tools: tuple[tuple[str, str], ...]
    slowest: Cells | None
    fastest: Cells | None
    shared_remarks: tuple[str, ...]


@dataclass(frozen=True)
class Method:
    """How it was measured.

    Attributes:
        is_exact: Whether results had to be exactly right.
        is_host: Whether times include the host's part.
        is_at_rest: Whether the clock was known, so that times are at rest.
        processes: of `measurements`: rows with the fewest and with the most processes; empty for single processes.
        sizes: Name and value of the dimensions of the headline case, if its name does not say them.
        counters: "ncu", "none" (they were not captured),
            "serial" (none, since ncu removes the overlap) or "copies" (none, since copies have none).
        regimes: "sustained", "back_to_back": long runs that are slower.
        traced: The cases whose addresses were traced, that of most variants first.
    """

    is_exact: bool
    is_host: bool
    is_at_rest: bool
    processes: tuple[Cells, ...]
    sizes: tuple[tuple[str, str], ...]
    counters: str
    regimes: tuple[str, ...]
    traced: tuple[str, ...]


@dataclass(frozen=True)
class Draft:
    """A variant that this campaign did not measure; all texts are authored."""

    name: str
    parent: str
    idea: str
    published: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """The worklog of a family.

    Attributes:
        case: The headline case.
        profiled_case: The case whose counters are shown.
        baseline: The variant that shares refer to; "" without one.
        speed: The column of `measurements` that shows the speed: gflops, gbytes_per_s or median_us.
        claims: Those about the whole ladder.
        ceilings: of `ceilings`: what these kernels show of the GPU.
        timed: of `measurements`: by case in order of size, then by variant; a variant that did not run is missing.
        not_run: The sizes beyond which variants do not run, with their names.
        states: The warp states that the page names.
        key: The pictures that belong to this family alone, which come first.
        ladder: The picture of the ladder; `pictures` are the others.
        drafts: Variants that this campaign did not measure.
        waterfall: The main path; None if it is too short for one.
        chart: The Vega-Lite specification of the interactive charts; "" for none.
    """

    family: str
    title: str
    summary: str
    case: str
    profiled_case: str
    baseline: str
    speed: str
    size_label: str
    facts: Facts
    lead: Lead
    method: Method
    sections: tuple[Section, ...]
    claims: tuple[Cells, ...]
    ceilings: tuple[Cells, ...]
    timed: Mapping[str, Mapping[str, Cells]]
    not_run: tuple[tuple[str, tuple[str, ...]], ...]
    states: frozenset[str]
    key: tuple[Picture, ...]
    ladder: Picture | None
    pictures: tuple[Picture, ...]
    drafts: tuple[Draft, ...] = ()
    waterfall: Waterfall | None = None
    chart: str = ""
