"""What a search knows of one setting: its build, the look, the final, and what follows from them."""

from dataclasses import dataclass
from math import prod
from statistics import median

from warplog.records import Record
from warplog.tuning_space import Setting


@dataclass(frozen=True)
class Finding:
    """What is known of one setting; `build` and `look` are records or {}, `final` one record a round."""

    setting: Setting
    build: Record
    look: Record
    final: tuple[Record, ...] = ()

    @property
    def verdict(self) -> tuple[str, str]:
        """Status and reason."""
        if not self.build:
            return "skipped", "not tried: the time was over"
        worst = self.build if self.build["status"] != "ok" else self.look
        worst = next((round_ for round_ in self.final if round_["status"] != "ok"), worst)
        return (worst["status"], worst["reason"]) if worst else ("skipped", "not tried: the time was over")

    @property
    def score_us(self) -> float | None:
        """Geometric mean over the cases of the median cold time, of the final where it took part; None: no time."""
        if self.verdict[0] != "ok":
            return None
        return median(score(record) for record in self.final) if self.final else score(self.look)


def score(result: Record) -> float:
    """Geometric mean over the cases of the median cold time in microseconds, never under a nanosecond."""
    medians = [max(case["cold"]["median_us"], 1e-3) for case in result["times"]]
    return float(prod(medians) ** (1 / len(medians)))
