"""Remarks on results: codes with values, in records and tables, and the words that show them.

A table holds the remarks on a row as a JSON list in one cell: `[{"code": "few_samples", "samples": 4}]`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal, TypeVar

from msgspec.structs import asdict

from warplog.core.columns import Row
from warplog.core.errors import WarplogError
from warplog.core.parsing import parse_json
from warplog.core.text import join_notes
from warplog.records import door
from warplog.records.fields import Count, Frozen

_T = TypeVar("_T")
Regime = Literal["rest", "hot"]
REGIMES = {"rest": "rest", "hot": "hot"}


class _Remark(Frozen, tag_field="code", frozen=True, kw_only=True):
    """A code with its values.

    Attributes:
        WORDS: filled by the values; {s} is the plural's ending, by the value `samples`.
        COUNTED: values that stand before the words.
    """

    WORDS: ClassVar[str]
    COUNTED: ClassVar[tuple[str, ...]] = ()

    def counts(self) -> tuple[int, ...]:
        """Returns the numbers before the words: (3, 80) of "3 of 80 launches discarded"."""
        return tuple(getattr(self, name) for name in self.COUNTED)

    def uncounted(self) -> str:
        """Returns the words without the numbers before them."""
        return self._filled("s")

    def words(self) -> str:
        """Returns the remark in words: "3 of 80 launches discarded: set SM clock below 1960 MHz"."""
        words = self._filled("" if getattr(self, "samples", 0) == 1 else "s")
        return " ".join(filter(None, (" of ".join(map(str, self.counts())), words)))

    def _filled(self, s: str) -> str:
        return self.WORDS.format(**asdict(self), s=s)


class FewSamples(_Remark, tag="few_samples", frozen=True, kw_only=True):
    """Fewer samples than the settings ask for."""

    WORDS = "only {samples} sample{s}"
    samples: Count


class Discarded(_Remark, tag="discarded", frozen=True, kw_only=True):
    """Launches that were discarded since a limit held the clock below `below_mhz`; `taken` includes them."""

    COUNTED = ("dropped", "taken")
    WORDS = "launches discarded: set SM clock below {below_mhz:.0f} MHz"
    dropped: Count
    taken: Count
    below_mhz: float


class HeldClock(_Remark, tag="held_clock", frozen=True, kw_only=True):
    """The clock stayed at `mhz` in spite of pauses; None if it could not be read."""

    mhz: float | None

    def _filled(self, s: str) -> str:
        at = "" if self.mhz is None else f" at {self.mhz:.0f} MHz"
        return f"clock held{at} in spite of pauses"


class NotBlocked(_Remark, tag="not_blocked", frozen=True, kw_only=True):
    """Samples whose stream block timed out, since the launcher synchronises."""

    COUNTED = ("samples",)
    WORDS = "sample{s} not blocked: the launcher synchronises"
    samples: Count


class HostTime(_Remark, tag="host_time", frozen=True, kw_only=True):
    """All samples include the host's part of each launch."""

    WORDS = "with the host's part of each launch"


class NoGraph(_Remark, tag="no_graph", frozen=True, kw_only=True):
    """The hot launches are no CUDA graph."""

    WORDS = "hot times without a CUDA graph"


# How the times were taken, and therefore nothing about the counters.
TimeRemark = FewSamples | Discarded | HeldClock | NotBlocked | HostTime | NoGraph


Reading = Literal["sm_mhz", "power_w", "temperature_c"]
READINGS: Mapping[Reading, str] = {"sm_mhz": "SM clock", "power_w": "power", "temperature_c": "temperature"}


class NotReported(_Remark, tag="not_reported", frozen=True, kw_only=True):
    """The driver does not report these readings of the board; the SM clock at rest is the timer's all the same."""

    readings: tuple[Reading, ...]

    def _filled(self, s: str) -> str:
        return f"not reported by the driver: {', '.join(READINGS[name] for name in self.readings)}"


class EarlierSource(_Remark, tag="earlier_source", frozen=True, kw_only=True):
    """The source has changed since the recorded campaign."""

    WORDS = "recorded for an earlier source"


class OtherBoard(_Remark, tag="other_board", frozen=True, kw_only=True):
    """The baseline was measured on another board."""

    WORDS = "no ratio: the baseline was measured on another board"


class NotTuned(_Remark, tag="not_tuned", frozen=True, kw_only=True):
    """There is no search on this GPU."""

    WORDS = "default parameters: not tuned on {gpu}"
    gpu: str


class Violated(_Remark, tag="violated", frozen=True, kw_only=True):
    """The best setting of a search breaks a rule of family.yaml, which is newer."""

    WORDS = "default parameters: the best setting on {gpu} ({setting}) violates {rule!r}; tune again"
    gpu: str
    setting: str
    rule: str


class PartlyTuned(_Remark, tag="partly_tuned", frozen=True, kw_only=True):
    """The search measured `seen` of its settings."""

    WORDS = "the search on {gpu} measured {seen} of {settings} settings"
    gpu: str
    seen: Count
    settings: Count


