"""Decomposes a step of the ladder into factors and into warp states.

An SM that executes I instructions per active cycle takes N / I active cycles for N instructions. If the SMs are active
for a share U of the kernel, it takes N / (I U) cycles, which the clock converts to time. In the ratio of two kernels on
one GPU the number of SMs cancels:

    time ratio = instructions x instructions per cycle x busy share x clock x remainder

I is the number of active warps over the cycles between two instructions of a warp. These two are not factors of their
own, since they change together: a warp that exits early lowers both. U is computed from the elapsed cycles, so the
remainder is the difference between the launches that were profiled and those that were timed.

A kernel's time is also split additively: among the warp states in which a warp waits or issues, in proportion to the
cycles that all its warps spend in them, so that fewer instructions count as much as shorter waits.
The counters are NVIDIA's; see "Warp Stall Sampling" and "Metrics Reference" in the Nsight Compute Profiling Guide.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from warplog.analysis.shared_code import Twin
from warplog.analysis.stall_reasons import Wait
from warplog.metrics import NO_STALL, STALL_REASONS
from warplog.metrics.names import OPCODES
from warplog.metrics.occupancy import busy_share

STATES = {reason: f"stall_{reason}_cycles_per_issue" for reason in STALL_REASONS}
NEEDED = ("instructions_executed", "ipc", "gpu_cycles")
TIME = "duration_us"
CLOCK = "sm_mhz"
ISSUING = "issuing_or_ready"  # selected and not_selected: their shares move with the number of warps
# Counters that explain a state, the most specific first; they are evidence if they change along with it.
EVIDENCE: Mapping[str, tuple[str, ...]] = {
    "lg_throttle": (
        "global_load_sectors_per_request",
        "l1_bytes",
        "inst_ldg",
        "global_store_sectors_per_request",
        "inst_stg",
    ),
    "long_scoreboard": ("l2_bytes", "dram_bytes", "inst_ldg"),
    "short_scoreboard": ("shared_wavefronts_excess", "l1_shared_wavefronts", "inst_lds"),
    "mio_throttle": ("shared_wavefronts_excess", "l1_shared_wavefronts", "inst_lds", "inst_sts"),
    "barrier": ("inst_bar",),
    "membar": ("inst_membar",),
    "drain": ("inst_stg", "dram_bytes_written"),
    "branch_resolving": ("inst_bra",),
    "math_pipe_throttle": ("inst_ffma", "inst_dfma", "inst_hmma"),
    ISSUING: ("instructions_executed",),
}
# States in which a few instructions may wait long; in the others, the wait grows with the number of instructions.
_ANY_NUMBER = ("barrier", "membar", "long_scoreboard", "drain")
# Of all wavefronts those that L1 had: the addresses of accesses may tell of more.
_EXCESS, _WAVEFRONTS = "shared_wavefronts_excess", "l1_shared_wavefronts"
_MIX = tuple(f"inst_{opcode.lower()}" for opcode in OPCODES)
WAVES = "waves_per_sm"
COUNTERS = tuple(
    dict.fromkeys(
        (*NEEDED, WAVES, TIME, *STATES.values(), *(n for ns in EVIDENCE.values() for n in ns), *_MIX)
    )
)
_LEAST_SHARE = 0.01
# A counter that changed by 5 % does not explain a wait that doubled: it needs half of it, in logarithms.
_LEAST_MOVE, _LEAST_PART = 0.05, 0.5
_LEAST_NUMBER = (
    0.02  # of the executed instructions, for a counter of instructions or wavefronts to be evidence
)
_LEAST_OPCODE = 0.2
_LEAST_COUNTED = 0.5

Values = Mapping[str, float]


@dataclass(frozen=True)
class Change:
    """A quantity before and after, in the unit that its name gives."""

    name: str
    before: float
    after: float


@dataclass(frozen=True)
class Factor:
    """A change and how many times faster it makes the variant; below 1 it makes it slower.

    For instructions, `evidence` holds at most two opcodes that make up most of the change; for the busy share, the
    waves of blocks if a partial last wave accounts for most of it.
    """

    change: Change
    factor: float
    evidence: tuple[Change, ...] = ()


@dataclass(frozen=True)
class StateChange:
    """A warp state: the time that it costs before and after, both as a share of the time of the parent's kernel.

    `evidence` holds the first two counters of EVIDENCE that changed in the same direction, by at least 5 % and, on a
    log scale, by at least half of the change of the state: a small change does not explain a large one. `wait` is what
    the state waits for in the variant's kernel, and `parents` in its parent's, where its name does not say it.
    """

    name: str
    before: float
    after: float
    evidence: tuple[Change, ...]
    wait: Wait | None = None
    parents: Wait | None = None

    @property
    def share(self) -> float:
        """The share of the parent's time that the state no longer costs; negative if it costs more."""
        return self.before - self.after


