"""The rows of what is concluded from a campaign, a type and a table per kind: verdicts, ladder, steps, ...

A row holds codes and values with their units, never a sentence. Pages, `explain` and the text formats make words of
them; the audit of the pages looks their numbers up here.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeVar, get_args, get_type_hints

from warplog.core.columns import KEY, ORIGIN, Cell, Column

if TYPE_CHECKING:
    import pandas as pd

NAN = math.nan
_FAMILY = Annotated[str, "", KEY["family"].meaning]
_VARIANT = Annotated[str, "", KEY["variant"].meaning]
_PARENT = Annotated[str, "", "variant that it is based on"]
_CASE = Annotated[str, "", KEY["case"].meaning]
_WORD = Annotated[str, "", "FASTER, SLOWER, SAME or AMBIGUOUS; empty without two times"]
BY_UNIT = "unit"  # the unit is in the column of this name


@dataclass(frozen=True)
class Conclusion:
    """A row of a table of conclusions.

    Attributes:
        TABLE: name of the table.
        KEYS: columns that tell its rows apart.
    """

    TABLE: ClassVar[str]
    KEYS: ClassVar[tuple[str, ...]]


@dataclass(frozen=True)
class Verdict(Conclusion):
    """A variant against another one at a case, by the one rule of analysis/verdicts.py."""

    TABLE = "verdicts"
    KEYS = ("family", "variant", "against", "case", "regime")

    family: _FAMILY
    variant: _VARIANT
    against: Annotated[str, "", "variant that it is compared with: its parent, the baseline or another one"]
    case: _CASE
    regime: Annotated[str, "", "rest or sustained"]
    word: _WORD
    reason: Annotated[
        str, "", "why it is AMBIGUOUS: wide (the interval exceeds the margin) or two_groups; else empty"
    ]
    us: Annotated[float, "us", "time per launch"]
    against_us: Annotated[float, "us", "time per launch of the other variant"]
    speedup: Annotated[float, "x", "against_us divided by us: above 1 is faster"]
    low: Annotated[float, "x", "lower end of the speed-up's interval"]
    high: Annotated[float, "x", "upper end of the speed-up's interval"]
    floor_pct: Annotated[float, "%", "smallest gap that counts"]
    p: Annotated[float, "", "two-sided probability that the same code shows such a gap"]


@dataclass(frozen=True)
class Place(Conclusion):
    """A variant in its family's ladder at the headline case."""

    TABLE = "ladder"
    KEYS = ("family", "variant")

    family: _FAMILY
    variant: _VARIANT
    case: Annotated[str, "", "headline case"]
    order: Annotated[int, "", "position in the ladder, from 0"]
    step: Annotated[int, "", "position on the main path, from 1; 0 beside it"]
    previous: Annotated[
        str, "", "the step before; of a variant beside the path, the step that it descends from; else empty"
    ]
    word: _WORD
    gain: Annotated[float, "x", "time of `previous` divided by its own"]
    low: Annotated[float, "x", "lower end of the gain's interval"]
    high: Annotated[float, "x", "upper end of the gain's interval"]
    kernel_of: Annotated[
        str, "", "first variant of the ladder that launches the same kernel at this case; empty for none"
    ]
    fastest: Annotated[str, "", "best: the fastest variant besides the baseline; tied with it; else empty"]
    speed: Annotated[float, BY_UNIT, "speed at rest in `unit`"]
    long_speed: Annotated[float, BY_UNIT, "speed in a long run, if that is slower; in `unit`"]
    unit: Annotated[str, "", "unit of the speeds"]
    share_pct: Annotated[float, "%", "speed in percent of the baseline"]
    long_regime: Annotated[
        str, "", "sustained (a limit of the board acts) or back_to_back, if a long run is slower"
    ]
    limited_by: Annotated[str, "", "what lowers the clock in a long run: power, temperature or other"]


