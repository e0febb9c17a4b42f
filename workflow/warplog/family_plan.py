"""What the measuring rules are told of a family: files in the order of its chosen variants, cases and contracts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog import layout
from warplog.catalog import Family, Variant
from warplog.contract import Case
from warplog.records import sha256_of
from warplog.selection import captured


@dataclass(frozen=True)
class FamilyPlan:
    """A family on one GPU; `cases` are its timed cases, `settings` the campaign's configuration."""

    family: Family
    variants: tuple[Variant, ...]
    cases: Sequence[str]
    gpu: str
    arch: str
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The family's name."""
        return self.family.name

    def builds(self) -> list[str]:
        """The build records."""
        return [str(self._build(v) / "record.json") for v in self.variants]

    def libraries(self) -> list[str]:
        """The compiled variants."""
        return [str(self._build(v) / "kernel.so") for v in self.variants]

    def records(self, stage: str, suffix: str = ".json") -> list[str]:
        """The live records of a stage."""
        key = (layout.RESULTS, stage, self.gpu, self.name)
        return [str(layout.record(*key, v.name, suffix)) for v in self.variants]

    def log(self, stage: str) -> str:
        """The log of the family's job of a stage."""
        return f"results/logs/{stage.replace('.', '/')}/{self.gpu}/{self.name}.log"

    def campaign(self) -> str:
        """The live campaign record."""
        return f"results/campaign/{self.gpu}.json"

    def sources(self) -> list[str]:
        """The sources of all variants and the headers that they include."""
        files = (file for v in self.variants for file in (v.file, *v.headers()))
        return list(dict.fromkeys(map(str, files)))

    def reference(self) -> str:
        """The family's reference.py."""
        return str(self.family.folder / "reference.py")

    def job(self) -> dict[str, Any]:
        """Parameters that name the job; family.yaml is none of its inputs, or each new variant would rerun all."""
        names = [v.name for v in self.variants]
        memory = {v.name: dict(v.memory) for v in self.variants if v.memory}
        return {"family_file": str(self.family.file), "variants": names, "gpu": self.gpu, "memory": memory}

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

    def nsys_cases(self) -> dict[str, list[str]]:
        """The cases that nsys captures, by variant: of one that calls a library, every timed one."""
        every, wanted = list(self.cases), captured(self.family, self.cases)
        return {v.name: every if v.library else wanted for v in self.variants}

    def _build(self, variant: Variant) -> Path:
        return layout.build_folder(layout.RESULTS, self.arch, self.name, variant.name)


def _values(cases: Mapping[str, Case]) -> dict[str, Any]:
    return {name: dict(case.values) for name, case in cases.items()}