@dataclass(frozen=True)
class Use:
    """How a step changes the use of the GPU.

    Attributes:
        units: The use of the busiest units before and after, and of the tensor pipe, in percent of their peaks.
        traffic: Bytes moved by L2 and device memory.
        blocks: The blocks that fit on an SM, if theoretical occupancy changes; otherwise None.
        occupancy: Theoretical occupancy in percent, if it changes.
        grid: Blocks and waves of the grid, where it fills the GPU on one side only; otherwise None.
        sectors: Sectors per request of loads and stores, if they change by a factor of 1.5.
        excess: Excess shared wavefronts, if the difference takes 2 % of the cycles of the kernel with more of them.
        contended: Whether contended global atomics bound the kernel, before and after.
        idle: Whether schedulers issue so rarely, before and after, that the number of instructions does not matter.
        tile_end: Name of the nearest ancestor with a timeline, and the gap at a tile end in it and in the variant, in
            microseconds; None without two timelines, or if its blocks are not like the parent's.
    """

    units: tuple[Change, ...] = ()
    traffic: tuple[Change, ...] = ()
    blocks: Change | None = None
    occupancy: Change | None = None
    grid: tuple[Change, Change] | None = None
    sectors: tuple[Change, ...] = ()
    excess: Change | None = None
    contended: tuple[bool, bool] = (False, False)
    idle: bool = False
    tile_end: tuple[str, float, float] | None = None


@dataclass(frozen=True)
class Step:
    """A variant compared with its parent at one case.

    Attributes:
        ratio: The parent's median cold time over the variant's; NaN if either has none.
        tied: Whether the intervals of the two times overlap, so that neither is faster.
        factors: The factors of the ratio, the largest first; their product times `remainder` is `ratio`.
        states: The warp states that account for at least 1 % of the parent's time, the largest first.
        remainder: What no counter accounts for, including differences between profiled and timed runs.
        gap: Why there is no decomposition, as in the table `steps`; "" if there is one.
        gap_of: The variants that the gap is about.
        gap_detail: Their statuses, or the counters that are missing.
        ancestor: A faster ancestor beyond the parent and its time over the variant's; None if the parent is a gain.
        twin: A variant that launches the same kernel; None if there is none.
        use: How the use of the GPU changes.
        kernel_us: Time of the longest kernel of parent and variant under ncu.
        others_us: Time of the other kernels of their launches under ncu.
    """

    family: str
    variant: str
    parent: str
    case: str
    ratio: float
    factors: tuple[Factor, ...] = ()
    states: tuple[StateChange, ...] = ()
    remainder: float = math.nan
    gap: str = ""
    gap_of: tuple[str, ...] = ()
    gap_detail: tuple[str, ...] = ()
    tied: bool = False
    ancestor: tuple[str, float] | None = None
    twin: Twin | None = None
    use: Use = Use()
    kernel_us: tuple[float, float] = (math.nan, math.nan)
    others_us: tuple[float, float] = (math.nan, math.nan)

    @property
    def same_kernel(self) -> bool:
        """Whether the variant launches the same kernel as its parent, so that there is nothing to explain."""
        return self.twin is not None and self.twin.same and self.twin.variant == self.parent

    @property
    def explicable(self) -> bool:
        """Whether the counters explain the step: at least half of the ratio, on a log scale, and not a tie."""
        if self.tied or self.same_kernel or self.ratio == 1 or self.is_elsewhere or self.is_within_runs:
            return False
        counted = sum(math.log(factor.factor) for factor in self.factors if factor.change.name != CLOCK)
        return counted / math.log(self.ratio) >= _LEAST_COUNTED

    @property
    def is_elsewhere(self) -> bool:
        """Whether other kernels of the launch than the longest one make at least half of the ratio, on a log scale."""
        kernel, (before, after) = self.kernel_us[0], self.others_us
        if not kernel > 0 or math.isnan(before + after) or self.ratio == 1:
            return False
        return math.log((kernel + before) / (kernel + after)) / math.log(self.ratio) >= _LEAST_COUNTED

    @property
    def is_within_runs(self) -> bool:
        """Whether the times differ by less than the launches that were profiled and those that were timed."""
        return abs(math.log(self.remainder)) > abs(math.log(self.ratio))

    @property
    def causes(self) -> tuple[Factor, ...]:
        """The factors without the clock, and without instructions if schedulers are idle most of the time."""
        no_cause = (CLOCK, "instructions_executed", "ipc") if self.use.idle else (CLOCK,)
        return tuple(factor for factor in self.factors if factor.change.name not in no_cause)

    @property
    def clock(self) -> Factor | None:
        """The factor of the SM clock: no cause, since the power that a kernel draws sets it."""
        return next((factor for factor in self.factors if factor.change.name == CLOCK), None)


def missing(values: Values) -> list[str]:
    """Returns the counters that a decomposition requires and that are missing or not positive in `values`."""
    return [name for name in NEEDED if not values.get(name, math.nan) > 0]


