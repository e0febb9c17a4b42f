"""The plan of a campaign: families, variants and cases, on which GPU, live or from a recorded campaign.

The plan is made once, when the workflow starts. Jobs receive its decisions as a parameter of their rule. On a cluster,
Snakemake parses the workflow again on the node of each job, and then reads results/plan.json instead of making a new
plan.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from warplog.catalog import family as catalog
from warplog.catalog.family import Family, Variant
from warplog.core.errors import WarplogError
from warplog.plan.boards import Boards
from warplog.plan.family_plan import FamilyPlan
from warplog.plan.jobs import Decided, Decisions, PlanRecord
from warplog.records import door, stages
from warplog.records.campaign import Campaign
from warplog.records.config import Config
from warplog.tables.verified_records import Source


@dataclass(frozen=True)
class Plan:
    """What a campaign runs.

    Attributes:
        settings: the configuration, completed with the defaults.
        folders: the folders that were searched for families.
        families: all families, by name; chosen: the variants to run, by family, in ladder order.
        cases: the timed cases of each family.
        gpu: slug of the GPU that the numbers are from; arch: the architecture to compile for.
        live: whether this campaign measures; if not, its records come from a recorded campaign.
        root: folder of the records: results, or results/recorded/<name>.
        message: one line for the user: which GPU, and whether live or recorded.
        drawn: names of the figures of each family; one that has nothing to show in the tables is not drawn.
        project: folder of kernels/ and config/.
        boards: the boards of this machine that measure.
    """

    settings: Config
    folders: tuple[Path, ...]
    families: Mapping[str, Family]
    chosen: Mapping[str, tuple[Variant, ...]]
    cases: Mapping[str, tuple[str, ...]]
    gpu: str
    arch: str
    live: bool
    root: Path
    message: str
    drawn: Mapping[str, tuple[str, ...]]
    project: Path
    boards: Boards = field(default_factory=Boards)

    @property
    def _decisions(self) -> Decisions:
        return Decisions(
            folders=tuple(map(str, self.folders)),
            chosen={
                family: {v.name: Decided(parameters=v.parameters, remarks=tuple(v.remarks)) for v in variants}
                for family, variants in self.chosen.items()
            },
            cases=self.cases,
            gpu=self.gpu,
            arch=self.arch,
            live=self.live,
            root=str(self.root),
            project=str(self.project),
        )

    def decisions(self) -> object:
        """Returns the decisions as plain values: a parameter of the rules whose jobs require the plan."""
        return door.plain(self._decisions)

    def write(self, path: Path) -> None:
        """Writes the whole plan for jobs that Snakemake starts on other machines.

        Raises:
            WarplogError: the disk is full or the folder is not writable.
        """
        made = PlanRecord(
            decisions=self._decisions, settings=self.settings, message=self.message, drawn=self.drawn
        )
        door.write(path, made)

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Returns the plan that `write` wrote to `path`.

        Raises:
            WarplogError: the file is missing or damaged, or a family or variant no longer exists.
        """
        read = door.read(path, PlanRecord)
        return replace(
            cls._made_of(read.decisions, None), settings=read.settings, message=read.message, drawn=read.drawn
        )

    @classmethod
    def made_of(cls, parameter: object, only: Collection[str] | None = None) -> "Plan":
        """Returns the plan with the decisions in the parameter of a job, without settings, message and figures.

        Args:
            only: the families to load, which takes most of the time; the others are not part of the plan.

        Raises:
            WarplogError: a family or variant no longer exists.
        """
        return cls._made_of(door.decode(parameter, Decisions, "plan"), only)

    @classmethod
    def of_chosen(cls, parameter: object) -> "Plan":
        """Returns `made_of` with the chosen families only, which most jobs need; raises what that raises."""
        decided = door.decode(parameter, Decisions, "plan")
        return cls._made_of(decided, decided.chosen)

    @classmethod
    def _made_of(cls, made: Decisions, only: Collection[str] | None) -> "Plan":
        folders = tuple(map(Path, made.folders))
        families = catalog.load(folders, only)
        chosen: dict[str, tuple[Variant, ...]] = {}
        for name, decided in made.chosen.items():
            if only is not None and name not in only:
                continue
            if name not in families:
                raise WarplogError(f"plan: family {name!r} no longer exists; run `snakemake` again")
            ladder = tuple(
                structs.replace(v, **structs.asdict(decided[v.name])) if v.name in decided else v
                for v in families[name].variants
            )
            families[name] = structs.replace(families[name], variants=ladder)
            chosen[name] = tuple(map(families[name].variant, decided))
        return cls(
            settings=Config(),
            folders=folders,
            families=families,
            chosen=chosen,
            cases=made.cases,
            gpu=made.gpu,
            arch=made.arch,
            live=made.live,
            root=Path(made.root),
            message="",
            drawn={},
            project=Path(made.project),
        )

    def oracle(self) -> "Plan":
        """Returns the plan for the oracle: the same for all variants of the families with `probes`."""
        return replace(self, chosen={f.name: f.variants for f in self.families.values() if f.probes})

    def source(self) -> Source:
        """Returns where the records of the campaign are, and the labels of their rows in the tables.

        Raises:
            WarplogError: the campaign record is missing or not readable.
        """
        campaign = door.read(stages.START.at(self.root, gpu=self.gpu), Campaign)
        return Source(self.root, "live" if self.live else "recorded", campaign)

    def pairs(self) -> list[tuple[str, str]]:
        """Returns (family, variant) for everything that is run."""
        return [(f, v.name) for f, variants in self.chosen.items() for v in variants]

    def family_plan(self, family: str) -> FamilyPlan:
        """Returns the plan of one family.

        It covers all variants if none was chosen, so that the record of any family can be requested as a target.
        """
        variants = self.chosen.get(family, self.families[family].variants)
        cases = self.cases.get(family, tuple(self.families[family].cases))
        return FamilyPlan(self.families[family], variants, cases, self.gpu, self.arch, self.settings)
