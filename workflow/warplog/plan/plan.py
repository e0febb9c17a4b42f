"""The plan of a campaign: families, variants and cases, on which GPU, live or from a recorded campaign.

The plan is made once, when the workflow starts. Jobs receive its decisions as a parameter of their rule. On a cluster,
Snakemake parses the workflow again on the node of each job, and then reads results/plan.json instead of making a new
plan. Making a plan starts no process and writes no file.
"""

import csv
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import structs

from warplog.catalog import family as catalog
from warplog.catalog import order, winners
from warplog.catalog.family import Family, Variant
from warplog.catalog.languages import MODULES
from warplog.core import paths, store, text
from warplog.core.columns import PARQUET_ONLY, TABLES
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file, sha256_of
from warplog.judge.sources import recorded_campaign
from warplog.judge.summary.known import Known, known
from warplog.machine import device, interpreter, packages
from warplog.plan import boards, staleness
from warplog.plan.boards import SLOTS, Boards
from warplog.plan.family import FamilyPlan
from warplog.plan.jobs import (
    BuildJob,
    CheckJob,
    Decided,
    Decisions,
    ExtractJob,
    PlanRecord,
    ProfileJob,
    SanitizeJob,
    TimeJob,
    TimelineJob,
    TrialJob,
    TuneJob,
)
from warplog.plan.selection import choose_cases, choose_families, choose_figures, choose_variants, typed
from warplog.records import door
from warplog.records.campaign import Campaign, Gpu
from warplog.records.config import Config, Gpus
from warplog.tables.conclusions import ANALYSED
from warplog.tables.records import Source, build_record
from warplog.track import address, presence

LOGGED = Path("track", "mlflow.json")
# Figures in Snakemake's report, in its order. The others are on the pages, and would make the report exceed 10 MB.
REPORTED = (
    "ladder",
    "throughput_vs_size",
    "roofline",
    "warp_stalls",
    "bank_conflicts",
    "overlap",
    "power_trace",
    "quantization",
)


