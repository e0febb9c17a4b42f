"""Inputs and parameters of the rules in judge.smk: A/A rounds, comparison of campaigns, history."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.core import paths, store
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file, sha256_of
from warplog.judge import campaigns, samples
from warplog.judge.campaigns import MLFLOW, PARENTS
from warplog.measure.provenance import now
from warplog.plan.files import Files
from warplog.plan.parameters import Parameters
from warplog.plan.plan import Plan
from warplog.records import stages
from warplog.records.verification import manifest
from warplog.track.address import own_file

_JUDGED = (stages.TIME, stages.EXTRACT, stages.ROUND, stages.START)


@dataclass(frozen=True)
class Judging:
    """Names, files and parameters for judge.smk; like `Plan`, it starts no process and writes no file."""

    files: Files

    @property
    def plan(self) -> Plan:
        """What is run."""
        return self.files.plan

    def rounds(self, wildcards: Any) -> list[str]:
        """Returns the records of all A/A rounds; if the campaign is not live, those that were recorded."""
        if self.plan.live:
            return [self._round(number, family) for number in self._numbers() for family in self.plan.chosen]
        return list(dict.fromkeys(str(store.holder(path)) for path in self._all_rounds()))

    def before(self, wildcards: Any) -> list[str]:
        """Returns what the timing of a family in a round waits for: the one before it, and first of all the checks.

        On several boards it waits for all families of the round before.
        """
        number, families = int(wildcards.round), list(self.plan.chosen)
        if self.plan.boards.several:
            former = [self._round(number - 1, family) for family in families]
            return former if number > 1 else self.files.record_files(stages.CHECK)
        # Even rounds take the families backwards.
        orders = [families if n % 2 else reversed(families) for n in self._numbers()]
        turns = [self._round(n, family) for n, order in enumerate(orders, 1) for family in order]
        place = turns.index(self._round(number, wildcards.family))
        return [turns[place - 1]] if place else self.files.record_files(stages.CHECK)

    def rounds_state(self, wildcards: Any) -> str:
        """Returns the hash of the A/A rounds that exist; the floors use them but do not wait for them."""
        files = dict.fromkeys(map(store.holder, self._all_rounds()))
        return sha256_of([(str(path), sha256_file(path)) for path in files])

    def names(self) -> list[str]:
        """Returns the names of the campaigns to compare: baseline and candidate."""
        settings = self.plan.settings
        baseline = settings.recorded if settings.baseline == "auto" else settings.baseline
        return [baseline, settings.candidate]

    def measured_first(self, wildcards: Any) -> list[str]:
        """Returns the live records that a comparison waits for; none unless the live campaign is compared."""
        if not (self.plan.live and str(paths.RESULTS) in self.names()):
            return []
        judged = [stages.TIME, *([stages.EXTRACT] if self.plan.settings.profile.ncu else [])]
        return [*self.files.record_files(*judged), self.files.campaign()]

    def state(self, wildcards: Any) -> str:
        """Returns the hash of compared campaigns that this run does not measure: recorded ones, folders, the store."""
        awaited = str(paths.RESULTS) if self.plan.live else ""
        return sha256_of(*(self._state(name) for name in self.names() if name != awaited))

    def history(self, wildcards: Any = None) -> list[str]:
        """Returns the folders of the campaigns that `history` names; 'all' are the recorded ones and results/.

        Raises:
            WarplogError: a name refers to no campaign.
        """
        chosen = self.plan.settings.history
        names = (chosen,) if isinstance(chosen, str) else chosen
        if names != ("all",):
            return [str(place) for name in names for place in self._campaigns(name)]
        recorded = {
            folder.name: folder
            for place in (self.plan.project, Path())
            for folder in (place / paths.RECORDED).glob("[!.]*")
        }
        folders = [recorded[name] for name in sorted(recorded)]
        return [str(place) for place in (*folders, paths.RESULTS) if samples.gpus(place)]

    def history_state(self, wildcards: Any) -> str:
        """Returns the hash of the campaigns in the history."""
        return sha256_of(*(self._state(name) for name in self.history()))

    def _numbers(self) -> range:
        return range(1, self.plan.settings.aa.rounds + 1)

    def _all_rounds(self) -> list[Path]:
        return stages.ROUND.files(self.plan.root, gpu=self.plan.gpu)

    def _round(self, number: int, family: str) -> str:
        return str(stages.ROUND.at(paths.RESULTS, round=number, gpu=self.plan.gpu, family=family))

    def _state(self, name: str) -> str:
        if name.startswith(MLFLOW):
            file = own_file(self.plan.settings.track.uri)
            if file is None or not file.is_file():
                return now()  # a server is queried in every run
            return str(file.stat().st_mtime_ns)
        if name == PARENTS:
            return Parameters(self.files).tables()
        folder = campaigns.find(name, self.plan.project)
        if folder and (folder / manifest.NAME).is_file():  # it holds the digests of all files
            return sha256_file(folder / manifest.NAME)
        files = sorted(path for stage in _JUDGED for path in folder.glob(stage.pattern())) if folder else []
        return sha256_of([(str(path), sha256_file(path)) for path in files])

    def _campaigns(self, name: str) -> list[Path]:
        """Returns the results folders that `name` refers to: one campaign, or all campaigns in that folder.

        Raises:
            WarplogError: it refers to none.
        """
        folder = campaigns.find(name, self.plan.project)
        folders = [folder] if folder else sorted(filter(samples.gpus, Path(name).glob("*")))
        if not folders:
            raise WarplogError(
                f"config: history: {name!r}: not a recorded campaign, a results folder, or a folder of results folders"
            )
        return folders