def factors(before: Values, after: Values, clocks: tuple[float, float], sms: float) -> tuple[Factor, ...]:
    """Returns the factors of the ratio of times, the largest first.

    `clocks` are the mean SM clocks during the timed launches in MHz, NaN if unknown. The busy share requires the number
    of SMs. A factor that is unknown becomes part of the remainder.
    """
    instructions = _factor("instructions_executed", before, after, 1)
    changed = [
        replace(instructions, evidence=_opcodes(before, after)),
        _factor("ipc", before, after, -1),
    ]
    busy = [{"sm_busy_pct": 100 * busy_share(values, sms)} for values in (before, after)]
    if all(values["sm_busy_pct"] > 0 for values in busy):
        share = _factor("sm_busy_pct", busy[0], busy[1], -1)
        changed.append(replace(share, evidence=_waves(before, after, share.factor)))
    if all(0 < mhz < math.inf for mhz in clocks):
        changed.append(_factor(CLOCK, {CLOCK: clocks[0]}, {CLOCK: clocks[1]}, -1))
    return tuple(sorted(changed, key=lambda f: -abs(math.log(f.factor))))


def states(before: Values, after: Values) -> tuple[StateChange, ...]:
    """Returns the warp states that save or cost at least 1 % of the parent's time, the largest first.

    The states in which a warp issues or is ready to are one, ISSUING. None if the times of the kernels are unknown.
    """
    split = [_split(values) for values in (before, after)]
    longer = after.get(TIME, math.nan) / before.get(TIME, math.nan)
    changes = []
    for state in (*STATES, ISSUING):
        if state in NO_STALL or any(state not in shares for shares in split):
            continue
        old, new = split[0][state], split[1][state] * longer
        if abs(old - new) >= _LEAST_SHARE:
            evidence = _evidence(state, before, after, old > new, _LEAST_PART * abs(_log_ratio(old, new)))
            changes.append(StateChange(state, old, new, evidence))
    return tuple(sorted(changes, key=lambda s: -abs(s.share)))


def _factor(name: str, before: Values, after: Values, power: int) -> Factor:
    return Factor(Change(name, before[name], after[name]), (before[name] / after[name]) ** power)


def _waves(before: Values, after: Values, factor: float) -> tuple[Change, ...]:
    """Returns the waves of blocks, if filling the last one accounts for at least half of the busy share's factor."""
    waves = [values.get(WAVES, math.nan) for values in (before, after)]
    if not all(count > 1 for count in waves) or factor == 1:
        return ()
    filled = [count / math.ceil(count - 1e-6) for count in waves]
    part = math.log(filled[1] / filled[0]) / math.log(factor)
    return (Change(WAVES, *waves),) if part >= _LEAST_COUNTED else ()


def _split(values: Values) -> dict[str, float]:
    """Returns the share of the kernel's cycles by warp state, of those that were counted."""
    counted = {
        state: values[name] for state, name in STATES.items() if not math.isnan(values.get(name, math.nan))
    }
    total = sum(counted.values())
    counted[ISSUING] = sum(counted.get(state, 0.0) for state in NO_STALL)
    return {state: cycles / total for state, cycles in counted.items()} if total else {}


def _opcodes(before: Values, after: Values) -> tuple[Change, ...]:
    """Returns at most two opcodes that make up at least a fifth of the change in executed instructions."""
    whole = after["instructions_executed"] - before["instructions_executed"]
    moved = [Change(name, before.get(name, math.nan), after.get(name, math.nan)) for name in _MIX]
    parts = [(c, (c.after - c.before) / whole) for c in moved if whole and not math.isnan(c.after - c.before)]
    parts = [(change, part) for change, part in parts if part >= _LEAST_OPCODE]
    return tuple(change for change, _ in sorted(parts, key=lambda item: -item[1])[:2])


def _evidence(
    state: str, before: Values, after: Values, falling: bool, least_log: float
) -> tuple[Change, ...]:
    moved = []
    for name in EVIDENCE.get(state, ()):
        old, new = before.get(name, math.nan), after.get(name, math.nan)
        if math.isnan(old) or math.isnan(new) or (old > new) != falling:
            continue
        if not _is_large(state, name, before, after) or not _with_total(name, before, after):
            continue
        if abs(new - old) >= _LEAST_MOVE * max(old, new) > 0 and abs(_log_ratio(old, new)) >= least_log:
            moved.append(Change(name, old, new))
    return tuple(moved[:2])


def _is_large(state: str, name: str, before: Values, after: Values) -> bool:
    """Returns whether a counter of instructions or wavefronts is at least 2 % of the executed instructions."""
    if state in _ANY_NUMBER or not name.startswith(("inst_", _EXCESS, _WAVEFRONTS)):
        return True
    parts = [values[name] / values["instructions_executed"] for values in (before, after)]
    return max(parts) >= _LEAST_NUMBER


def _with_total(name: str, before: Values, after: Values) -> bool:
    """Returns whether, if `name` is the excess of wavefronts, all wavefronts change in the same direction."""
    old, new = before.get(_WAVEFRONTS, math.nan), after.get(_WAVEFRONTS, math.nan)
    return name != _EXCESS or math.isnan(old + new) or (old > new) == (before[name] > after[name])


def _log_ratio(old: float, new: float) -> float:
    """Returns the logarithm of new / old; infinite if only one of them is zero."""
    if old > 0 and new > 0:
        return math.log(new / old)
    return 0.0 if old == new else math.inf