@dataclass(frozen=True)
class Step(Conclusion):
    """A variant compared with its parent at the case whose counters were captured."""

    TABLE = "steps"
    KEYS = ("family", "variant")

    family: _FAMILY
    variant: _VARIANT
    parent: _PARENT
    case: Annotated[str, "", "case whose counters were captured"]
    gap: Annotated[
        str, "", "why it is not explained: no_parent, no_status, no_time, no_counters; empty if it can be"
    ]
    gap_of: Annotated[str, "", "variants that the gap is about, comma-separated"]
    gap_detail: Annotated[str, "", "the status or the counters behind the gap"]
    word: _WORD
    speedup: Annotated[float, "x", "the parent's time at rest divided by the variant's"]
    low: Annotated[float, "x", "lower end of the speed-up's interval"]
    high: Annotated[float, "x", "upper end of the speed-up's interval"]
    explained: Annotated[
        str,
        "",
        "counters (they account for at least half of it), tied, same_kernel, other_kernels (of the launch make at least"
        " half of it), within_runs (smaller than the difference between profiled and timed launches), little (the"
        " counters account for less than half), no_cause (they account for it, but only show what follows from the"
        " time); with the gap no_counters, accesses (traced accesses changed as the time did); else empty",
    ]
    remainder: Annotated[float, "x", "factor that no counter accounts for"]
    kernel_us: Annotated[float, "us", "time of the longest kernel under ncu"]
    parent_kernel_us: Annotated[float, "us", "the same of the parent"]
    others_us: Annotated[float, "us", "time of the other kernels of the launch under ncu"]
    parent_others_us: Annotated[float, "us", "the same of the parent"]
    counted_pct: Annotated[float, "%", "share of the longest kernel in the launch's time under ncu"]
    parent_counted_pct: Annotated[float, "%", "the same of the parent"]
    ancestor: Annotated[str, "", "fastest ancestor beyond the parent that is faster than it; empty for none"]
    ancestor_speedup: Annotated[float, "x", "the time of that ancestor divided by the variant's"]
    twin: Annotated[str, "", "variant that launches the same kernel; empty for none"]
    twin_code: Annotated[str, "", "same or recompiled (different machine code)"]
    twin_word: _WORD
    twin_speedup: Annotated[float, "x", "the twin's time divided by the variant's"]
    twin_instructions: Annotated[int, "inst", "instructions in the machine code of the twin's kernel"]
    instructions: Annotated[
        int, "inst", "instructions in the machine code of the variant's kernel, if it has a twin"
    ]
    registers: Annotated[int, "register", "registers per thread, if it has a twin"]
    is_idle: Annotated[
        bool,
        "",
        "whether schedulers issue so rarely, before and after, that instructions do not set the time",
    ]


@dataclass(frozen=True)
class Change(Conclusion):
    """A quantity that a step changes: what argues for or against it, in the order in which it is told."""

    TABLE = "changes"
    KEYS = ("family", "variant", "rank")

    family: _FAMILY
    variant: _VARIANT
    rank: Annotated[int, "", "order in which the changes of a step are told, from 0"]
    parent: _PARENT
    case: _CASE
    role: Annotated[
        str,
        "",
        "cause (accounts for the gain), cost (acts against it), effect (a result of the change, no reason) or detail",
    ]
    kind: Annotated[
        str,
        "",
        "factor (of the time), state (of warps), unit (use of it), traffic, sectors, grid, occupancy, blocks, atomics,"
        " bubble (at the end of a tile), clock, counter, or access (by traced addresses, at the case of the trace)",
    ]
    quantity: Annotated[
        str,
        "",
        "metric in the registry, warp state (issuing_or_ready: it issues or could), sm_busy_pct, sm_mhz, blocks_per_sm,"
        " bubble_us or contended_atomics (0 or 1); of an access, sectors_per_read, _write or _atomic, or if other"
        " widths mislead, read_sectors_per_ideal, ...; shared_read_ways, ... (1 without conflicts or such accesses);"
        " traced_sectors or traced_wavefronts (all of the launch)",
    ]
    before: Annotated[float, BY_UNIT, "the parent's value in `unit`"]
    after: Annotated[float, BY_UNIT, "the variant's value in `unit`"]
    unit: Annotated[str, "", "unit of the values"]
    factor: Annotated[float, "x", "how many times faster it makes the variant; empty for other kinds"]
    saved_us: Annotated[
        float, "us", "the parent's time in the warp state minus the variant's; empty for other kinds"
    ]
    of: Annotated[
        str,
        "",
        "quantity of this step that it accounts for or changes along with; of an access, the array; else empty",
    ]
    wait: Annotated[
        str,
        "",
        "what the variant's warps wait for in the state: wgmma, tma, mbarrier, ...; empty if its name says it",
    ]
    wait_line: Annotated[
        str, "", "file:line at which most of these samples fall, or of the access; empty if unknown"
    ]
    parent_wait: Annotated[str, "", "the same of the parent"]
    parent_wait_line: Annotated[str, "", "the same of the parent"]