@dataclass(frozen=True)
class Plan:
    """What a campaign runs, and the inputs and parameters of its rules.

    Methods that take `wildcards` are input and parameter functions of rules.

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

    @property
    def retries(self) -> int | None:
        """How often a measuring job is tried again: once if another board can take the family of a lost one.

        None leaves it to `retries` of the profile.
        """
        return 1 if self.boards.several else None

    @cached_property
    def gres(self) -> str | None:
        """The type of GPU that jobs request from a cluster's scheduler; None for any.

        It is `gres` of the GPU's entry in gpus.yaml, else the slug if that is a single word.
        """
        entry = device.known_gpus(self.project).get(self.gpu)
        return (entry and entry.gres) or (None if "-" in self.gpu else self.gpu)

    def timing_threads(self, cores: int | None) -> int:
        """Returns the threads of a timing job: its board's share of the cores, except two.

        On these the board's next jobs may start up; nothing else computes while kernels are timed. `cores` is None if
        another executor starts the jobs; its profile sets the threads.
        """
        return max(1, (cores or 1) // max(1, len(self.boards.uuids)) - (SLOTS - 1))

    def oracle(self) -> "Plan":
        """Returns the plan for the oracle: the same for all variants of the families with `probes`."""
        return replace(self, chosen={f.name: f.variants for f in self.families.values() if f.probes})

    def source(self) -> Source:
        """Returns where the records of the campaign are, and the labels of their rows in the tables.

        Raises:
            WarplogError: the campaign record is missing or not readable.
        """
        return Source(
            self.root, "live" if self.live else "recorded", door.read(Path(self.campaign()), Campaign)
        )

    def pairs(self) -> list[tuple[str, str]]:
        """Returns (family, variant) for everything that is run."""
        return [(f, v.name) for f, variants in self.chosen.items() for v in variants]

    def of(self, family: str) -> FamilyPlan:
        """Returns the plan of one family.

        It covers all variants if none was chosen, so that the record of any family can be requested as a target.
        """
        variants = self.chosen.get(family, self.families[family].variants)
        cases = self.cases.get(family, tuple(self.families[family].cases))
        return FamilyPlan(self.families[family], variants, cases, self.gpu, self.arch, self.settings)

    # Files of the whole campaign

    def files(self, stage: str, suffix: str = ".json") -> list[str]:
        """Returns the files with the records of a stage for all chosen families.

        Of a recorded campaign, which may lack some, these are the archives that hold them. The build record of a
        variant whose source differs from the recorded one is in results/, where the variant is compiled.
        """
        if stage == "build":
            records = [record for of_family in self._build_records.values() for record in of_family]
            return _distinct(map(store.holder, records))
        files = map(store.holder, self._records(stage, self.chosen, suffix))
        return _distinct(file for file in files if self.live or file.is_file())

    def records(self, stage: str, suffix: str = ".json") -> list[Path]:
        """Returns the records of a stage for all chosen families; recorded ones only if they exist."""
        return [one for one in self._records(stage, self.chosen, suffix) if self.live or store.is_file(one)]

    def _records(self, stage: str, families: Iterable[str], suffix: str = ".json") -> list[Path]:
        return [paths.family_record(self.root, stage, self.gpu, family, suffix) for family in families]

    @cached_property
    def _build_records(self) -> dict[str, list[Path]]:
        """The build records of everything that is run, by family; finding them reads the recorded ones."""
        return {name: [self.build_record(v) for v in variants] for name, variants in self.chosen.items()}

    def build_record(self, variant: Variant) -> Path:
        """Returns the build record of a variant: the recorded one if its source is unchanged, else that of this run.

        Raises:
            WarplogError: the recorded build record is not readable.
        """
        return build_record(self.root, self.arch, variant)

    def profiles(self) -> list[str]:
        """Returns the files with the records of both profilers for all chosen families."""
        return _distinct(self.files("profile", ".ncu.json") + self.files("profile", ".nsys.json"))

    def compiled(self) -> list[str]:
        """Returns the build records in results/ of everything that is run."""
        return [build for family in self.chosen for build in self.of(family).builds("record.json")]

    def sanitized(self) -> list[str]:
        """Returns the files with the records of compute-sanitizer, for `sanitized_records`."""
        return _distinct(map(store.holder, map(Path, self.sanitized_records())))

    def sanitized_records(self) -> list[str]:
        """Returns the records of compute-sanitizer, including the oracle's if all families and variants are chosen."""
        everything = self.settings.families == self.settings.variants == "all"
        oracle = self.oracle().records("sanitize") if everything else []
        return _distinct([*self.records("sanitize"), *oracle])

    def campaign(self) -> str:
        """Returns the campaign record."""
        return str(self.root / "campaign" / f"{self.gpu}.json")

    def timer(self) -> str:
        """Returns the compiled timing core."""
        return str(paths.RESULTS / "build" / self.arch / "timer.so")

    def gpu_files(self) -> list[str]:
        """Returns the files with the peak rates of known GPUs."""
        return [paths.shown(path) for path in device.gpu_files(self.project)]

    def order_files(self) -> list[str]:
        """Returns the files that say in which order families are introduced."""
        return [paths.shown(path) for path in order.order_files(self.folders)]

    def sanitized_state(self, _wildcards: Any = None) -> str:
        """Returns the hash of the existing records of compute-sanitizer, which does not run for the summary."""
        return sha256_of([sha256_file(Path(f)) for f in self.files("sanitize") if Path(f).is_file()])

    def known(self) -> Known:
        """Returns what the records say about the chosen variants.

        Raises:
            WarplogError: a file of records is damaged.
        """
        return known(self.root, self.arch, self.gpu, self.chosen)

    def tables(self, *more: str, suffix: str = "parquet") -> list[str]:
        """Returns the files of the tables that `make_tables` writes, and of those named in `more`."""
        left_out = PARQUET_ONLY if suffix == "csv" else ()
        names = [name for name in (*TABLES, *more) if name not in left_out]
        return [str(paths.RESULTS / "tables" / f"{name}.{suffix}") for name in names]

    def concluded(self) -> list[str]:
        """Returns the files of the tables of conclusions that are drawn from others without family.yaml."""
        return [str(paths.RESULTS / "tables" / f"{kind.TABLE}.parquet") for kind in ANALYSED]

    def figures(self) -> list[str]:
        """Returns the folders of figures, one per family."""
        return [str(paths.RESULTS / "figures" / family) for family in self.chosen]

    def tuned(self) -> list[str]:
        """Returns the heat maps of the parameter searches: of the chosen variants with a `tune` entry.

        If `variants` is 'all', drafts are included.
        """
        everything = self.settings.variants == "all"
        pairs = [
            (name, v.name)
            for name, chosen in self.chosen.items()
            for v in (self.families[name].variants if everything else chosen)
            if v.tune
        ]
        return [str(paths.RESULTS / "tune" / self.gpu / name / f"{variant}.png") for name, variant in pairs]

    def timelines(self) -> list[str]:
        """Returns the records of timelines to capture, for families with a chosen variant that has one."""
        families = [family for family in self.chosen if self.of(family).with_marks().variants]
        return [str(f) for f in self._records("timeline", families) if self.live]

    def timelines_state(self, _wildcards: Any = None) -> str:
        """Returns the hash of the existing records of timelines, which are not captured for the tables."""
        files = dict.fromkeys(map(store.holder, self._records("timeline", self.chosen)))
        return sha256_of([sha256_file(f) for f in files if f.is_file()])

    @cached_property
    def tried(self) -> list[Family]:
        """The families whose references are tried: all that are measured, else those that are not as recorded.

        A run from a recorded campaign executes no code of the others.
        """
        return [
            self.families[name]
            for name, records in self._build_records.items()
            if self.live or not all(record.is_relative_to(self.root) for record in records)
        ]

    def references(self) -> list[str]:
        """Returns the reference.py of the families to try."""
        return [str(family.folder / "reference.py") for family in self.tried]

    def trial(self) -> list[str]:
        """Returns the file that is written when the references were tried; [] if there are none to try."""
        return [str(paths.RESULTS / "build" / ".references")] if self.tried else []

    def trial_job(self) -> object:
        """Returns the parameters of trying the references: `contract` hashes what their arrays must be like."""
        cases = [{c.name: dict(c.values) for c in f.check_cases.values()} for f in self.tried]
        contract = sha256_of([[a.form() for a in f.arguments] for f in self.tried], cases)
        files = tuple(str(f.file) for f in self.tried)
        return door.plain(TrialJob(family_files=files, contract=contract))

    # One variant

    def sources(self, wildcards: Any) -> list[str]:
        """Returns the variant's source and the headers that it includes."""
        variant = self._variant(wildcards)
        return [str(variant.file), *map(str, variant.headers())]

    def build_job(self, wildcards: Any) -> object:
        """Returns the parameters of compiling a variant, which include this GPU's best tuning parameters."""
        return door.plain(self._build_job(wildcards))

    def marked_job(self, wildcards: Any) -> object:
        """Returns the parameters of compiling a variant with its marks."""
        job = self._build_job(wildcards)
        made = paths.marked_folder(wildcards.arch, wildcards.family, wildcards.variant) / "record.json"
        parameters = {**job.parameters, "WARPLOG_TIMELINE": 1}
        attempt = staleness.attempt(made)
        return door.plain(structs.replace(job, parameters=parameters, recorded="", attempt=attempt))

    def _build_job(self, wildcards: Any) -> BuildJob:
        """Returns the parameters of a build.

        `contract` changes with the versions of Triton and PyTorch; CuPy is installed by the first job that requires it.
        """
        variant = self._variant(wildcards)
        keys = wildcards.arch, wildcards.family, wildcards.variant
        made, recorded = (
            paths.build_folder(root, *keys) / "record.json" for root in (paths.RESULTS, self.root)
        )
        family = self.families[wildcards.family]
        arguments = [[a.form() for a in of] for of in (variant.arguments, family.arguments)]
        modules = MODULES[variant.language] if variant.is_python else ()
        python = (variant.language, {name: packages.version(name) for name in modules if name != "cupy"})
        return BuildJob(
            family_file=str(family.file),
            parameters=variant.parameters,
            contract=sha256_of(
                arguments,
                dict(variant.parameters),
                variant.requires,
                variant.compile.record(),
                *(python if variant.is_python else ()),
            ),
            recorded="" if self.live else str(recorded),
            attempt=staleness.attempt(made),
        )

    def tune_job(self, wildcards: Any) -> object:
        """Returns the parameters of a search; `contract` hashes what checking, timing and the space depend on."""
        plan, variant = self.of(wildcards.family), self._variant(wildcards)
        contracts = plan.check_contract(), plan.time_contract()
        space = [a.form() for a in plan.family.arguments], repr(variant.tune), dict(variant.memory)
        return door.plain(
            TuneJob(
                family_file=str(plan.family.file),
                arch=self.arch,
                contract=sha256_of(contracts, *space),
                settings=self.settings.tune,
                time=self.settings.time,
            )
        )

    # One family

    def reference(self, wildcards: Any) -> str:
        """Returns the family's reference.py."""
        return str(self.families[wildcards.family].folder / "reference.py")

    def builds(self, wildcards: Any) -> list[str]:
        """Returns the build records of the family's variants."""
        return self.of(wildcards.family).builds("record.json")

    def libraries(self, wildcards: Any) -> list[str]:
        """Returns the compiled variants of the family."""
        return self.of(wildcards.family).builds("kernel.so")

    def family_sources(self, wildcards: Any) -> list[str]:
        """Returns the sources and headers of the family's variants."""
        return self.of(wildcards.family).sources()

    def page_sources(self, wildcards: Any) -> list[str]:
        """Returns the files that a page about the family quotes: family.yaml sources and headers of its variants."""
        return self._quoted(wildcards.family)

    def all_page_sources(self) -> list[str]:
        """Returns the files that the pages of all families quote."""
        return list(dict.fromkeys(file for family in self.chosen for file in self._quoted(family)))

    def _quoted(self, family: str) -> list[str]:
        chosen = self.chosen[family]
        files = dict.fromkeys(str(path) for v in chosen for path in (v.file, *v.headers()))
        return [str(self.families[family].file), *files]

    def check_job(self, wildcards: Any) -> object:
        """Returns the parameters of checking a family."""
        plan = self.of(wildcards.family)
        return plan.job(CheckJob, contract=plan.check_contract(), settings=self.settings.check)

    def sanitize_job(self, wildcards: Any) -> object:
        """Returns the parameters of running compute-sanitizer on a family."""
        plan = self.of(wildcards.family)
        return plan.job(SanitizeJob, contract=plan.check_contract(), settings=self.settings.sanitize)

    def timeline_job(self, wildcards: Any) -> object:
        """Returns the parameters of capturing the timelines of a family."""
        plan = self.of(wildcards.family).with_marks()
        return plan.job(TimelineJob, contract=plan.timeline_contract(), settings=self.settings.timeline)

    def builds_with_timeline(self, wildcards: Any) -> list[str]:
        """Returns the build records, without marks, of the variants that have a timeline."""
        return self.of(wildcards.family).with_marks().builds("record.json")

    def libraries_with_timeline(self, wildcards: Any) -> list[str]:
        """Returns the libraries, without marks, of the variants that have a timeline."""
        return self.of(wildcards.family).with_marks().builds("kernel.so")

    def marked_builds(self, wildcards: Any) -> list[str]:
        """Returns the records of the builds with marks of a family."""
        return self.of(wildcards.family).with_marks().marked_builds("record.json")

    def marked_libraries(self, wildcards: Any) -> list[str]:
        """Returns the libraries with marks of a family."""
        return self.of(wildcards.family).with_marks().marked_builds("kernel.so")

    def time_job(self, wildcards: Any) -> object:
        """Returns the parameters of timing a family."""
        plan, settings = self.of(wildcards.family), self.settings.time
        return plan.job(TimeJob, contract=plan.time_contract(), settings=settings, cases=plan.cases)

    def ncu_job(self, wildcards: Any) -> object:
        """Returns the parameters of capturing a family with Nsight Compute."""
        plan, settings = self.of(wildcards.family), self.settings.profile
        return plan.job(ProfileJob, contract="", settings=settings, cases=plan.captured_cases())

    def nsys_job(self, wildcards: Any) -> object:
        """Returns the parameters of capturing a family with Nsight Systems."""
        plan, settings = self.of(wildcards.family), self.settings.profile
        return plan.job(ProfileJob, contract="", settings=settings, cases=plan.traced_cases())

    def extract_job(self, wildcards: Any) -> object:
        """Returns the captured cases of each variant, by profiler."""
        plan = self.of(wildcards.family)
        return door.plain(ExtractJob(ncu=plan.captured_cases(), nsys=plan.traced_cases()))

    def family_figures(self, wildcards: Any) -> list[str]:
        """Returns the names of a family's figures."""
        return list(self.drawn.get(wildcards.family, ()))

    def reported_figures(self) -> str:
        """Returns the pattern of the figures in Snakemake's report, which embeds them: the most telling, in few MB."""
        return f"{{figure,{'|'.join(REPORTED)}}}.png"

    def report_labels(self, wildcards: Any) -> dict[str, str]:
        """Returns the label of a figure in Snakemake's report, which sorts by label: the ladder comes first."""
        name = str(wildcards.figure)
        return {"figure": f"{1 + REPORTED.index(name)} {name.replace('_', ' ')}"}

    # What the tables and the tracking store depend on besides files

    def table_contract(self) -> str:
        """Returns the hash of what the tables depend on besides records: family.yaml, chosen cases and variants."""
        files = [sha256_file(self.families[f].file) for f in self.chosen]
        return sha256_of(files, {f: self.cases[f] for f in self.chosen}, self.pairs())

    def destination(self, wildcards: Any) -> object:
        """Returns the store that is logged to and the number of the attempt, which increases if runs were lost."""
        uri = address.tracking_uri(self.settings.track.uri)
        return door.plain(presence.destination(uri, paths.RESULTS / LOGGED))

    def _variant(self, wildcards: Any) -> Variant:
        return self.families[wildcards.family].variant(wildcards.variant)


