"""Record of stage tune: the settings that a search tried, and their times."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from warplog.records.fields import CaseName, Count, Frozen, Status, Text
from warplog.records.measured import Measured
from warplog.records.requested.duel import Duel, Word


class TunedCase(Frozen, frozen=True, kw_only=True):
    """Times of a setting; final_us is the median over the rounds of the final, None if the setting was not in it."""

    case: CaseName
    median_us: float
    q1_us: float
    q3_us: float
    rel_spread: float
    samples: Count
    hot_us: float
    final_us: float | None


class Setting(Frozen, frozen=True, kw_only=True):
    """A setting that was tried; the resources are None if it was not built.

    Attributes:
        setting: its name.
        is_default: whether it is the setting in family.yaml.
        score_us: geometric mean of the median cold times over the cases; None without a time.
    """

    setting: str
    parameters: Mapping[str, int]
    is_default: bool
    status: Status
    reason: Text
    score_us: float | None
    registers_per_thread: Count | None = None
    spill_bytes: Count | None = None
    block_threads: Count | None = None
    shared_bytes: Count | None = None
    theoretical_occupancy_pct: float | None = None
    cases: tuple[TunedCase, ...]

    def __post_init__(self) -> None:
        """Checks that no setting has a time without a passed check."""
        timed = bool(self.cases), self.score_us is not None
        if timed != ((self.status == "ok"),) * 2:
            raise ValueError("cases: a setting has times if and only if its status is ok")


class TuneCheck(Frozen, frozen=True, kw_only=True):
    """Cases and rounds of the check before a setting is timed."""

    cases: tuple[CaseName, ...]
    rounds: Count


class Look(Frozen, frozen=True, kw_only=True):
    """Timing settings of the first pass over all settings.

    Attributes:
        rel_error: relative standard error of the median at which sampling stops; None in records of earlier releases.
        rel_spread, settle_ms: settings of earlier releases; else None.
    """

    min_samples: Count
    max_samples: Count
    max_seconds: float
    rel_error: float | None = None
    warmup_launches: Count
    warmup_ms: float
    hot_seconds: float
    hot_cases: str
    rel_spread: float | None = None
    settle_ms: float | None = None


class FinalDuel(Frozen, frozen=True, kw_only=True):
    """A finalist against the leader, in a duel at each case of the score.

    Attributes:
        status, reason: of the first duel without a verdict, else ok.
        word, ratio, low, high: the verdict on the geometric mean of the cases' ratios, challenger over leader, and its
            interval; None without a verdict at each case.
        cases: the duels, in the order of the cases; the last one is the one without a verdict.
    """

    leader: str
    challenger: str
    status: Status
    reason: Text
    word: Word | None
    ratio: float | None
    low: float | None
    high: float | None
    cases: tuple[Duel, ...]


class Tune(Measured, tag="tune", frozen=True, kw_only=True):
    """A search.

    Attributes:
        source_sha256: fingerprint of source and headers, without parameters.
        minutes: time limit of the search.
        parameters: names of the searched parameters.
        cases: timed cases in the score.
        seen: number of settings tried.
        ranking: settings with a time, best first; the first is the winner.
        picked: the best setting by the times of the search alone; "" in records of earlier releases.
        finalists: settings whose times do not tell them from that one, which comes first.
        duels: between them, in their order.
        decided_by: what decided for the winner.
        no_duel: why duels did not: one_finalist, no_verdict (the last one of `duels` has none), or no_time.
    """

    campaign: Text
    minutes: float
    check: TuneCheck
    look: Look
    parameters: tuple[str, ...]
    cases: tuple[CaseName, ...]
    seen: Count
    settings: Annotated[tuple[Setting, ...], Meta(max_length=100_000)]
    ranking: tuple[str, ...]
    picked: str = ""
    finalists: tuple[str, ...] = ()
    duels: tuple[FinalDuel, ...] = ()
    decided_by: Literal["search", "duels"] = "search"
    no_duel: Literal["", "one_finalist", "no_verdict", "no_time"] = ""