@dataclass(frozen=True)
class Bound(Conclusion):
    """What bounds the longest kernel of a variant."""

    TABLE = "bounds"
    KEYS = ("family", "variant")

    family: _FAMILY
    variant: _VARIANT
    case: Annotated[str, "", "case whose counters were captured"]
    kernel: Annotated[str, "", "name of the longest kernel"]
    gap: Annotated[str, "", "why it is unknown: no_counters, no_throughput; empty if it is known"] = ""
    kind: Annotated[
        str,
        "",
        "memory or compute (a ceiling is reached), near (one is close), latency, queue (the largest stall is a full"
        " queue: throughput, not latency), atomics (contention on few addresses),"
        " launch (the grid does not fill the GPU); empty if unknown",
    ] = ""
    ceiling: Annotated[
        str, "", "metric of the closest ceiling, whose peak it is a share of, or one of the table `ceilings`"
    ] = ""
    ceiling_pct: Annotated[float, "%", "how much of it is used"] = NAN
    ceiling_2: Annotated[
        str,
        "",
        "the same of another ceiling within 5 percentage points, or of the pipe whose instructions fill the issue"
        " slots; empty for none",
    ] = ""
    ceiling_2_pct: Annotated[float, "%", "how much of that is used"] = NAN
    beside: Annotated[str, "", "the same of L2 or device memory where the other one is the ceiling"] = ""
    beside_pct: Annotated[float, "%", "how much of that is used"] = NAN
    l1_bytes_pct: Annotated[
        float, "%", "bandwidth of L1/TEX that global and local accesses use, if it is the ceiling"
    ] = NAN
    shared_wavefronts: Annotated[
        float, "wavefront", "shared-memory wavefronts, if they take most of what L1/TEX does as the ceiling"
    ] = NAN
    stall: Annotated[str, "", "warp stall with most cycles"] = ""
    stall_pct: Annotated[float, "%", "its share of a warp's cycles"] = NAN
    wait: Annotated[str, "", "what the warps wait for in that stall; empty if its name says it"] = ""
    wait_line: Annotated[str, "", "file:line at which most of these samples fall; empty if unknown"] = ""
    theoretical_pct: Annotated[float, "%", "theoretical occupancy"] = NAN
    achieved_pct: Annotated[float, "%", "achieved occupancy"] = NAN
    limiters: Annotated[str, "", "resources that limit the theoretical occupancy, comma-separated"] = ""
    blocks: Annotated[int, "block", "blocks of a grid of less than one wave; else empty"] = -1
    waves: Annotated[float, "wave", "part of a wave of such a grid; else empty"] = NAN
    sms: Annotated[int, "", "SMs of the GPU"] = -1
    profiled_cycles: Annotated[float, "x", "cycles of the profiled launch over those of the timed ones"] = NAN
    copies_us: Annotated[float, "us", "time of the copies of a launch, which are no kernels"] = NAN
    dram_bytes: Annotated[float, "byte", "bytes moved to and from device memory"] = NAN
    compulsory_bytes: Annotated[float, "byte", "compulsory traffic"] = NAN
    traffic: Annotated[float, "x", "dram_bytes divided by compulsory_bytes"] = NAN
    conflicts_pct: Annotated[float, "%", "share of bank conflicts in the shared-memory wavefronts"] = NAN
    spill_store_bytes: Annotated[int, "byte", "spill stores per thread of the kernel; empty if unknown"] = -1
    spill_load_bytes: Annotated[int, "byte", "spill loads per thread of the kernel; empty if unknown"] = -1
    rest_us: Annotated[float, "us", "time at rest, if a long run is slower"] = NAN
    long_us: Annotated[float, "us", "time per launch in a long run, if that is slower"] = NAN
    long_slowdown: Annotated[float, "x", "long_us divided by the time at rest"] = NAN
    long_regime: Annotated[str, "", "sustained or back_to_back"] = ""
    limited_by: Annotated[str, "", "what lowers the clock in a long run: power, temperature or other"] = ""
    from_mhz: Annotated[float, "MHz", "SM clock that is set at rest"] = NAN
    to_mhz: Annotated[float, "MHz", "SM clock that is set in a long run"] = NAN
    power_w: Annotated[float, "W", "mean board power in a long run"] = NAN


