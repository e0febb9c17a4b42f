"""The plan: what the configuration asks for, on which GPU, live or from a recorded campaign.

The Snakefile asks it for names, files and parameters; it starts nothing and writes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warplog import build, catalog, device, interpreter, layout, schema, tuned
from warplog.campaign_source import live_gpu, recorded_campaign
from warplog.catalog import Family, Variant
from warplog.defaults import DEFAULTS
from warplog.errors import WarplogError
from warplog.family_plan import FamilyPlan
from warplog.mlflow_connection import own_file
from warplog.records import sha256_file, sha256_of
from warplog.selection import choose_cases, choose_families, choose_figures, choose_variants, typed
from warplog.table_columns import TABLES


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes:
        families: all that the catalogue holds; chosen: the variants of those that are run, in ladder order.
        cases: the timed cases of each family.
        gpu: slug of the GPU whose numbers are shown; arch: the architecture to compile for.
        live: whether measuring runs here; else `root` is the recorded campaign.
        root: results, or results/recorded/<name>: where check, time and extract records are read from.
        message: one line for the user: which GPU, live or recorded.
        drawn: (family, figure) of all that is drawn.
    """

    settings: Mapping[str, Any]
    families: Mapping[str, Family]
    chosen: Mapping[str, tuple[Variant, ...]]
    cases: Mapping[str, tuple[str, ...]]
    gpu: str
    arch: str
    live: bool
    root: Path
    message: str
    drawn: tuple[tuple[str, str], ...]

    def oracle(self) -> "Plan":
        """The same for the variants whose true answers are known (families with `probes`) instead."""
        return replace(self, chosen={f.name: f.variants for f in self.families.values() if f.probes})

    def pairs(self) -> list[tuple[str, str]]:
        """(family, variant) of all that is run."""
        return [(f, v.name) for f, variants in self.chosen.items() for v in variants]

    def files(self, stage: str) -> list[str]:
        """All records of a stage, below `root`; a build that is not recorded of today's source is made here."""
        if stage == "build":
            variants = [v for chosen in self.chosen.values() for v in chosen]
            return [str(build.record_path(self.root, self.arch, v)) for v in variants]
        files = [layout.record(self.root, stage, self.gpu, *pair) for pair in self.pairs()]
        return [str(f) for f in files if self.live or f.is_file()]

    def compiled(self) -> list[str]:
        """The build records of all that is run, made here."""
        return [build for family in self.chosen for build in self.of(family).builds()]

    def sanitized(self) -> list[str]:
        """Records of compute-sanitizer: of all that is run, and where that is everything, of the oracle too."""
        everything = self.settings["families"] == self.settings["variants"] == "all"
        oracle = self.oracle().files("sanitize") if everything else []
        return [*self.files("sanitize"), *oracle]

    def campaign(self) -> str:
        """The campaign record: live results/campaign/<gpu>.json, else the recorded one."""
        return str(self.root / "campaign" / f"{self.gpu}.json")

    def code(self, stage: str) -> list[str]:
        """The modules that a stage's results depend on."""
        return layout.code(stage)

    def family_file(self, wildcards: Any) -> str:
        """The family's family.yaml, as a parameter: an input would rerun all variants with each new one."""
        return str(self.families[wildcards.family].file)

    def build_record(self, wildcards: Any) -> str:
        """The build record of a variant for this GPU's architecture."""
        return str(self._build(wildcards) / "record.json")

    def library(self, wildcards: Any) -> str:
        """The compiled variant for this GPU's architecture."""
        return str(self._build(wildcards) / "kernel.so")

    def recorded_build(self, wildcards: Any) -> str:
        """The recorded build record that serves where no nvcc is to be had; '' on a live campaign."""
        if self.live:
            return ""
        folder = layout.build_folder(self.root, wildcards.arch, wildcards.family, wildcards.variant)
        return str(folder / "record.json")

    def tuned(self) -> list[str]:
        """The heat maps of all searches: of the named variants with `tune`, else of all, drafts too."""
        everything = self.settings["variants"] == "all"
        pairs = [
            (name, v.name)
            for name, chosen in self.chosen.items()
            for v in (self.families[name].variants if everything else chosen)
            if v.tune
        ]
        return [str(layout.record(layout.RESULTS, "tune", self.gpu, *pair, ".png")) for pair in pairs]

    def tune_contract(self, wildcards: Any) -> str:
        """Hash of what a search depends on besides sources: the contract, the space and the timing policy."""
        family = self.of(wildcards.family)
        variant = family.family.variant(wildcards.variant)
        contracts = family.check_contract(), family.time_contract()
        return sha256_of(contracts, family.family.arguments, repr(variant.tune), dict(variant.memory))

    def _build(self, wildcards: Any) -> Path:
        return layout.build_folder(layout.RESULTS, self.arch, wildcards.family, wildcards.variant)

    def timer(self) -> str:
        """The compiled timing core."""
        return str(layout.RESULTS / "build" / self.arch / "timer.so")

    def tables(self) -> tuple[str, ...]:
        """Names of the tables."""
        return tuple(TABLES)

    def table_contract(self) -> str:
        """Hash of what the tables say besides the records: ladder, formulas, chosen cases."""
        files = [sha256_file(self.families[f].file) for f in self.chosen]
        return sha256_of(files, {f: self.cases[f] for f in self.chosen}, self.pairs())

    def tracking_uri(self) -> str:
        """The tracking store of the configuration; MLFLOW_TRACKING_URI takes precedence, at run time."""
        return str(self.settings["track"]["uri"])

    def tracking_store(self) -> str:
        """'gone' where the store was filled once and its file is no longer there: then it is filled again."""
        store = own_file(self.tracking_uri())
        filled = (layout.RESULTS / "track" / "mlflow.json").is_file()
        return "gone" if store and filled and not store.is_file() else "there"

    def figures(self) -> list[str]:
        """The figures (PNG) of all families."""
        return [f"results/figures/{family}/{name}.png" for family, name in self.drawn]

    def families_of_figures(self) -> dict[str, list[str]]:
        """For which families each figure is drawn."""
        figures = dict.fromkeys(figure for _, figure in self.drawn)
        return {figure: [f for f, name in self.drawn if name == figure] for figure in figures}

    def family_figures(self, wildcards: Any) -> list[str]:
        """The figures (PNG) of one family."""
        return [path for path in self.figures() if Path(path).parent.name == wildcards.family]

    def family_sources(self, wildcards: Any) -> list[str]:
        """The family's contract and the sources of its chosen variants."""
        files = dict.fromkeys(str(variant.file) for variant in self.chosen[wildcards.family])
        return [self.family_file(wildcards), *files]

    def sources(self, wildcards: Any) -> list[str]:
        """The variant's source and the shared headers it includes."""
        variant = self.families[wildcards.family].variant(wildcards.variant)
        return [str(variant.file), *map(str, variant.headers())]

    def reference(self, wildcards: Any) -> str:
        """The family's reference.py."""
        return str(self.families[wildcards.family].folder / "reference.py")

    def contract(self, wildcards: Any) -> str:
        """Hash of what compiling depends on besides the source: arguments, parameters, requirements."""
        family = self.families[wildcards.family]
        variant = family.variant(wildcards.variant)
        return sha256_of(family.arguments, dict(variant.parameters), variant.requires)

    def parameters(self, wildcards: Any) -> dict[str, int]:
        """The variant's parameters on this GPU: its entry's, or the best that a search found."""
        return dict(self.families[wildcards.family].variant(wildcards.variant).parameters)

    def of(self, family: str) -> FamilyPlan:
        """What the measuring rules are told of a family: of its chosen variants, else of all."""
        variants = self.chosen.get(family, self.families[family].variants)
        cases = self.cases.get(family, tuple(self.families[family].cases))
        return FamilyPlan(self.families[family], variants, cases, self.gpu, self.arch, self.settings)

    def measured(self) -> list[FamilyPlan]:
        """The families that have measuring rules: all, so that a target may name any of their records."""
        return [self.of(family) for family in self.families]


