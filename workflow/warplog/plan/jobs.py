"""The parameters of jobs. Snakemake passes them as plain values, and runs a job again if they change.

`contract` hashes what a job depends on besides its files and the other parameters.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

from warplog.records.fields import Frozen
from warplog.records.settings import (
    CheckSettings,
    ProfileSettings,
    SanitizeSettings,
    TimelineSettings,
    TimeSettings,
    TuneSettings,
)

Cases = Mapping[str, tuple[str, ...]]  # by variant
Settings = TypeVar("Settings")


class TrialJob(Frozen, frozen=True, kw_only=True):
    """Tries the references of families."""

    family_files: tuple[str, ...]
    contract: str


class BuildJob(Frozen, frozen=True, kw_only=True):
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


CheckJob = FamilyJob[CheckSettings]
SanitizeJob = FamilyJob[SanitizeSettings]
TimelineJob = FamilyJob[TimelineSettings]


class TimeJob(FamilyJob[TimeSettings], frozen=True, kw_only=True):
    """Times variants."""

    cases: tuple[str, ...]


class ProfileJob(FamilyJob[ProfileSettings], frozen=True, kw_only=True):
    """Captures variants with ncu or nsys."""

    cases: Cases


class ExtractJob(Frozen, frozen=True, kw_only=True):
    """Reads the reports of ncu and nsys; the captured cases of each."""

    ncu: Cases
    nsys: Cases
