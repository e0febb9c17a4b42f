"""Inputs, outputs and parameters of the rules that work on one family."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warplog.catalog.contract import Case
from warplog.catalog.family import Family, Variant
from warplog.core import paths
from warplog.core.records import sha256_of
from warplog.plan.selection import captured


@dataclass(frozen=True)
class FamilyPlan:
    """A family on one GPU.

    Attributes:
        variants: the chosen ones, in ladder order; files and parameters follow this order.
        cases: the timed cases.
        settings: the campaign's configuration.
    """

    family: Family
    variants: tuple[Variant, ...]
    cases: Sequence[str]
    gpu: str
    arch: str
    settings: Mapping[str, Any]

    def builds(self, name: str) -> list[str]:
        """The file called `name` ("record.json", "kernel.so") of each variant's build."""
        folders = (paths.build_folder(paths.RESULTS, self.arch, v.family, v.name) for v in self.variants)
        return [str(folder / name) for folder in folders]

    def sources(self) -> list[str]:
        """The sources of all variants and the headers that they include."""
        files = (file for v in self.variants for file in (v.file, *v.headers()))
        return list(dict.fromkeys(map(str, files)))

    def job(self, stage: str, **more: Any) -> dict[str, Any]:
        """Parameters of a measuring job.

        family.yaml is a parameter and no input, since each new variant would rerun the others otherwise. What a
        stage takes from it is hashed into `contract`.
        """
        return {
            "family_file": str(self.family.file),
            "variants": [v.name for v in self.variants],
            "memory": {v.name: dict(v.memory) for v in self.variants if v.memory},
            "settings": self.settings[stage],
            **more,
        }

    def check_contract(self) -> str:
        """Hash of what checking depends on for all variants: cases, tolerance and policy."""
        family = self.family
        return sha256_of(_values(family.check_cases), dict(family.tolerance), self.settings["check"])

    def time_contract(self) -> str:
        """Hash of what timing depends on: cases and policy."""
        return sha256_of(_values(self.family.cases), self.settings["time"], self.family.measuring)

    def captured_cases(self) -> dict[str, list[str]]:
        """The cases that ncu captures, by variant."""
        wanted = captured(self.family, self.cases)
        return {v.name: wanted for v in self.variants}

    def traced_cases(self) -> dict[str, list[str]]:
        """The cases that nsys captures, by variant: every timed case of a variant that calls a library."""
        every, wanted = list(self.cases), captured(self.family, self.cases)
        return {v.name: every if v.library else wanted for v in self.variants}


def _values(cases: Mapping[str, Case]) -> dict[str, Any]:
    return {name: dict(case.values) for name, case in cases.items()}
