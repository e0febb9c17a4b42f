"""The parameters of rules: Snakemake runs a job again if one of them changes.

Methods that take `wildcards` are parameter functions of rules. `job` parameters have a type in `plan.jobs`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from warplog.catalog.languages import MODULES
from warplog.core import paths, store
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file, sha256_of
from warplog.machine import device, packages
from warplog.plan.boards import SLOTS
from warplog.plan.files import Files
from warplog.plan.jobs import (
    AccessJob,
    BuildParameters,
    CheckJob,
    ChipsJob,
    DuelJob,
    ExtractJob,
    ProfileJob,
    SanitizeJob,
    TimeJob,
    TimelineJob,
    TrialJob,
    TuneJob,
)
from warplog.plan.plan import Plan
from warplog.records import door, stages
from warplog.records.build import Build
from warplog.track import address, presence

# Figures in Snakemake's report, in its order. The others are on the pages, and would make the report exceed 10 MB.
REPORTED = (
    "ladder",
    "roofline",
    "warp_stalls",
    "overlap",
    "power_trace",
    "quantization",
    "error_vs_speed",
)
# Builds with these statuses are tried again; `unsupported` depends on family.yaml and the GPU only.
_RETRIED = ("compile_error", "error", "timeout")


@dataclass(frozen=True)
class Parameters:
    """The parameters of the rules; `files` are those of what they run."""

    files: Files

    @property
    def plan(self) -> Plan:
        """What they run."""
        return self.files.plan

    # Of jobs

    def trial(self) -> object:
        """Returns the parameters of trying the references: `contract` hashes what their arrays must be like."""
        tried = self.files.tried
        cases = [{c.name: dict(c.values) for c in f.check_cases.values()} for f in tried]
        contract = sha256_of([[a.form() for a in f.arguments] for f in tried], cases)
        return door.plain(TrialJob(family_files=tuple(str(f.file) for f in tried), contract=contract))

    def build(self, wildcards: Any) -> object:
        """Returns the parameters of compiling a variant, which include this GPU's best tuning parameters."""
        return door.plain(self._build(wildcards))

    def marked(self, wildcards: Any) -> object:
        """Returns the parameters of compiling a variant with its marks."""
        job = self._build(wildcards)
        made = stages.MARKED.at(paths.RESULTS, **_keys(wildcards))
        values = {**job.parameters, "WARPLOG_TIMELINE": 1}
        return door.plain(structs.replace(job, parameters=values, recorded="", attempt=attempt(made)))

    def check(self, wildcards: Any) -> object:
        """Returns the parameters of checking a family."""
        family = self.plan.family_plan(wildcards.family)
        return family.job(CheckJob, contract=family.check_contract(), settings=self.plan.settings.check)

    def time(self, wildcards: Any) -> object:
        """Returns the parameters of timing a family."""
        family, settings = self.plan.family_plan(wildcards.family), self.plan.settings.time
        return family.job(TimeJob, contract=family.time_contract(), settings=settings, cases=family.cases)

    def ncu(self, wildcards: Any) -> object:
        """Returns the parameters of capturing a family with Nsight Compute."""
        family, settings = self.plan.family_plan(wildcards.family), self.plan.settings.profile
        return family.job(ProfileJob, contract="", settings=settings, cases=family.captured_cases())

    def nsys(self, wildcards: Any) -> object:
        """Returns the parameters of capturing a family with Nsight Systems."""
        family, settings = self.plan.family_plan(wildcards.family), self.plan.settings.profile
        return family.job(ProfileJob, contract="", settings=settings, cases=family.traced_cases())

    def extract(self, wildcards: Any) -> object:
        """Returns the captured cases of each variant, by profiler."""
        family = self.plan.family_plan(wildcards.family)
        return door.plain(ExtractJob(ncu=family.captured_cases(), nsys=family.traced_cases()))

    def sanitize(self, wildcards: Any) -> object:
        """Returns the parameters of running compute-sanitizer on a family."""
        family = self.plan.family_plan(wildcards.family)
        return family.job(SanitizeJob, contract=family.check_contract(), settings=self.plan.settings.sanitize)

    def timeline(self, wildcards: Any) -> object:
        """Returns the parameters of capturing the timelines of a family."""
        family, settings = self.plan.family_plan(wildcards.family).with_marks(), self.plan.settings.timeline
        return family.job(TimelineJob, contract=family.timeline_contract(), settings=settings)

    def accesses(self, wildcards: Any) -> object:
        """Returns the parameters of tracing the accesses of a family."""
        family, settings = self.plan.family_plan(wildcards.family), self.plan.settings
        counted, contract = settings.profile.ncu, family.access_contract()
        return family.job(AccessJob, contract=contract, settings=settings.accesses, counted=counted)

    def duels(self, wildcards: Any) -> object:
        """Returns the parameters of the duels of a family's steps."""
        family = self.plan.family_plan(wildcards.family)
        return family.job(DuelJob, contract=family.duel_contract(), settings=None)

    def chips(self, wildcards: Any) -> object:
        """Returns the parameters of compiling a family for an architecture."""
        of_family = self.plan.family_plan(wildcards.family)
        arguments = [a.form() for a in of_family.family.arguments]
        return door.plain(
            ChipsJob(
                family_file=str(of_family.family.file),
                variants={v.name: v.parameters for v in of_family.variants},
                contract=sha256_of(arguments, [v.requires.arch for v in of_family.variants]),
            )
        )

    def tune(self, wildcards: Any) -> object:
        """Returns the parameters of a search; `contract` hashes what checking, timing and the space depend on."""
        of_family = self.plan.family_plan(wildcards.family)
        variant = of_family.family.variant(wildcards.variant)
        contracts = of_family.check_contract(), of_family.time_contract()
        space = [a.form() for a in of_family.family.arguments], repr(variant.tune), dict(variant.memory)
        return door.plain(
            TuneJob(
                family_file=str(of_family.family.file),
                arch=self.plan.arch,
                contract=sha256_of(contracts, *space),
                settings=self.plan.settings.tune,
                time=self.plan.settings.time,
            )
        )

    def _build(self, wildcards: Any) -> BuildParameters:
        """Returns the parameters of a build.

        `contract` changes with the versions of Triton and PyTorch; CuPy is installed by the first job that requires it.
        """
        plan, family = self.plan, self.plan.families[wildcards.family]
        variant = family.variant(wildcards.variant)
        made, recorded = (stages.BUILD.at(root, **_keys(wildcards)) for root in (paths.RESULTS, plan.root))
        arguments = [[a.form() for a in declared] for declared in (variant.arguments, family.arguments)]
        modules = MODULES[variant.language] if variant.is_python else ()
        python = (variant.language, {name: packages.version(name) for name in modules if name != "cupy"})
        return BuildParameters(
            family_file=str(family.file),
            parameters=variant.parameters,
            contract=sha256_of(
                arguments,
                dict(variant.parameters),
                variant.requires,
                variant.compile.record(),
                *(python if variant.is_python else ()),
            ),
            recorded="" if plan.live else str(recorded),
            attempt=attempt(made),
        )

    # What results depend on besides files

    def tables(self) -> str:
        """Returns the hash of what the tables depend on besides records: family.yaml, chosen cases and variants."""
        plan = self.plan
        files = [sha256_file(plan.families[name].file) for name in plan.chosen]
        return sha256_of(files, {name: plan.cases[name] for name in plan.chosen}, plan.pairs())

    def sanitized(self, _wildcards: Any = None) -> str:
        """Returns the hash of the existing records of compute-sanitizer, which does not run for the summary."""
        files = map(Path, self.files.record_files(stages.SANITIZE))
        return sha256_of([sha256_file(file) for file in files if file.is_file()])

    def chip_records(self, _wildcards: Any = None) -> list[str]:
        """Returns the records of builds for other chips."""
        return list(map(str, self.files.chip_records))

    def timelines(self, _wildcards: Any = None) -> str:
        """Returns the hash of the existing records of timelines, which are not captured for the tables."""
        plan = self.plan
        places = (stages.TIMELINE.at(plan.root, gpu=plan.gpu, family=name) for name in plan.chosen)
        files = dict.fromkeys(map(store.holder, places))
        return sha256_of([sha256_file(file) for file in files if file.is_file()])

    def chips_listed(self, _wildcards: Any = None) -> str:
        """Returns the hash of the table of builds for other chips, which pages of a live campaign do not make."""
        return self._listed(stages.CHIPS)

    def accesses_listed(self, _wildcards: Any = None) -> str:
        """Returns the hash of the table of traced accesses, which the analysis of a live campaign does not make."""
        return self._listed(stages.LIST_ACCESSES)

    def duels_listed(self, _wildcards: Any = None) -> str:
        """Returns the hash of the table of duels, which pages of a live campaign do not make."""
        return self._listed(stages.LIST_DUELS)

    def _listed(self, stage: stages.Stage) -> str:
        table = stage.at(paths.RESULTS)
        return sha256_file(table) if self.plan.live and table.is_file() else ""

    def destination(self, wildcards: Any) -> object:
        """Returns the store that is logged to and the number of the attempt, which increases if runs were lost."""
        uri = address.tracking_uri(self.plan.settings.track.uri)
        return door.plain(presence.destination(uri, stages.TRACK.at(paths.RESULTS)))

    # Of figures

    def figures(self, wildcards: Any) -> list[str]:
        """Returns the names of a family's figures."""
        return list(self.plan.drawn.get(wildcards.family, ()))

    def reported(self) -> str:
        """Returns the pattern of the figures in Snakemake's report, which embeds them: the most telling, in few MB."""
        return f"{{figure,{'|'.join(REPORTED)}}}.png"

    def report_labels(self, wildcards: Any) -> dict[str, str]:
        """Returns the label of a figure in Snakemake's report, which sorts by label: the ladder comes first."""
        name = str(wildcards.figure)
        return {"figure": f"{1 + REPORTED.index(name)} {name.replace('_', ' ')}"}

    # Of Snakemake

    @property
    def retries(self) -> int | None:
        """How often a measuring job is tried again: once if another board can take the family of a lost one.

        None leaves it to `retries` of the profile.
        """
        return 1 if self.plan.boards.several else None

    @property
    def gres(self) -> str | None:
        """The type of GPU that jobs request from a cluster's scheduler; None for any.

        It is `gres` of the GPU's entry in gpus.yaml, else the slug if that is a single word.
        """
        gpu = self.plan.gpu
        entry = device.known_gpus(self.plan.project).get(gpu)
        return (entry and entry.gres) or (None if "-" in gpu else gpu)

    def timing_threads(self, cores: int | None) -> int:
        """Returns the threads of a timing job: its board's share of the cores, except two.

        On these the board's next jobs may start up; nothing else computes while kernels are timed. `cores` is None if
        another executor starts the jobs; its profile sets the threads.
        """
        return max(1, (cores or 1) // max(1, len(self.plan.boards.uuids)) - (SLOTS - 1))


def attempt(build: Path) -> int:
    """Returns the number of the build that makes this record: one more than that of a failed build, which runs again.

    A build that succeeded keeps its number. So the parameter of its job is what it was, and the job does not run. It
    is 1 if there is no record yet, or if it is damaged, which the jobs that read it report.
    """
    try:
        record = door.read(build, Build)
    except WarplogError:
        return 1
    failed = record.origin == "live" and record.status in _RETRIED
    return record.attempt + 1 if failed else record.attempt


def _keys(wildcards: Any) -> dict[str, str]:
    """Returns the keys of a build's record."""
    return {key: getattr(wildcards, key) for key in ("arch", "family", "variant")}
