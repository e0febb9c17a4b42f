"""What judge.smk asks for: the A/A rounds, the campaigns that are compared, and those that make up the history."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.records import sha256_file, sha256_of
from warplog.judge import sources
from warplog.judge.sources import MLFLOW, PARENTS
from warplog.measure.provenance import now
from warplog.plan.plan import Plan
from warplog.track.connection import own_file

_JUDGED = ("time/*/*/*.json", "extract/*/*/*.json", "aa/round*/time/*/*/*.json", "campaign/*.json")


@dataclass(frozen=True)
class Judging:
    """Names, files and parameters of the rules that judge; like the plan, it starts nothing and writes nothing."""

    plan: Plan

    def rounds(self, wildcards: Any) -> list[str]:
        """The records of all A/A rounds; without a GPU those of the recorded campaign, if it has any."""
        if self.plan.live:
            return list(self._in_turn())
        return sorted(map(str, self.plan.root.glob(f"aa/round*/time/{self.plan.gpu}/*/*.json")))

    def before(self, wildcards: Any) -> list[str]:
        """What must be done before one record of a round: the one before it in turn, or all checks."""
        turns = list(self._in_turn())
        place = turns.index(self._round(int(wildcards.round), wildcards.family, wildcards.variant))
        return [turns[place - 1]] if place else self.plan.files("check")

    def time_contract(self, wildcards: Any) -> str:
        """Hash of what timing depends on."""
        return self.plan.of(wildcards.family).time_contract()

    def timed_cases(self, wildcards: Any) -> list[str]:
        """Names of the timed cases."""
        return list(self.plan.of(wildcards.family).cases)

    def names(self) -> list[str]:
        """The campaigns to compare: baseline and candidate."""
        settings = self.plan.settings
        baseline = settings["recorded"] if settings["baseline"] == "auto" else settings["baseline"]
        return [str(baseline), str(settings["candidate"])]

    def measured_first(self, wildcards: Any) -> list[str]:
        """The live records that a comparison waits for, where the campaign in results/ is compared."""
        if not (self.plan.live and str(paths.RESULTS) in self.names()):
            return []
        counters = self.plan.files("extract") if self.plan.settings["profile"]["ncu"] else []
        return [*self.plan.files("time"), *counters, self.plan.campaign()]

    def state(self, wildcards: Any) -> str:
        """Hash of what is compared but not made by this run: recorded campaigns, other folders, the store."""
        awaited = str(paths.RESULTS) if self.plan.live else ""
        return sha256_of(*(self._state(name) for name in self.names() if name != awaited))

    def history(self) -> list[str]:
        """The campaigns of the history that are there: recorded ones, results/, and what a folder holds.

        Raises:
            WarplogError: a name that is not 'all' means none.
        """
        chosen = self.plan.settings["history"]
        names = [chosen] if isinstance(chosen, str) else chosen
        if names != ["all"]:
            return [str(place) for name in names for place in _campaigns(name)]
        found = sorted(path.parent for path in paths.RECORDED.glob("*/time") if path.is_dir())
        return [str(place) for place in (*found, paths.RESULTS) if (place / "time").is_dir()]

    def history_state(self, wildcards: Any) -> str:
        """Hash of the campaigns of the history."""
        return sha256_of(*(self._state(name) for name in self.history()))

    def history_figures(self) -> list[str]:
        """The history of every family (PNG)."""
        return [f"results/history/{family}.png" for family in self.plan.chosen]

    def _in_turn(self) -> Iterator[str]:
        """All records of all rounds in the order in which they are timed: there and back again."""
        pairs = self.plan.pairs()
        for number in range(1, self.plan.settings["aa"]["rounds"] + 1):
            for pair in pairs if number % 2 else reversed(pairs):
                yield self._round(number, *pair)

    def _round(self, number: int, family: str, variant: str) -> str:
        root = paths.RESULTS / "aa" / f"round{number}"
        return str(paths.record(root, "time", self.plan.gpu, family, variant))

    def _state(self, name: str) -> str:
        if name.startswith(MLFLOW):
            store = own_file(self.plan.tracking_uri())
            if store is None or not store.is_file():
                return now()  # a server is asked each time
            return str(store.stat().st_mtime_ns)
        if name == PARENTS:
            return self.plan.table_contract()
        folder = sources.find(name)
        files = sorted(path for pattern in _JUDGED for path in folder.glob(pattern)) if folder else []
        return sha256_of([(str(path), sha256_file(path)) for path in files])


def _campaigns(name: str) -> list[Path]:
    """The results folders that a name of the history means: itself, a recorded campaign, or all in a folder.

    Raises:
        WarplogError: it means none.
    """
    one = sources.find(name)
    found = [one] if one else sorted(path.parent for path in Path(name).glob("*/time") if path.is_dir())
    if not found:
        raise WarplogError(
            f"config: history: {name!r}: no recorded campaign, results folder or folder of them"
        )
    return found
