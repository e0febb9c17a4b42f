"""The rows of results/summary.json: the result of each variant, by family, and each thing that is not ok."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warplog.core.records import SCHEMA_VERSION, read_json, write_json

# Statuses of a variant that `strict` counts. What this GPU, its permissions or the recorded campaign do not offer is no
# fault of a variant, and a disagreement between clocks is one of the measurement.
FAILURES = frozenset(("compile_error", "wrong", "crashed", "timeout", "out_of_memory", "finding", "error"))
DISAGREE, DENIED = "disagree", "denied"
CAPTURES = frozenset(("ncu", "nsys"))


@dataclass(frozen=True)
class VariantResult:
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
    median_us: float | None
    rate: float | None
    ratio_to_baseline: float | None
    board: str


@dataclass(frozen=True)
class Move:
    """A variant whose time differs from that of the previous evaluation by more than the least gap that counts."""

    variant: str
    before_us: float
    after_us: float

    @property
    def speedup(self) -> float:
        """The new speed over the former one."""
        return self.before_us / self.after_us


@dataclass(frozen=True)
class FamilyResult:
    """A family: its variants in ladder order, at the headline case, and those that moved.

    `rate_unit` is "" for a family without FLOPs and bytes.
    """

    family: str
    title: str
    case: str
    baseline: str
    rate_unit: str
    variants: tuple[VariantResult, ...]
    moved: tuple[Move, ...]

    @property
    def ok(self) -> int:
        """The number of variants that are ok."""
        return sum(one.status == "ok" for one in self.variants)

    @property
    def fastest(self) -> VariantResult | None:
        """The fastest variant besides the baseline, which is returned if no other has a time; None if none has."""
        timed = [one for one in self.variants if one.median_us]
        own = [one for one in timed if one.variant != self.baseline]
        return min(own or timed, key=lambda one: one.median_us or 0.0, default=None)


@dataclass(frozen=True)
class Trouble:
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


@dataclass(frozen=True)
class Summary:
    """The result of a run. `origin` is 'live' or 'recorded'."""

    campaign: str
    gpu: str
    gpu_name: str
    origin: str
    families: tuple[FamilyResult, ...]
    troubles: tuple[Trouble, ...]

    def write(self, path: Path) -> None:
        """Writes the rows as JSON.

        Raises:
            WarplogError: The disk is full or the folder is not writable.
        """
        write_json(path, {"schema": SCHEMA_VERSION, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Summary":
        """Returns the rows that `write` wrote.

        Raises:
            WarplogError: The file is missing or damaged.
        """
        data = read_json(path, "summary")
        families = tuple(
            FamilyResult(**(one | {key: _rows(kind, one[key]) for key, kind in _LISTS.items()}))
            for one in data["families"]
        )
        rest = {key: data[key] for key in ("campaign", "gpu", "gpu_name", "origin")}
        return cls(**rest, families=families, troubles=_rows(Trouble, data["troubles"]))


_LISTS = {"variants": VariantResult, "moved": Move}


def _rows(kind: Any, rows: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(kind(**row) for row in rows)