@dataclass(frozen=True)
class Traced(Conclusion):
    """What the traced addresses of one launch show of a variant; sums are of all its kernels.

    A variant that was traced at several cases has several rows, of which pages show the first one.
    """

    TABLE = "traced"
    KEYS = ("family", "variant", "case")

    family: _FAMILY
    variant: _VARIANT
    case: Annotated[str, "", "case that was traced"]
    status: Annotated[str, "", "ok, or why nothing was traced"]
    reason: Annotated[str, "", "why the status is not ok"] = ""
    blocks: Annotated[int, "block", "blocks of the launch"] = -1
    traced_blocks: Annotated[int, "block", "those whose accesses are in the sums"] = -1
    untraced: Annotated[str, "", "opcodes of accesses that a trace cannot see, comma-separated"] = ""
    load_sectors_per_request: Annotated[float, "sector/request", "sectors per global load"] = NAN
    load_sectors_ideal: Annotated[float, "sector/request", "the fewest that hold the bytes of a load"] = NAN
    store_sectors_per_request: Annotated[float, "sector/request", "sectors per global store"] = NAN
    store_sectors_ideal: Annotated[float, "sector/request", "the fewest that hold the bytes of a store"] = NAN
    shared_wavefronts: Annotated[float, "wavefront", "wavefronts of shared memory"] = NAN
    shared_wavefronts_ideal: Annotated[float, "wavefront", "those without bank conflicts"] = NAN
    shared_ways: Annotated[float, "ratio", "wavefronts per ideal wavefront: 1 without conflicts"] = NAN
    block_bytes: Annotated[float, "byte", "distinct bytes of global memory that a block reads, median"] = NAN
    wave_blocks: Annotated[int, "block", "blocks that fit on the GPU at once"] = -1
    wave_bytes: Annotated[float, "byte", "distinct bytes that these read"] = NAN
    wave_bytes_of_blocks: Annotated[float, "byte", "sum of what each of them reads"] = NAN
    wave_reuse: Annotated[float, "x", "wave_bytes_of_blocks divided by wave_bytes"] = NAN
    counted: Annotated[int, "inst", "instructions that Nsight Compute counted in the same launch"] = -1
    differing: Annotated[
        int, "inst", "those for which it counted something else than the addresses give"
    ] = -1
    same_address: Annotated[
        int, "", "most atomic operations on one address of global memory, by all instructions of a kernel"
    ] = -1


@dataclass(frozen=True)
class AccessLine(Conclusion):
    """How a source line accesses an array or shared memory, summed over its instructions in all kernels."""

    TABLE = "access_lines"
    KEYS = ("family", "variant", "case", "file", "line", "space", "kind", "array")

    family: _FAMILY
    variant: _VARIANT
    case: Annotated[str, "", "case that was traced"]
    file: Annotated[str, "", "name of the source file; empty without a line table"]
    line: Annotated[int, "", "line in it; 0 without a line table"]
    text: Annotated[str, "", "the source line"]
    space: Annotated[str, "", "global, shared or local"]
    kind: Annotated[
        str, "", "load, store, atomic, async_copy, ldmatrix, stmatrix, wgmma or bulk_copy (of one side each)"
    ]
    array: Annotated[str, "", "argument that the addresses belong to; empty for several or none"]
    requests: Annotated[int, "request", "executions by a warp"]
    per_request: Annotated[float, BY_UNIT, "sectors, or wavefronts of shared memory, per request"]
    ideal: Annotated[
        float, BY_UNIT, "the fewest sectors that hold its bytes; wavefronts without bank conflicts"
    ]
    unit: Annotated[str, "", "sector/request or wavefront/request"]
    used_bytes: Annotated[float, "byte", "distinct bytes per sector; empty for shared memory"]
    ways: Annotated[
        int, "ratio", "largest number of words of one bank that a request needs; global memory: empty"
    ]
    finding: Annotated[
        str,
        "",
        "scattered (more sectors than needed), conflicts (more wavefronts than without bank conflicts); else empty",
    ]
    counted: Annotated[
        str, "", "equal or differs: what Nsight Compute counted at these instructions; empty if it did not"
    ]
    same_address: Annotated[
        int, "", "most atomic operations by lanes on one address, of a single instruction; otherwise empty"
    ] = -1
    same_address_lanes: Annotated[int, "", "the most of a single request"] = -1