def make_plan(config: Mapping[str, Any], project: Path = Path()) -> Plan:
    """The plan for a configuration.

    Raises:
        WarplogError: an unknown key, family, variant, case or GPU, no GPU and no recorded campaign, or a path of
            the interpreter that no job can be started with.
    """
    if why := interpreter.unusable():
        raise WarplogError(f"{why}; {interpreter.REMEDY}")
    config = {key: typed(value) for key, value in config.items()}
    schema.check(config, "config", "config")
    settings: dict[str, Any] = {
        key: {**value, **config.get(key, {})} if isinstance(value, dict) else config.get(key, value)
        for key, value in DEFAULTS.items()
    }
    families = catalog.load([project / "kernels", *(Path(p) for p in settings["kernel_folders"])])
    chosen = choose_variants(settings["variants"], choose_families(settings["families"], families))
    cases = choose_cases(settings["cases"], families, chosen)
    drawn = choose_figures(chosen, families)
    found = None if settings["mode"] == "recorded" else device.detect()
    live = settings["mode"] == "live" or found is not None
    root = layout.RESULTS
    if live:
        gpu, arch = live_gpu(settings, found, project)
        message = f"live on {found.name if found else gpu} ({arch})"
    else:
        root, record = recorded_campaign(settings, project)
        gpu, arch = record["gpu"], record["arch"]
        why = "mode: recorded" if settings["mode"] == "recorded" else f"no GPU here ({device.why_not()})"
        message = (
            f"{why}: using the recorded campaign {record['campaign']}"
            f" ({record['gpu_name']}, {record['started'][:10]}, commit {record['commit'][:12] or 'unknown'})"
        )
    families |= tuned.with_winners({f: families[f] for f in chosen}, gpu)
    chosen = {
        name: tuple(families[name].variant(v.name) for v in variants) for name, variants in chosen.items()
    }
    return Plan(settings, families, chosen, cases, gpu, arch, live, root, message, drawn)
