"""Inputs, outputs and parameters of the rules that process one family."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warplog.catalog.contract import Case
from warplog.catalog.family import Family, Variant
from warplog.core import paths
from warplog.core.hashing import sha256_of
from warplog.plan.jobs import Cases, FamilyJob
from warplog.plan.selection import captured
from warplog.records import door, stages
from warplog.records.config import Config


@dataclass(frozen=True)
class FamilyPlan:
    """What is run of one family on one GPU.

    Attributes:
        variants: the chosen variants, in ladder order; files and parameters follow this order.
        cases: the timed cases.
        gpu: slug of the GPU; arch: the architecture to compile for.
        settings: the configuration of the campaign.
    """

    family: Family
    variants: tuple[Variant, ...]
    cases: Sequence[str]
    gpu: str
    arch: str
    settings: Config

    def builds(self, name: str) -> list[str]:
        """Returns the file `name` ("record.json", "kernel.so") from the build folder of each variant."""
        return self._beside(stages.BUILD, name)

    def sources(self) -> list[str]:
        """Returns the sources of all variants and the headers that they include, without duplicates."""
        files = (file for v in self.variants for file in (v.file, *v.headers()))
        return list(dict.fromkeys(map(str, files)))

    def job(self, kind: Callable[..., FamilyJob[Any]], **own: Any) -> object:
        """Returns the parameters of a measuring job as plain values; `own` are those of its kind."""
        job = kind(
            family_file=str(self.family.file),
            variants=tuple(v.name for v in self.variants),
            memory={v.name: v.memory for v in self.variants if v.memory},
            **own,
        )
        return door.plain(job)

    def check_contract(self) -> str:
        """Returns the hash of what checking depends on for all variants: cases, tolerance and settings."""
        family = self.family
        bounds = door.plain((family.tolerance, family.tolerances))
        return sha256_of(_values(family, family.check_cases), *bounds, door.plain(self.settings.check))

    def time_contract(self) -> str:
        """Returns the hash of what timing depends on for all variants: cases, settings, `measuring` in family.yaml."""
        values, settings = _values(self.family, self.family.cases), door.plain(self.settings.time)
        return sha256_of(values, settings, self.family.measuring)

    def duel_contract(self) -> str:
        """Returns the hash of what duels depend on for all variants: cases and `measuring` in family.yaml."""
        return sha256_of(_values(self.family, self.family.cases), self.family.measuring)

    def with_marks(self) -> "FamilyPlan":
        """Returns the plan of the variants that have a timeline."""
        return replace(self, variants=tuple(v for v in self.variants if v.name in self.family.timeline))

    def marked_builds(self, name: str) -> list[str]:
        """Returns the file `name` from the folder of each variant's build with marks."""
        return self._beside(stages.MARKED, name)

    def timeline_contract(self) -> str:
        """Returns the hash of what timelines depend on for all variants: their cases and settings."""
        cases = {name: dict(self.family.case(case).values) for name, case in self.family.timeline.items()}
        return sha256_of(cases, door.plain(self.settings.timeline))

    def access_contract(self) -> str:
        """Returns the hash of the cases whose accesses are traced, by variant."""
        family = self.family
        cases = {v.name: {name: family.case(name) for name in family.traced_cases(v)} for v in self.variants}
        return sha256_of({variant: _values(family, of_variant) for variant, of_variant in cases.items()})

    def captured_cases(self) -> Cases:
        """Returns the cases that ncu captures, by variant."""
        cases = captured(self.family, self.cases)
        return {v.name: cases for v in self.variants}

    def traced_cases(self) -> Cases:
        """Returns the cases that nsys captures, by variant: those of ncu, or all timed ones if it calls a library."""
        timed, profiled = tuple(self.cases), captured(self.family, self.cases)
        return {v.name: timed if v.library else profiled for v in self.variants}

    def _beside(self, stage: stages.Stage, name: str) -> list[str]:
        """Returns the file `name` beside the build record of each variant."""
        keys = ({"arch": self.arch, "family": v.family, "variant": v.name} for v in self.variants)
        return [str(stage.at(paths.RESULTS, **key).with_name(name)) for key in keys]


def _values(family: Family, cases: Mapping[str, Case]) -> dict[str, dict[str, float | str]]:
    """Returns the parameters of each case, and the element types of arrays for which they depend on the case."""
    by_case = [argument for argument in family.arguments if argument.dtypes]
    return {
        name: dict(case.values) | {argument.name: family.dtype(argument, case) for argument in by_case}
        for name, case in cases.items()
    }