@dataclass(frozen=True)
class SassStep(Conclusion):
    """A quantity of a hot loop of a variant and of its counterpart in the parent, from the table `instructions`."""

    TABLE = "sass_steps"
    KEYS = ("family", "variant", "case", "loop", "quantity", "per")

    family: _FAMILY
    variant: _VARIANT
    parent: _PARENT
    case: _CASE
    loop: Annotated[
        int,
        "",
        "0: the variant's hottest loop and the one of the parent that does the same; 1: the parent's hottest loop and"
        " that of the variant, if those are others",
    ]
    quantity: Annotated[
        str,
        "",
        "instructions; those of a kind (ffma, lds, ldg, integer, sync, ...); loads and stores of a width (lds_128: 128"
        " bits a lane); reuse_flags and bank_conflicts of the registers of FFMA; sample_share, of the kernel's samples",
    ]
    per: Annotated[
        str,
        "",
        "iteration; warp, for code outside of loops; kernel; or a unit of work that both loops have: ffma, double,"
        " hmma, hgmma, or word: 32 bits a lane loaded from global memory",
    ]
    before: Annotated[float, BY_UNIT, "the parent's value in `unit`; empty without samples"]
    after: Annotated[float, BY_UNIT, "the variant's value in `unit`; empty without samples"]
    unit: Annotated[str, "", "unit of the values; empty for counts"]


@dataclass(frozen=True)
class Answer(Conclusion):
    """Whether what family.yaml asserts holds: a claim, a prediction, or a property of the compiled code."""

    TABLE = "answers"
    KEYS = ("family", "kind", "variant", "id", "quantity", "against", "case", "regime", "said_of")

    family: _FAMILY
    variant: Annotated[str, "", "variant that it is about; empty for a claim about several"]
    kind: Annotated[str, "", "predicts, expects or claim"]
    id: Annotated[str, "", "identifier of a claim; else empty"]
    quantity: Annotated[
        str,
        "",
        "quantity of a prediction; of the compiled code, spill_bytes or sass_<opcode> (instructions whose opcode begins"
        " so); the formula of a claim",
    ]
    against: Annotated[
        str,
        "",
        "variant that is compared with, empty for none; unless the quantity is speedup or saved_us, the values are"
        " ratios to its value",
    ]
    case: _CASE
    regime: Annotated[str, "", "rest, hot or sustained; empty if the quantity depends on none"]
    low: Annotated[float, BY_UNIT, "smallest value that is asserted, in `unit`; empty if there is none"]
    high: Annotated[float, BY_UNIT, "largest value that is asserted, in `unit`; empty if there is none"]
    unit: Annotated[str, "", "unit of the values; x for ratios"]
    said_of: Annotated[str, "", "GPU that the assertion is about; empty for any"]
    source: Annotated[str, "", "publication that makes a claim; else empty"]
    measured: Annotated[float, BY_UNIT, "value in this campaign, in `unit`; empty if it has none"]
    measured_low: Annotated[
        float, BY_UNIT, "lower end of the interval in which the same code shows it (p = 0.002 to be outside)"
    ]
    measured_high: Annotated[float, BY_UNIT, "upper end of that interval"]
    word: Annotated[
        str,
        "",
        "met: all values between `measured_low` and `measured_high` are as asserted; missed: none is; within_noise:"
        " some are; or not_measurable",
    ]
    off: Annotated[float, "", "`measured` over the end that it misses, minus 1; empty if it is not missed"]
    reason: Annotated[
        str,
        "",
        "why it is not measurable: other_gpu (it is about another one), not_judged (a claim without a condition),"
        " not_measured (the case is not in the campaign), no_time, no_value, no_peak (of the GPU), not_captured,"
        " not_tuned (a claim about the result of a search, without one on this GPU), not_recorded (an older campaign"
        " did not collect the counter), not_compiled, or the status of the measurement or the metric; else empty",
    ]
    reason_of: Annotated[str, "", "variant, GPU or column of `gpus` that `reason` refers to"]


