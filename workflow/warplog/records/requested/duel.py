"""Record of a duel: two versions of a kernel that took turns, what each process found, and the verdicts."""

from typing import Annotated, Literal

from msgspec import Meta

from warplog.records.fields import CaseName, Count, Frozen, Name, Number, Sha256, Status, Text
from warplog.records.measured import Provenance

Word = Literal["FASTER", "SLOWER", "SAME", "AMBIGUOUS"]
Regime = Literal["rest", "sustained"]
Difference = Literal["sources", "options", "parameters", "compiler"]


class Estimate(Frozen, frozen=True, kw_only=True):
    """The mean logarithm of the blocks' ratios, B over A, and its standard error within the process."""

    log_ratio: float
    error: float


class Window(Frozen, frozen=True, kw_only=True):
    """What one process, or one pair of processes, found.

    Attributes:
        seed: of the inputs, the addresses of the arrays and the order of the turns.
        addresses: of the arrays, in the order of the arguments; of two processes, those of A's and then of B's.
        seconds: wall time of the turns.
        blocks: of four turns, ABBA or BAAB; at the power limit, a turn lasts for seconds.
        discarded: blocks that were discarded since a limit held the SM clock down.
        held: whether the clock stayed low in spite of pauses, so that nothing was discarded.
        not_blocked: turns whose launch was not queued before it started.
        pause_us: the last pause between launches.
        time, cycles: of B to A; cycles is None if the SM clock is not known.
        a_us, b_us: mean times, and the mean SM clocks during them.
        step_us: step of the clock of events: the smallest difference between two times.
        limited: whether a longer run lowered the clock; None if it was not tried.
    """

    process: Number
    seed: Count
    addresses: tuple[Count, ...]
    seconds: float
    blocks: Count
    discarded: Count = 0
    held: bool = False
    not_blocked: Count = 0
    pause_us: float = 0.0
    time: Estimate
    cycles: Estimate | None
    a_us: float
    b_us: float
    a_mhz: float | None
    b_mhz: float | None
    step_us: float
    limited: bool | None = None


class Ratio(Frozen, frozen=True, kw_only=True):
    """The verdict on a ratio of B to A, with its interval, as in warplog.analysis.verdicts.

    Attributes:
        floor: the smallest relative gap that counts.
        p: the two-sided probability that the same code shows such a gap, at one look.
    """

    word: Word
    reason: Text
    ratio: float
    low: float
    high: float
    floor: float
    p: float


class Judged(Frozen, frozen=True, kw_only=True):
    """B against A in one regime.

    Attributes:
        looks: how often the ratio was judged, of at most `most_looks`.
        resolution: step of the clock of events in a launch of A, divided by the root of the number of turns.
    """

    regime: Regime
    time: Ratio
    cycles: Ratio | None
    a_us: float
    b_us: float
    looks: Number
    most_looks: Number
    resolution: float
    windows: Annotated[tuple[Window, ...], Meta(min_length=1)]


class Counter(Frozen, frozen=True, kw_only=True):
    """A hardware counter of one launch of A and of B.

    Attributes:
        a, b: of all kernels of the launch together, or of one.
        kernel: B's name of that one; "" for all.
        number: of that one in the launch, from 1; 0 for all.
    """

    name: Name
    a: float
    b: float
    kernel: Text = ""
    number: Count = 0


class Side(Frozen, frozen=True, kw_only=True):
    """One of the two versions.

    Attributes:
        name: as the command line names it.
        commit: of the sources; "" for those of the working tree.
        nvcc: version of the compiler; "" for a Python variant.
        registers: of its kernels, by name; empty if unknown.
        sass: number of machine instructions of its kernels.
        sass_sha256: of the listing of their machine code; "" if unknown.
    """

    name: Text
    family: Name
    variant: Name
    commit: Text
    source_sha256: Sha256
    library_sha256: Sha256
    nvcc: Text = ""
    registers: tuple[tuple[Text, Count], ...] = ()
    sass: Count = 0
    sass_sha256: Sha256 = ""


class Duel(Frozen, frozen=True, kw_only=True):
    """A duel.

    Attributes:
        differs: in what the sides differ: source files with their headers, options of the compiler, compile-time
            parameters, the version of the compiler; empty for the same code, compiled alike.
        status, reason: of the side that could not be measured, else ok.
        apart: why the sides ran in processes of their own, in turns; "" if they shared each process.
        same_arrays: whether both sides used the same arrays at the same addresses.
        seconds: wall time, without compiling.
        judged: the regimes: at rest, and sustained if a limit acts; empty unless the status is ok.
        counters: those that differ, if the time at rest does; `no_counters` says why they are not known.
    """

    schema: Literal[2] = 2
    status: Status = "ok"
    reason: Text = ""
    case: CaseName
    a: Side
    b: Side
    differs: tuple[Difference, ...]
    margin: float
    apart: Text
    same_arrays: bool
    seconds: float
    judged: tuple[Judged, ...]
    counters: tuple[Counter, ...] = ()
    no_counters: Text = ""
    provenance: Provenance

    def __post_init__(self) -> None:
        """Checks that there are verdicts if and only if the status is ok."""
        if bool(self.judged) != (self.status == "ok"):
            raise ValueError("judged: a duel has verdicts if and only if its status is ok")
