"""The plan of a campaign: families, variants and cases, on which GPU, live or from a recorded campaign.

It is decided once, when the workflow starts, and written to results/plan.json, from which jobs read it: on a cluster
the node that plans and the node that measures are different machines. Planning starts and writes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warplog.catalog import family as catalog
from warplog.catalog import winners
from warplog.catalog.family import Family, Variant
from warplog.core import paths, schema
from warplog.core.columns import TABLES
from warplog.core.defaults import DEFAULTS
from warplog.core.errors import WarplogError
from warplog.core.records import SCHEMA_VERSION, read_json, sha256_file, sha256_of, write_json
from warplog.judge.sources import live_gpu, recorded_campaign
from warplog.machine import device, interpreter
from warplog.plan import staleness
from warplog.plan.family import FamilyPlan
from warplog.plan.selection import choose_cases, choose_families, choose_figures, choose_variants, typed
from warplog.tables.records import Source, build_record
from warplog.track.connection import own_file


@dataclass(frozen=True)
class Plan:
    """What is run.

    Methods that take `wildcards` are input and parameter functions of rules.

    Attributes:
        settings: the configuration with its defaults.
        folders: where families were found.
        families: the whole catalogue; chosen: the variants that are run, by family, in ladder order.
        cases: the timed cases of each family.
        gpu: slug of the GPU whose numbers are shown; arch: the architecture to compile for.
        live: whether this campaign measures; else `root` is a recorded campaign.
        root: where records are read from: results, or results/recorded/<name>.
        message: one line for the user: which GPU, live or recorded.
        drawn: the figures of each family.
        project: folder of kernels/ and config/.
    """

    settings: Mapping[str, Any]
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

    def as_json(self) -> dict[str, Any]:
        """The decisions as JSON-able data; the catalogue itself is read again from its files."""
        parameters = {
            family: {v.name: {"parameters": dict(v.parameters), "remark": v.remark} for v in variants}
            for family, variants in self.chosen.items()
        }
        return {
            "schema": SCHEMA_VERSION,
            "settings": dict(self.settings),
            "folders": [str(folder) for folder in self.folders],
            "chosen": parameters,
            "cases": {family: list(cases) for family, cases in self.cases.items()},
            **{name: getattr(self, name) for name in ("gpu", "arch", "live", "message")},
            "root": str(self.root),
            "drawn": {family: list(figures) for family, figures in self.drawn.items()},
            "project": str(self.project),
        }

    def write(self, path: Path) -> None:
        """Writes the plan for the jobs.

        Raises:
            WarplogError: the disk is full or the folder is not writable.
        """
        write_json(path, self.as_json(), "plan")

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """The plan that `write` left.

        Raises:
            WarplogError: it is missing or damaged, or a family or variant is no longer there.
        """
        data = read_json(path, "plan")
        folders = tuple(Path(folder) for folder in data["folders"])
        families = catalog.load(folders)
        if gone := set(data["chosen"]) - set(families):
            raise WarplogError(f"{path}: family {min(gone)!r} is no longer there; run `snakemake` again")
        chosen = {
            name: tuple(replace(families[name].variant(v), **decided) for v, decided in variants.items())
            for name, variants in data["chosen"].items()
        }
        for name, variants in chosen.items():
            decided = {v.name: v for v in variants}
            ladder = tuple(decided.get(v.name, v) for v in families[name].variants)
            families[name] = replace(families[name], variants=ladder)
        return cls(
            data["settings"],
            folders,
            families,
            chosen,
            {family: tuple(cases) for family, cases in data["cases"].items()},
            data["gpu"],
            data["arch"],
            data["live"],
            Path(data["root"]),
            data["message"],
            {family: tuple(figures) for family, figures in data["drawn"].items()},
            Path(data["project"]),
        )

    def oracle(self) -> "Plan":
        """The same for the variants whose true answers are known (families with `probes`) instead."""
        return replace(self, chosen={f.name: f.variants for f in self.families.values() if f.probes})

    def source(self) -> Source:
        """Where the campaign's records are, and what the tables call them.

        Raises:
            WarplogError: the campaign record is missing or not readable.
        """
        origin = "live" if self.live else "recorded"
        return Source(self.root, self.gpu, self.arch, origin, read_json(Path(self.campaign()), "record"))

    def pairs(self) -> list[tuple[str, str]]:
        """(family, variant) of everything that is run."""
        return [(f, v.name) for f, variants in self.chosen.items() for v in variants]

    def of(self, family: str) -> FamilyPlan:
        """The part of one family: its chosen variants, or all if none is chosen, so that any record can be a target."""
        variants = self.chosen.get(family, self.families[family].variants)
        cases = self.cases.get(family, tuple(self.families[family].cases))
        return FamilyPlan(self.families[family], variants, cases, self.gpu, self.arch, self.settings)

    # Files of the whole campaign

    def files(self, stage: str, suffix: str = ".json") -> list[str]:
        """All records of a stage below `root`; a build whose source differs from the recorded one is made here."""
        if stage == "build":
            variants = [v for chosen in self.chosen.values() for v in chosen]
            return [str(build_record(self.root, self.arch, v)) for v in variants]
        files = [paths.family_record(self.root, stage, self.gpu, family, suffix) for family in self.chosen]
        return [str(f) for f in files if self.live or f.is_file()]

    def compiled(self) -> list[str]:
        """The build records of everything that is run, made here."""
        return [build for family in self.chosen for build in self.of(family).builds("record.json")]

    def sanitized(self) -> list[str]:
        """Records of compute-sanitizer: of everything that is run, and of the oracle if that is all families."""
        everything = self.settings["families"] == self.settings["variants"] == "all"
        oracle = self.oracle().files("sanitize") if everything else []
        return [*self.files("sanitize"), *oracle]

    def campaign(self) -> str:
        """The campaign record."""
        return str(self.root / "campaign" / f"{self.gpu}.json")

    def timer(self) -> str:
        """The compiled timing core."""
        return str(paths.RESULTS / "build" / self.arch / "timer.so")

    def timer_source(self) -> str:
        """The source of the timing core."""
        return paths.shown(paths.PACKAGE / "measure" / "worker" / "timer.cu")

    def gpu_files(self) -> list[str]:
        """The files with the peaks of known GPUs."""
        return [paths.shown(path) for path in device.gpu_files(self.project)]

    def tables(self) -> tuple[str, ...]:
        """Names of the tables."""
        return tuple(TABLES)

    def figures(self) -> list[str]:
        """The folders of figures, one per family."""
        return [f"results/figures/{family}" for family in self.chosen]

    def captions(self) -> str:
        """The folder with the captions of figures."""
        return paths.shown(paths.WORKFLOW / "report")

    def tuned(self) -> list[str]:
        """The heat maps of all searches: of the named variants with `tune`, else of all, drafts included."""
        everything = self.settings["variants"] == "all"
        pairs = [
            (name, v.name)
            for name, chosen in self.chosen.items()
            for v in (self.families[name].variants if everything else chosen)
            if v.tune
        ]
        return [str(paths.search_record(paths.RESULTS, self.gpu, *pair, ".png")) for pair in pairs]

    def code(self, stage: str) -> list[str]:
        """The modules that a stage's results depend on."""
        return staleness.code(stage)

    # One variant

    def sources(self, wildcards: Any) -> list[str]:
        """The variant's source and the shared headers it includes."""
        variant = self._variant(wildcards)
        return [str(variant.file), *map(str, variant.headers())]

    def build_job(self, wildcards: Any) -> dict[str, Any]:
        """Parameters of compiling a variant: its entry in family.yaml, with this GPU's best parameters.

        `recorded` is the recorded build record that serves if there is no nvcc; '' on a live campaign.
        """
        variant = self._variant(wildcards)
        recorded = paths.build_folder(self.root, wildcards.arch, wildcards.family, wildcards.variant)
        arguments = self.families[wildcards.family].arguments
        return {
            "family_file": self._family_file(wildcards),
            "parameters": dict(variant.parameters),
            "contract": sha256_of(arguments, dict(variant.parameters), variant.requires),
            "recorded": "" if self.live else str(recorded / "record.json"),
        }

    def tune_job(self, wildcards: Any) -> dict[str, Any]:
        """Parameters of a search; `contract` hashes family, space and timing policy."""
        plan, variant = self.of(wildcards.family), self._variant(wildcards)
        contracts = plan.check_contract(), plan.time_contract()
        space = plan.family.arguments, repr(variant.tune), dict(variant.memory)
        return {
            "family_file": self._family_file(wildcards),
            "arch": self.arch,
            "contract": sha256_of(contracts, *space),
            "settings": self.settings["tune"],
            "time": self.settings["time"],
        }

    # One family

    def reference(self, wildcards: Any) -> str:
        """The family's reference.py."""
        return str(self.families[wildcards.family].folder / "reference.py")

    def builds(self, wildcards: Any) -> list[str]:
        """The build records of the family's variants."""
        return self.of(wildcards.family).builds("record.json")

    def libraries(self, wildcards: Any) -> list[str]:
        """The compiled variants of the family."""
        return self.of(wildcards.family).builds("kernel.so")

    def family_sources(self, wildcards: Any) -> list[str]:
        """The sources and headers of the family's variants."""
        return self.of(wildcards.family).sources()

    def told_by(self, wildcards: Any) -> list[str]:
        """What a page about the family shows besides its numbers: contract and sources."""
        files = dict.fromkeys(str(variant.file) for variant in self.chosen[wildcards.family])
        return [self._family_file(wildcards), *files]

    def check_job(self, wildcards: Any) -> dict[str, Any]:
        """Parameters of checking a family."""
        plan = self.of(wildcards.family)
        return plan.job("check", contract=plan.check_contract())

    def sanitize_job(self, wildcards: Any) -> dict[str, Any]:
        """Parameters of running compute-sanitizer over a family."""
        plan = self.of(wildcards.family)
        return plan.job("sanitize", contract=plan.check_contract())

    def time_job(self, wildcards: Any) -> dict[str, Any]:
        """Parameters of timing a family."""
        plan = self.of(wildcards.family)
        return plan.job("time", contract=plan.time_contract(), cases=list(plan.cases))

    def ncu_job(self, wildcards: Any) -> dict[str, Any]:
        """Parameters of capturing a family with Nsight Compute."""
        plan = self.of(wildcards.family)
        return plan.job("profile", contract="", cases=plan.captured_cases())

    def nsys_job(self, wildcards: Any) -> dict[str, Any]:
        """Parameters of capturing a family with Nsight Systems."""
        plan = self.of(wildcards.family)
        return plan.job("profile", contract="", cases=plan.traced_cases())

    def extract_job(self, wildcards: Any) -> dict[str, Any]:
        """The captured cases of each variant, by profiler."""
        plan = self.of(wildcards.family)
        return {"ncu": plan.captured_cases(), "nsys": plan.traced_cases()}

    def family_figures(self, wildcards: Any) -> list[str]:
        """Names of the figures of one family."""
        return list(self.drawn.get(wildcards.family, ()))

    # What the tables and the tracking store depend on besides files

    def table_contract(self) -> str:
        """Hash of what the tables say besides the records: ladder, formulas, chosen cases."""
        files = [sha256_file(self.families[f].file) for f in self.chosen]
        return sha256_of(files, {f: self.cases[f] for f in self.chosen}, self.pairs())

    def tracking_uri(self) -> str:
        """The tracking store of the configuration; MLFLOW_TRACKING_URI takes precedence, at run time."""
        return str(self.settings["track"]["uri"])

    def tracking_store(self) -> str:
        """'gone' if the store was filled once and its file is no longer there: then it is filled again."""
        store = own_file(self.tracking_uri())
        filled = (paths.RESULTS / "track" / "mlflow.json").is_file()
        return "gone" if store and filled and not store.is_file() else "there"

    def _family_file(self, wildcards: Any) -> str:
        return str(self.families[wildcards.family].file)

    def _variant(self, wildcards: Any) -> Variant:
        return self.families[wildcards.family].variant(wildcards.variant)