@dataclass(frozen=True)
class Ceiling(Conclusion):
    """What kernels of a family show of the GPU: the best rate of a unit, a latency, or what an action costs."""

    TABLE = "ceilings"
    KEYS = ("family", "ceiling")

    family: _FAMILY
    variant: Annotated[str, "", "variants that it is measured with, comma-separated"]
    case: Annotated[str, "", "case of those numbers in `measure` that name none"]
    ceiling: Annotated[str, "", "its name, which ends in the unit"]
    about: Annotated[str, "", "what it is"]
    measure: Annotated[str, "", "formula of the value"]
    value: Annotated[float, BY_UNIT, "value in this campaign, in `unit`; empty if it has none"]
    value_low: Annotated[
        float,
        BY_UNIT,
        "lower end of the interval in which the same code shows it, from the spread of its processes",
    ]
    value_high: Annotated[float, BY_UNIT, "upper end of that interval"]
    unit: Annotated[str, "", "unit of the values"]
    low: Annotated[float, BY_UNIT, "smallest value that is expected of any GPU; empty if there is none"]
    high: Annotated[float, BY_UNIT, "largest such value; empty if there is none"]
    word: Annotated[
        str,
        "",
        "met: the interval lies between `low` and `high`; missed: outside, and nothing uses the value; within_noise: in"
        " part; or not_measurable",
    ]
    reason: Annotated[str, "", "why it is not measurable, as in the table `answers`; else empty"]
    reason_of: Annotated[str, "", "variant or column of `gpus` that `reason` refers to"]


@dataclass(frozen=True)
class Reason(Conclusion):
    """Why a variant is faster or slower than its parent at a case, by the model in analysis/mechanisms."""

    TABLE = "mechanisms"
    KEYS = ("family", "variant", "case")

    family: _FAMILY
    variant: _VARIANT
    parent: _PARENT
    case: _CASE
    mechanism: Annotated[
        str, "", "what makes the difference, as `cause` in family.yaml; none if nothing does or is known to"
    ]
    word: Annotated[
        str,
        "",
        "predicted (the measured saving lies in the interval, or neither saving stands out from noise); accounted (not"
        " so, but stalls or timelines of both show where it comes from); or not_in_evidence",
    ]
    predicted_us: Annotated[
        float, "us", "predicted saving: the parent's time minus the variant's; empty if unknown"
    ]
    low_us: Annotated[float, "us", "lower end of its interval"]
    high_us: Annotated[float, "us", "upper end of its interval"]
    measured_us: Annotated[float, "us", "measured saving"]
    rests_on: Annotated[
        str,
        "",
        "metrics, and columns or tables as table/column, that the mechanism rests on, comma-separated; if it is not in"
        " evidence, what would decide: counts and ceilings/<name> that are missing (then nothing is predicted),"
        " accesses, instructions, launches (a timeline), dram_rows (how fast device memory answers in this order of"
        " addresses), or nothing that is known",
    ]
    also: Annotated[
        str,
        "",
        "other mechanisms with at least a fifth of the predicted saving each, the largest first, comma-separated; empty"
        " without one",
    ] = ""
    least_pct: Annotated[
        float,
        "%",
        "least difference, of the slower time, whose mechanism is named, if a predicted one is smaller; else empty",
    ] = NAN
    ceilings_of: Annotated[
        str, "", "other campaigns of this GPU that measured ceilings which this one did not, comma-separated"
    ] = ""