class TunedForEarlier(_Remark, tag="tuned_for_earlier", frozen=True, kw_only=True):
    """The source has changed since the search."""

    WORDS = "parameters found on {gpu} for an earlier version of this source"
    gpu: str


TuneRemark = NotTuned | Violated | PartlyTuned | TunedForEarlier
Remark = TimeRemark | NotReported | EarlierSource | OtherBoard | TuneRemark


class _Note(Frozen, tag_field="code", frozen=True, kw_only=True):
    """A code with its values, and its words, in a note on whether our times agree with the profilers'."""

    WORDS: ClassVar[str]

    def words(self, regimes: Mapping[str, str]) -> str:
        """Returns the note in words; `regimes` is what our times are called."""
        return self.WORDS.format(**asdict(self))


class _TimesNote(_Note, frozen=True, kw_only=True):
    """A note on our times of a regime, from the smallest to the largest process median."""

    regime: Regime
    low_us: float
    high_us: float

    def words(self, regimes: Mapping[str, str]) -> str:
        """Returns the note in words; `regimes` is what our times are called."""
        low, high = f"{self.low_us:.4g}", f"{self.high_us:.4g}"
        ours = f"{low} us" if low == high else f"{low} to {high} us"
        return self.WORDS.format(**{**asdict(self), "regime": regimes[self.regime], "ours": ours})


class Differ(_TimesNote, tag="differ", frozen=True, kw_only=True):
    """Our times and a profiler's differ."""

    WORDS = "{regime} {ours}, {tool} {tool_us:.4g} us"
    tool: str
    tool_us: float


class ToolOnOtherBoard(_Note, tag="other_board", frozen=True, kw_only=True):
    """A profiler ran on another board than the timing."""

    WORDS = "{tool} not compared: captured on another board"
    tool: str


class SeveralKernels(_Note, tag="several_kernels", frozen=True, kw_only=True):
    """A launch consists of several kernels, and ncu flushes the cache before each."""

    WORDS = "ncu not compared: {kernels} kernels per launch, each after a flush"
    kernels: Count


class VariesInNcu(_TimesNote, tag="varies_in_ncu", frozen=True, kw_only=True):
    """Only the time of another of ncu's passes agrees with ours."""

    WORDS = "the time varies in ncu: {regime} {ours}, passes of ncu {ncu_us:.4g} and {other_us:.4g} us"
    ncu_us: float
    other_us: float


class TracingSlows(_TimesNote, tag="tracing_slows", frozen=True, kw_only=True):
    """CUDA events under nsys take as long as nsys says, so that tracing itself costs time."""

    WORDS = (
        "tracing changes the time: {regime} {ours}, nsys {nsys_us:.4g} us,"
        " events under nsys {traced_us:.4g} us"
    )
    nsys_us: float
    traced_us: float


Note = Differ | ToolOnOtherBoard | SeveralKernels | VariesInNcu | TracingSlows


def cell(remarks: Iterable[Remark | Note]) -> str:
    """Returns remarks or notes as the cell of a table; "" for none."""
    values = list(remarks)
    return door.as_json(values) if values else ""


def read(cell: object) -> tuple[Remark, ...]:
    """Returns the remarks in the cell of a table; none in an empty one.

    Raises:
        WarplogError: The cell holds something else.
    """
    return _read(cell, tuple[Remark, ...], ())


def read_notes(cell: object) -> tuple[Note, ...]:
    """Returns the notes in a cell of the column `agreement_notes`; none in an empty one.

    Raises:
        WarplogError: The cell holds something else.
    """
    return _read(cell, tuple[Note, ...], ())


def own_limits(cell: object) -> Mapping[str, int | float]:
    """Returns the limits in a cell of the column `own_limits`, by parameter; none in an empty one.

    Raises:
        WarplogError: The cell holds something else.
    """
    return _read(cell, dict[str, int | float], {})


def _read(cell: object, kind: type[_T], empty: _T) -> _T:
    if not isinstance(cell, str) or not cell:
        return empty
    where = repr(cell[:80])
    try:
        return door.decode(parse_json(cell.encode()), kind, where)
    except (ValueError, RecursionError) as error:
        raise WarplogError(f"{where}: {error}; make the tables again") from None
    except WarplogError as error:
        raise WarplogError(f"{error}; make the tables again") from None


def of_row(row: Row) -> str:
    """Returns why a row of a table is not ok, or the remarks on it, in words; "" for nothing."""
    reason = row.get("reason")
    return join_notes(
        reason if isinstance(reason, str) else "", *(remark.words() for remark in read(row.get("remarks")))
    )


def agreement_words(notes: Sequence[Note], regimes: Mapping[str, str] = REGIMES) -> str:
    """Returns the times that differ and, in parentheses, the other notes: "rest 10 us, ncu 12 us (...)".

    Args:
        notes: those in the column `agreement_notes`.
        regimes: what our times are called, by "rest" and "hot".
    """
    apart = "; ".join(note.words(regimes) for note in notes if isinstance(note, Differ))
    others = "; ".join(note.words(regimes) for note in notes if not isinstance(note, Differ))
    return f"{apart} ({others})".strip() if others else apart