def make_plan(config: Mapping[str, object], project: Path | None = None) -> Plan:
    """Makes the plan of one campaign for a configuration.

    Args:
        project: folder of kernels/ and config/; by default `paths.project()`.

    Raises:
        WarplogError: a key, family, variant, case or GPU is unknown, several campaigns are named, the address of the
            tracking store contains a password, there is neither a GPU nor a recorded campaign, or Snakemake cannot
            start jobs with this interpreter.
    """
    if why := interpreter.unusable():
        raise WarplogError(f"{why}; {interpreter.REMEDY}")
    project = paths.project() if project is None else project
    config = {key: typed(key, value) for key, value in config.items()}
    _refuse_several(config)
    settings = door.decode(config, Config, "config")
    address.refuse_secrets(settings.track.uri)
    folders = (project / "kernels", *map(Path, settings.kernel_folders))
    families = catalog.load(folders)
    chosen = choose_variants(settings.variants, choose_families(settings.families, families))
    cases = choose_cases(settings.cases, families, chosen)
    gpu, arch, live, root, message, found = _campaign(settings, project)
    families |= winners.with_winners({f: families[f] for f in chosen}, gpu)
    chosen = {
        name: tuple(families[name].variant(v.name) for v in variants) for name, variants in chosen.items()
    }
    timelines = {f for f in chosen if store.is_file(paths.family_record(root, "timeline", gpu, f))}
    drawn = choose_figures(chosen, families, timelines)
    on_host = frozenset(
        n for n, f in families.items() if f.work.limit == "pcie" or f.measuring.timing == "host"
    )
    measuring = Boards(tuple(one.uuid for one in found), gpu, paths.RESULTS, on_host)
    if measuring.several:
        message = f"{message}; each family is measured on one of {len(found)} boards"
    message = "; ".join((message, *_no_longer_shown(paths.RESULTS / "tables", chosen)))
    return Plan(
        settings,
        folders,
        families,
        chosen,
        cases,
        gpu,
        arch,
        live,
        root,
        message,
        drawn,
        project,
        measuring,
    )