@dataclass(frozen=True)
class UnitTime(Conclusion):
    """How long a unit of the GPU works for a variant and for its parent, and what of the predicted saving it has."""

    TABLE = "unit_times"
    KEYS = ("family", "variant", "case", "unit")

    family: _FAMILY
    variant: _VARIANT
    parent: _PARENT
    case: _CASE
    unit: Annotated[
        str,
        "",
        "issue, fma, alu, fp64, xu, lsu, tensor, l1 (with shared memory), l2, dram, blocks and warps (their starts),"
        " atomics (on one address), chain (what a warp cannot overlap), waits (for loads) or launches",
    ]
    parent_us: Annotated[float, "us", "time that it would take for the parent's work alone"]
    us: Annotated[float, "us", "the same for the variant's"]
    saved_us: Annotated[float, "us", "its part of the predicted saving; negative if it acts against it"]


@dataclass(frozen=True)
class Forecast(Conclusion):
    """What a variant would gain if one thing were as good as possible, by the same model."""

    TABLE = "forecasts"
    KEYS = ("family", "variant", "case", "mechanism")

    family: _FAMILY
    variant: _VARIANT
    case: _CASE
    mechanism: Annotated[str, "", "what would be mended, as `cause` in family.yaml"]
    us: Annotated[float, "us", "measured time"]
    saved_us: Annotated[float, "us", "predicted saving"]
    speedup: Annotated[float, "x", "predicted speed-up"]
    low: Annotated[float, "x", "lower end of its interval"]
    high: Annotated[float, "x", "upper end of its interval; empty if it is not limited"]
    bound: Annotated[
        str,
        "",
        "unit that works longest after it, as in `unit_times`; empty if that is less than 0.9 of the time",
    ]
    line: Annotated[str, "", "file:line that it concerns most; empty if unknown"]


@dataclass(frozen=True)
class Chip(Conclusion):
    """A variant, compiled for an architecture: what its longest kernel needs there, and how many blocks an SM holds.

    Block size and dynamic shared memory are those of the captured launch.
    """

    TABLE = "chips"
    KEYS = ("family", "variant", "arch")

    family: _FAMILY
    variant: _VARIANT
    arch: Annotated[str, "", "architecture, such as sm_120"]
    gpus: Annotated[str, "", "GPUs with this architecture"]
    status: Annotated[
        str, "", "ok; unsupported: it cannot be compiled or launched there; compile_error or timeout"
    ]
    reason: Annotated[
        str,
        "",
        "why it is unsupported: needs_arch, compiled_later (Triton, CuPy or PyTorch), compiled_already,"
        " library_kernels (its kernels are those of a library), shared_memory (a block needs more than the limit),"
        " registers (a block needs more than an SM has); or what is unknown of a variant that compiles: no_kernels (it"
        " has none), not_found (which of its kernels was launched), other_kernel (the one that was launched is not"
        " compiled for this architecture), no_launch (block size and dynamic shared memory, which ncu did not capture);"
        " else empty",
    ]
    reason_of: Annotated[str, "", "architecture or language that `reason` refers to"] = ""
    features: Annotated[
        str,
        "",
        "what the machine code of the campaign's build uses: wgmma, setmaxnreg, tma, bulk_copy, clusters,"
        " comma-separated; only with needs_arch",
    ] = ""
    error: Annotated[str, "", "first error of the compiler; else empty"] = ""
    target: Annotated[str, "", "what nvcc compiled for, such as sm_90a; empty if it did not"] = ""
    kernel: Annotated[str, "", "name of the longest kernel, as c++filt prints it; empty if unknown"] = ""
    registers_per_thread: Annotated[int, "register", "registers per thread"] = -1
    spill_store_bytes: Annotated[int, "byte", "spill stores per thread"] = -1
    spill_load_bytes: Annotated[int, "byte", "spill loads per thread"] = -1
    static_shared_bytes: Annotated[int, "byte", "static shared memory per block"] = -1
    dynamic_shared_bytes: Annotated[int, "byte", "dynamic shared memory per block; empty if unknown"] = -1
    shared_limit_bytes: Annotated[int, "byte", "largest shared memory of a block"] = -1
    block_threads: Annotated[int, "thread", "threads per block; empty if unknown"] = -1
    blocks_per_sm: Annotated[int, "block", "blocks that an SM can hold; empty if unknown"] = -1
    occupancy_pct: Annotated[float, "%", "share of an SM's warp slots that these fill"] = NAN
    limiters: Annotated[str, "", "resources that limit it, comma-separated"] = ""
    nvcc: Annotated[str, "", "version of the compiler"] = ""
    source_sha256: Annotated[str, "", "SHA-256 fingerprint of the source, its headers and its parameters"] = (
        ""
    )