def make_plan(config: Mapping[str, Any], project: Path | None = None) -> Plan:
    """The plan for a configuration; `project` is the folder of kernels/ and config/ (default: paths.project()).

    Raises:
        WarplogError: an unknown key, family, variant, case or GPU, no GPU and no recorded campaign, or a path of
            the interpreter that no job can be started with.
    """
    if why := interpreter.unusable():
        raise WarplogError(f"{why}; {interpreter.REMEDY}")
    project = paths.project() if project is None else project
    config = {key: typed(value) for key, value in config.items()}
    schema.check(config, "config", "config")
    settings: dict[str, Any] = {
        key: {**value, **config.get(key, {})} if isinstance(value, dict) else config.get(key, value)
        for key, value in DEFAULTS.items()
    }
    folders = (project / "kernels", *(Path(folder) for folder in settings["kernel_folders"]))
    families = catalog.load(folders)
    chosen = choose_variants(settings["variants"], choose_families(settings["families"], families))
    cases = choose_cases(settings["cases"], families, chosen)
    gpu, arch, live, root, message = _campaign(settings, project)
    families |= winners.with_winners({f: families[f] for f in chosen}, gpu)
    chosen = {
        name: tuple(families[name].variant(v.name) for v in variants) for name, variants in chosen.items()
    }
    drawn = choose_figures(chosen, families)
    return Plan(settings, folders, families, chosen, cases, gpu, arch, live, root, message, drawn, project)


def _campaign(settings: Mapping[str, Any], project: Path) -> tuple[str, str, bool, Path, str]:
    """GPU, architecture, whether it measures, the folder of its records, and the line that says so."""
    found = None if settings["mode"] == "recorded" else device.detect()
    if settings["mode"] == "live" or found is not None:
        gpu, arch = live_gpu(settings, found, project)
        return gpu, arch, True, paths.RESULTS, f"live on {found.name if found else gpu} ({arch})"
    root, record = recorded_campaign(settings, project)
    why = "mode: recorded" if settings["mode"] == "recorded" else f"no GPU here ({device.why_not()})"
    message = (
        f"{why}: using the recorded campaign {record['campaign']}"
        f" ({record['gpu_name']}, {record['started'][:10]}, commit {record['commit'][:12] or 'unknown'})"
    )
    return record["gpu"], record["arch"], False, root, message