def _distinct(files: Iterable[str | Path]) -> list[str]:
    return list(dict.fromkeys(map(str, files)))


def _refuse_several(config: Mapping[str, object]) -> None:
    for key in ("gpu", "gpus", "recorded"):
        value = config.get(key)
        named = boards.names(value) if isinstance(value, (str, list)) else []
        if len(named) > 1 and not boards.names_boards(named):
            raise WarplogError(
                f"config: {key}: {', '.join(named)}: a run evaluates one campaign; run each in a folder of its own"
                " (snakemake --directory FOLDER), then set results folders or recorded campaigns side by side:"
                f" `{paths.own_command('beside RUN RUN')}`"
            )


def _no_longer_shown(tables: Path, chosen: Container[str]) -> list[str]:
    """Says which families the tables have that this run leaves out; [] if there are none.

    Tables, figures and pages are those of one run. Records stay, so that the families come back without measuring.
    """
    try:
        with (tables / "variants.csv").open(encoding="utf-8", newline="") as file:
            shown = dict.fromkeys(row["family"] for row in csv.DictReader(file))
    except (OSError, ValueError, KeyError, csv.Error):
        return []  # there are none yet, or they will be made anew
    gone = [name for name in shown if name not in chosen]
    what = f"tables, figures and pages will leave out {text.listed(gone)}, which are not in `families`"
    return [f"{what}; their records stay"] if gone else []


