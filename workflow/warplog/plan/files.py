"""The files of a campaign, which the rules take as inputs; methods that take `wildcards` are their input functions."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from warplog.catalog import order
from warplog.catalog.family import Family, Variant
from warplog.core import paths, store
from warplog.core.columns import PARQUET_ONLY, TABLES
from warplog.judge.summary.stage_results import StageResults, stage_results
from warplog.machine import device
from warplog.plan.plan import Plan
from warplog.records import door, stages
from warplog.records.build import GPUS, Chips
from warplog.records.stages import Stage
from warplog.tables.conclusions import ANALYSED
from warplog.tables.verified_records import build_record

RESULTS = paths.RESULTS


@dataclass(frozen=True)
class Files:
    """The files of what `plan` runs."""

    plan: Plan

    # Of the whole campaign

    def campaign(self) -> str:
        """Returns the campaign record."""
        return str(stages.START.at(self.plan.root, gpu=self.plan.gpu))

    def timer(self) -> str:
        """Returns the compiled timing core."""
        return str(stages.TIMER.at(RESULTS, arch=self.plan.arch))

    def tracer(self) -> str:
        """Returns the compiled tracer of accesses."""
        return str(stages.TRACER.at(RESULTS, arch=self.plan.arch))

    def tracer_sources(self) -> list[str]:
        """Returns the sources of the tracer."""
        return [paths.shown(path) for path in sorted((paths.PACKAGE / "measure" / "tracer").iterdir())]

    def gpus(self) -> list[str]:
        """Returns the files with the peak rates of known GPUs."""
        return [paths.shown(path) for path in device.gpu_files(self.plan.project)]

    def order(self) -> list[str]:
        """Returns the files that say in which order families are introduced."""
        return [paths.shown(path) for path in order.order_files(self.plan.folders)]

    def record_files(self, *wanted: Stage) -> list[str]:
        """Returns the files with the records of these stages for all chosen families.

        Of a recorded campaign, which may lack some, these are the archives that hold them.
        """
        held = (store.holder(path) for stage in wanted for path in self._places(stage, self.plan.chosen))
        return _distinct(file for file in held if self.plan.live or file.is_file())

    def records(self, stage: Stage) -> list[Path]:
        """Returns the records of a stage for all chosen families; recorded ones only if they exist."""
        places = self._places(stage, self.plan.chosen)
        return [path for path in places if self.plan.live or store.is_file(path)]

    def builds_of_all(self) -> list[str]:
        """Returns the files with the build records of everything that is run.

        In a run from a recorded campaign, that of a variant whose source differs from the recorded one is in results/,
        where the variant is compiled.
        """
        records = (record for of_family in self._build_records.values() for record in of_family)
        return _distinct(map(store.holder, records))

    def build_record(self, variant: Variant) -> Path:
        """Returns the build record of a variant: the recorded one if its source is unchanged, else that of this run.

        Raises:
            WarplogError: the recorded build record is not readable.
        """
        return build_record(self.plan.root, self.plan.arch, variant)

    def compiled(self) -> list[str]:
        """Returns the build records in results/ of everything that is run."""
        return [
            build for name in self.plan.chosen for build in self.plan.family_plan(name).builds("record.json")
        ]

    def sanitized(self) -> list[str]:
        """Returns the files with the records of compute-sanitizer, for `sanitized_records`."""
        return _distinct(map(store.holder, map(Path, self.sanitized_records())))

    def sanitized_records(self) -> list[str]:
        """Returns the records of compute-sanitizer, including the oracle's if all families and variants are chosen."""
        return _distinct(path for files in self._with_oracle() for path in files.records(stages.SANITIZE))

    def accesses(self) -> list[str]:
        """Returns the files with the records of traced accesses, likewise, and with those of the checks."""
        wanted = stages.ACCESSES, stages.CHECK
        return _distinct(file for files in self._with_oracle() for file in files.record_files(*wanted))

    def _with_oracle(self) -> "list[Files]":
        settings = self.plan.settings
        everything = settings.families == settings.variants == "all"
        return [self, *([Files(self.plan.oracle())] if everything else [])]

    def chips(self, _wildcards: Any = None) -> list[str]:
        """Returns the files with the records of builds for other chips, for `chip_records`."""
        return _distinct(map(store.holder, self.chip_records))

    @cached_property
    def chip_records(self) -> list[Path]:
        """The builds of each family for each architecture: recorded ones of these sources, else those of this run."""
        if self.plan.live:
            return [
                stages.FOR_CHIPS.at(RESULTS, arch=arch, family=name)
                for name in self.plan.chosen
                for arch in GPUS
            ]
        records = []
        for family, variants in self.plan.chosen.items():
            sources = {variant.name: variant.fingerprint() for variant in variants}
            for arch in GPUS:
                live, recorded = (
                    stages.FOR_CHIPS.at(root, arch=arch, family=family) for root in (RESULTS, self.plan.root)
                )
                builds = door.read(recorded, Chips).variants if store.is_file(recorded) else {}
                same = all(n in builds and builds[n].source_sha256 == own for n, own in sources.items())
                records.append(recorded if same else live)
        return records

    def duels(self, _wildcards: Any = None) -> list[str]:
        """Returns the files with the records of duels."""
        return self.record_files(stages.DUELS)

    def duels_on_pages(self, _wildcards: Any = None) -> list[str]:
        """Returns the table of duels if the campaign recorded them, since pages measure nothing."""
        recorded = not self.plan.live and self.records(stages.DUELS)
        return [str(stages.LIST_DUELS.at(RESULTS))] if recorded else []

    def chips_on_pages(self, _wildcards: Any = None) -> list[str]:
        """Returns the table of builds for other chips if the campaign recorded them, since pages compile nothing."""
        recorded = not self.plan.live and all(
            path.is_relative_to(self.plan.root) for path in self.chip_records
        )
        return [str(stages.CHIPS.at(RESULTS))] if recorded else []

    def accesses_analysed(self, _wildcards: Any = None) -> list[str]:
        """Returns the table of traced accesses if the campaign recorded them, since the analysis traces nothing."""
        recorded = not self.plan.live and self.records(stages.ACCESSES)
        return [str(stages.LIST_ACCESSES.at(RESULTS))] if recorded else []

    def timelines(self) -> list[str]:
        """Returns the records of timelines to capture, for families with a chosen variant that has one."""
        families = [name for name in self.plan.chosen if self.plan.family_plan(name).with_marks().variants]
        return [str(path) for path in self._places(stages.TIMELINE, families) if self.plan.live]

    def tuned(self) -> list[str]:
        """Returns the heat maps of the parameter searches: of the chosen variants with a `tune` entry.

        If `variants` is 'all', drafts are included.
        """
        plan, everything = self.plan, self.plan.settings.variants == "all"
        return [
            str(stages.TUNED.at(RESULTS, gpu=plan.gpu, family=name, variant=variant.name))
            for name, chosen in plan.chosen.items()
            for variant in (plan.families[name].variants if everything else chosen)
            if variant.tune
        ]

    def tables(self, *more: str, suffix: str = "parquet") -> list[str]:
        """Returns the files of the tables that `make_tables` writes, and of those named in `more`."""
        left_out = PARQUET_ONLY if suffix == "csv" else ()
        names = [name for name in (*TABLES, *more) if name not in left_out]
        return [str(RESULTS / "tables" / f"{name}.{suffix}") for name in names]

    def recorded_ceilings(self) -> list[Path]:
        """Returns the tables of ceilings of recorded campaigns of this GPU: of the project, of warplog, and its own.

        A campaign that was recorded is the last, since its own ceilings count, also those of families not chosen now.
        """
        tables = stages.CLAIMS.at(Path()).with_name("ceilings.parquet")
        roots = {
            root.resolve(): root
            for place in (paths.HOME, self.plan.project, Path())
            for root in sorted((place / paths.RECORDED).glob("[!.]*"))
            if stages.START.at(root, gpu=self.plan.gpu).is_file() and (root / tables).is_file()
        }
        own = self.plan.root.resolve()
        return [roots[real] / tables for real in sorted(roots, key=lambda real: real == own)]

    def concluded(self) -> list[str]:
        """Returns the files of the tables of conclusions that are drawn from others without family.yaml."""
        return [str(RESULTS / "tables" / f"{kind.TABLE}.parquet") for kind in ANALYSED]

    def figures(self) -> list[str]:
        """Returns the folders of figures, one per family."""
        return [str(stages.FIGURES.at(RESULTS, family=name)) for name in self.plan.chosen]

    def all_page_sources(self) -> list[str]:
        """Returns the files that the pages of all families quote."""
        return _distinct(file for name in self.plan.chosen for file in self._quoted(name))

    @cached_property
    def tried(self) -> list[Family]:
        """The families whose references are tried: all that are measured, else those that are not as recorded.

        A run from a recorded campaign executes no code of the others.
        """
        return [
            self.plan.families[name]
            for name, records in self._build_records.items()
            if self.plan.live or not all(record.is_relative_to(self.plan.root) for record in records)
        ]

    def references(self) -> list[str]:
        """Returns the reference.py of the families to try."""
        return [str(family.folder / "reference.py") for family in self.tried]

    def trial(self) -> list[str]:
        """Returns the file that is written when the references were tried; [] if there are none to try."""
        return [str(stages.TRIAL.at(RESULTS))] if self.tried else []

    def stage_results(self) -> StageResults:
        """Returns what the records say about the chosen variants.

        Raises:
            WarplogError: a file of records is damaged.
        """
        return stage_results(self.plan.root, self.plan.arch, self.plan.gpu, self.plan.chosen)

    # Of one family or variant

    def sources(self, wildcards: Any) -> list[str]:
        """Returns the variant's source and the headers that it includes."""
        variant = self.plan.families[wildcards.family].variant(wildcards.variant)
        return [str(variant.file), *map(str, variant.headers())]

    def family_sources(self, wildcards: Any) -> list[str]:
        """Returns the sources and headers of the family's variants."""
        return self.plan.family_plan(wildcards.family).sources()

    def page_sources(self, wildcards: Any) -> list[str]:
        """Returns the files that a page about the family quotes: family.yaml, sources and headers of its variants."""
        return self._quoted(wildcards.family)

    def reference(self, wildcards: Any) -> str:
        """Returns the family's reference.py."""
        return str(self.plan.families[wildcards.family].folder / "reference.py")

    def builds(self, wildcards: Any) -> list[str]:
        """Returns the build records of the family's variants."""
        return self.plan.family_plan(wildcards.family).builds("record.json")

    def libraries(self, wildcards: Any) -> list[str]:
        """Returns the compiled variants of the family."""
        return self.plan.family_plan(wildcards.family).builds("kernel.so")

    def builds_with_timeline(self, wildcards: Any) -> list[str]:
        """Returns the build records, without marks, of the variants that have a timeline."""
        return self.plan.family_plan(wildcards.family).with_marks().builds("record.json")

    def libraries_with_timeline(self, wildcards: Any) -> list[str]:
        """Returns the libraries, without marks, of the variants that have a timeline."""
        return self.plan.family_plan(wildcards.family).with_marks().builds("kernel.so")

    def marked_builds(self, wildcards: Any) -> list[str]:
        """Returns the records of the builds with marks of a family."""
        return self.plan.family_plan(wildcards.family).with_marks().marked_builds("record.json")

    def marked_libraries(self, wildcards: Any) -> list[str]:
        """Returns the libraries with marks of a family."""
        return self.plan.family_plan(wildcards.family).with_marks().marked_builds("kernel.so")

    def _quoted(self, family: str) -> list[str]:
        files = (path for v in self.plan.chosen[family] for path in (v.file, *v.headers()))
        return _distinct((self.plan.families[family].file, *files))

    def _places(self, stage: Stage, families: Collection[str]) -> list[Path]:
        return [stage.at(self.plan.root, gpu=self.plan.gpu, family=name) for name in families]

    @cached_property
    def _build_records(self) -> dict[str, list[Path]]:
        """The build records of everything that is run, by family; finding them reads the recorded ones."""
        return {name: [self.build_record(v) for v in variants] for name, variants in self.plan.chosen.items()}


def _distinct(files: Iterable[str | Path]) -> list[str]:
    return list(dict.fromkeys(map(str, files)))
