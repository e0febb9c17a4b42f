"""The rows of results/summary.json: the result of each variant, by family, and each thing that is not ok."""

from typing import Annotated, Literal

from msgspec import Meta

from warplog.records.fields import Frozen, Origin

_Positive = Annotated[float, Meta(gt=0)]

# Statuses of a variant that `strict` counts. What this GPU, its permissions or the recorded campaign do not offer is no
# fault of a variant, and a disagreement between clocks is one of the measurement.
FAILURES = frozenset(("compile_error", "wrong", "crashed", "timeout", "out_of_memory", "finding", "error"))
DISAGREE, DENIED = "disagree", "denied"
CAPTURES = frozenset(("ncu", "nsys"))


class VariantResult(Frozen, frozen=True):
    """A variant at the headline case of its family.

    Attributes:
        status: that of the variant: ok only if all of its cases were right.
        median_us: time at rest; None without one. `rate` is the speed then, in the family's `rate_unit`.
        ratio_to_baseline: speed relative to the family's baseline.
        board: UUID of the board that timed it; "" if unknown.
    """

    variant: str
    status: str
    reason: str
    median_us: _Positive | None
    rate: _Positive | None
    ratio_to_baseline: _Positive | None
    board: str


class Move(Frozen, frozen=True):
    """A variant whose time differs from that of the previous evaluation by more than the least gap that counts."""

    variant: str
    before_us: _Positive
    after_us: _Positive

    @property
    def speedup(self) -> float:
        """The new speed over the former one."""
        return self.before_us / self.after_us


class FamilyResult(Frozen, frozen=True):
    """A family: its variants in ladder order, at the headline case, and those that moved.

    `rate_unit` is "" for a family without FLOPs and bytes. `best` is the fastest variant according to the table
    `ladder`: of several with one kernel, the best over all cases; "" if there is none.
    """

    family: str
    title: str
    case: str
    baseline: str
    rate_unit: str
    variants: tuple[VariantResult, ...]
    moved: tuple[Move, ...]
    best: str = ""

    @property
    def ok(self) -> int:
        """The number of variants that are ok."""
        return sum(variant.status == "ok" for variant in self.variants)

    @property
    def fastest(self) -> VariantResult | None:
        """The fastest variant besides the baseline, which is returned if no other has a time; None if none has."""
        timed = [variant for variant in self.variants if variant.median_us]
        own = [variant for variant in timed if variant.variant != self.baseline]
        named = next((variant for variant in own if variant.variant == self.best), None)
        return named or min(own or timed, key=lambda variant: variant.median_us or 0.0, default=None)


class Trouble(Frozen, frozen=True):
    """A thing that is not ok.

    Attributes:
        code: a status, or "disagree": the times of the clocks and of a profiler differ.
        stage: build, check, time, ncu, nsys or sanitize; "" if none failed.
        case: the case, if it is about a single one.
        log: the file with more; "" if there is none.
    """

    family: str
    variant: str
    code: str
    stage: str
    reason: str
    log: str = ""
    case: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether `strict` counts it."""
        return self.code in FAILURES and self.stage not in CAPTURES


class Summary(Frozen, frozen=True, kw_only=True):
    """The result of a run."""

    schema: Literal[2] = 2
    campaign: str
    gpu: str
    gpu_name: str
    origin: Origin
    families: tuple[FamilyResult, ...]
    troubles: tuple[Trouble, ...]