def _campaign(settings: Config, project: Path) -> tuple[str, str, bool, Path, str, Sequence[Gpu]]:
    """Returns `gpu`, `arch`, `live`, `root` and `message` of the plan, and the boards of this machine to use."""
    visible = [] if settings.mode == "recorded" else device.boards()
    if settings.mode == "live" or visible:
        found = _named_boards(settings.gpu, visible)
        if found:
            gpu, arch = found[0].slug, found[0].arch
        else:
            known = device.known_gpus(project)
            gpu = boards.expected_gpu(settings.gpu, known)
            arch = known[gpu].arch
        message = (
            f"live on {found[0].name} ({arch})" if found else f"live for {gpu} ({arch}), which is not here"
        )
        return gpu, arch, True, paths.RESULTS, message, found
    root, record = recorded_campaign(settings, project)
    why = "mode: recorded" if settings.mode == "recorded" else f"no GPU here ({device.why_not()})"
    message = (
        f"{why}: using the recorded campaign {record.campaign}"
        f" ({record.gpu_name}, {record.started[:10]}, commit {record.commits})"
    )
    return record.gpu, record.arch, False, root, message, ()


def _named_boards(setting: Gpus, visible: Sequence[Gpu]) -> list[Gpu]:
    """Returns the boards of this machine that `gpu` names; [] if it names a model that this machine does not have."""
    here = ["auto", boards.ALL, *(gpu.slug for gpu in visible)]
    elsewhere = setting not in here and not boards.names_boards(setting)
    return [] if not visible or elsewhere else boards.choose(setting, visible)
