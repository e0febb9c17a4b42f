"""The plan as data, and the other parameters of jobs.

Snakemake passes them as plain values, and runs a job again if they change. `contract` hashes what a job depends on
besides its files and the other parameters.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, Literal, TypeVar

from warplog.core.hashing import sha256_file, sha256_of
from warplog.measure.building.job import BuildJob
from warplog.records import door
from warplog.records.config import (
    AccessSettings,
    CheckSettings,
    Config,
    ProfileSettings,
    SanitizeSettings,
    TimelineSettings,
    TimeSettings,
    TuneSettings,
)
from warplog.records.fields import Arch, Frozen, Name, Slug
from warplog.records.remarks import TuneRemark

Cases = Mapping[str, tuple[str, ...]]  # by variant
Settings = TypeVar("Settings")


class Decided(Frozen, frozen=True, kw_only=True):
    """What was decided for a variant on this GPU: its parameters, and remarks on them."""

    parameters: Mapping[str, int]
    remarks: tuple[TuneRemark, ...]


class Decisions(Frozen, frozen=True, kw_only=True):
    """What is run. The families are not included: jobs load them again from their files.

    Attributes:
        folders: folders in which families were found.
        chosen: the variants that are run, by family.
        cases: timed cases of each family.
        gpu: slug of the GPU; arch: architecture to compile for.
        live: whether the campaign measures.
        root: folder of the records.
        project: folder of kernels/ and config/.
    """

    folders: tuple[str, ...]
    chosen: Mapping[Name, Mapping[Name, Decided]]
    cases: Mapping[Name, tuple[str, ...]]
    gpu: Slug
    arch: Arch
    live: bool
    root: str
    project: str


class PlanRecord(Frozen, frozen=True, kw_only=True):
    """The whole plan.

    Attributes:
        decisions: what is run.
        settings: the configuration.
        message: which GPU or campaign is used.
        drawn: figures of each family; one that has nothing to show in the tables is not drawn.
    """

    schema: Literal[2] = 2
    decisions: Decisions
    settings: Config
    message: str
    drawn: Mapping[Name, tuple[str, ...]]


class TrialJob(Frozen, frozen=True, kw_only=True):
    """Tries the references of families."""

    family_files: tuple[str, ...]
    contract: str


class BuildParameters(Frozen, frozen=True, kw_only=True):
    """Compiles a variant.

    Attributes:
        recorded: the recorded build record to use if nvcc is missing; "" if there is none.
        attempt: differs from that of a failed build, so that it runs again.
    """

    family_file: str
    parameters: Mapping[str, int]
    contract: str
    recorded: str
    attempt: int

    def job(self, variant: str, arch: str, folder: Path, version: int) -> BuildJob:
        """Returns the job that builds `variant` for `arch` in `folder`; `version` is that of the stage."""
        return BuildJob(
            family_file=Path(self.family_file),
            variant=variant,
            parameters=self.parameters,
            arch=arch,
            folder=folder,
            attempt=self.attempt,
            contract=sha256_of(version, self.contract),
            recorded=Path(self.recorded) if self.recorded else None,
        )


class ChipsJob(Frozen, frozen=True, kw_only=True):
    """Compiles variants of a family for another architecture; their parameters are those of this campaign."""

    family_file: str
    variants: Mapping[str, Mapping[str, int]]
    contract: str


class TuneJob(Frozen, frozen=True, kw_only=True):
    """Searches the best parameters of a variant."""

    family_file: str
    arch: str
    contract: str
    settings: TuneSettings
    time: TimeSettings


class FamilyJob(Frozen, Generic[Settings], frozen=True, kw_only=True):
    """Measures variants of a family; `memory` says which of their arrays are in host memory.

    family.yaml is a parameter instead of an input; otherwise adding a variant would run all others again.
    """

    family_file: str
    variants: tuple[str, ...]
    memory: Mapping[str, Mapping[str, str]]
    contract: str
    settings: Settings

    def inputs_sha256(self, version: int, files: Sequence[Path]) -> str:
        """Returns the hash of what all variants depend on: the version of the stage, these files and the parameters."""
        return sha256_of(
            version, [sha256_file(file) for file in files], self.contract, door.plain(self.settings)
        )


CheckJob = FamilyJob[CheckSettings]
SanitizeJob = FamilyJob[SanitizeSettings]
TimelineJob = FamilyJob[TimelineSettings]
DuelJob = FamilyJob[None]


class TimeJob(FamilyJob[TimeSettings], frozen=True, kw_only=True):
    """Times variants."""

    cases: tuple[str, ...]


class ProfileJob(FamilyJob[ProfileSettings], frozen=True, kw_only=True):
    """Captures variants with ncu or nsys."""

    cases: Cases


class AccessJob(FamilyJob[AccessSettings], frozen=True, kw_only=True):
    """Traces the accesses of variants; `counted` says whether ncu counts the same launches."""

    counted: bool


class ExtractJob(Frozen, frozen=True, kw_only=True):
    """Reads the reports of ncu and nsys; the captured cases of each."""

    ncu: Cases
    nsys: Cases