@dataclass(frozen=True)
class Duel(Conclusion):
    """A variant that the campaign's times do not tell from its parent, in turns with it in the same processes.

    Its times are not those of the campaign: ratios hold between the two, and nothing else.
    """

    TABLE = "duels"
    KEYS = ("family", "variant")

    family: _FAMILY
    variant: _VARIANT
    against: _PARENT
    case: _CASE
    status: Annotated[str, "", "ok, or that of the side that could not be measured"]
    source_sha256: Annotated[str, "", "SHA-256 fingerprint of the source, its headers and its parameters"]
    against_sha256: Annotated[str, "", "the same of the parent"]
    word: Annotated[
        str, "", "FASTER, SLOWER, SAME (within 0.5 %) or AMBIGUOUS; empty unless the status is ok"
    ] = ""
    reason: Annotated[
        str,
        "",
        "why it is AMBIGUOUS: wide, or unconfirmed (a further process shows another ratio); else empty",
    ] = ""
    us: Annotated[float, "us", "mean time per launch at rest"] = NAN
    against_us: Annotated[float, "us", "the same of the parent"] = NAN
    gain_pct: Annotated[float, "%", "how much faster it is; negative if it is slower"] = NAN
    low_pct: Annotated[float, "%", "lower end of the gain's interval"] = NAN
    high_pct: Annotated[float, "%", "upper end of the gain's interval"] = NAN
    floor_pct: Annotated[float, "%", "smallest gap that counts"] = NAN
    processes: Annotated[int, "", "processes that both took turns in; empty unless the status is ok"] = -1


# By the rule `analyse`: of each family by itself, and of all families together.
OF_FAMILIES: tuple[type[Conclusion], ...] = (
    Verdict,
    Place,
    Step,
    Change,
    Bound,
    SassStep,
    Traced,
    AccessLine,
)
ANALYSED: tuple[type[Conclusion], ...] = (*OF_FAMILIES, Reason, UnitTime, Forecast)
TABLES: tuple[type[Conclusion], ...] = (*ANALYSED, Answer, Ceiling, Chip, Duel)
Of = TypeVar("Of", bound=Conclusion)


def _described(kind: type[Conclusion]) -> dict[str, tuple[type, str, str]]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: get_args(hints[field.name]) for field in fields(kind)}


_COLUMNS = {kind: _described(kind) for kind in TABLES}  # type, unit and meaning


def columns(kind: type[Conclusion]) -> Mapping[str, Column]:
    """Returns the columns of the table of a type, with those of the origin."""
    own = {
        name: Column(base.__name__, "" if unit == BY_UNIT else unit, meaning)
        for name, (base, unit, meaning) in _COLUMNS[kind].items()
    }
    return {**own, **ORIGIN}


def units(kind: type[Conclusion]) -> Mapping[str, str]:
    """Returns the unit of each column of numbers; BY_UNIT if the row names it."""
    return {name: unit for name, (_, unit, _) in _COLUMNS[kind].items()}


def cells(row: Conclusion) -> dict[str, Cell]:
    """Returns a row by column; an integer that is not known is NaN instead of -1."""
    return {
        name: NAN if base is int and getattr(row, name) == -1 else getattr(row, name)
        for name, (base, _, _) in _COLUMNS[type(row)].items()
    }


def rows(table: "pd.DataFrame", kind: type[Of], family: str = "") -> list[Of]:
    """Returns the rows of a table as values, those of one family if it is named; an integer that is not known is -1."""
    shown = table[table["family"] == family] if family else table
    by_column = [
        shown[name].fillna(-1).astype(int).tolist() if base is int else shown[name].tolist()
        for name, (base, _, _) in _COLUMNS[kind].items()
    ]
    return [kind(*values) for values in zip(*by_column, strict=True)]


def by_variant(conclusions: Iterable[Of]) -> dict[str, list[Of]]:
    """Returns rows by their variant, in their order."""
    grouped: dict[str, list[Of]] = {}
    for row in conclusions:
        grouped.setdefault(str(getattr(row, "variant")), []).append(row)  # noqa: B009 - every table has it
    return grouped
