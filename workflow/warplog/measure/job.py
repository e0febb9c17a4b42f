"""Measuring jobs: what is needed to measure one variant of a family on one GPU."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, Literal, TypedDict, TypeVar

from warplog.catalog.family import Family, Variant
from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_of
from warplog.measure import provenance
from warplog.records import door
from warplog.records.build import Build
from warplog.records.campaign import Campaign, Gpu
from warplog.records.fields import Status
from warplog.records.measured import Provenance, Session

Refusal = tuple[Status, str]  # status and reason
Settings = TypeVar("Settings")


class Head(TypedDict):
    """What the records of all measuring stages share."""

    family: str
    variant: str
    status: Status
    reason: str
    gpu: str
    origin: Literal["live"]
    source_sha256: str
    library_sha256: str
    provenance: Provenance
    inputs_sha256: str


@dataclass(frozen=True)
class Job(Generic[Settings]):
    """One stage of one variant on one GPU.

    Attributes:
        build_folder: contains the variant's kernel.so and build record.
        record: file with the family's records of this stage; the jobs of all its variants share it.
        scratch: folder of the journal while the job runs.
        settings: the stage's settings.
        tools: versions by tool, for the provenance.
        commit: commit of the checkout, for the provenance.
        campaign: name of the campaign.
        content_sha256: hash of code, kernels and configuration, for the provenance.
        backend: array library of the worker, see worker.backend.
        inputs_sha256: hash of the inputs besides the build; "" if unknown: then the variant is always measured.
    """

    family: Family
    variant: Variant
    gpu: Gpu
    build_folder: Path
    record: Path
    scratch: Path
    settings: Settings
    tools: Mapping[str, str | None]
    commit: str
    content_sha256: str
    backend: str = "cupy"
    inputs_sha256: str = ""
    campaign: str = ""

    @cached_property
    def build(self) -> Build:
        """The build record.

        Raises:
            WarplogError: It is missing or invalid.
        """
        return door.read(self.build_folder / "record.json", Build)

    @property
    def library(self) -> Path:
        """What the worker loads: the compiled library, or the module of a Python variant.

        Raises:
            WarplogError: The module differs from the one that was built.
        """
        if not self.variant.is_python:
            return self.build_folder / "kernel.so"
        if self.build.source_sha256 != self.variant.fingerprint():
            raise WarplogError(f"{self.variant.file}: it or a module that it imports changed; run again")
        return self.variant.file

    def misfit(self, case: str) -> str:
        """Returns why the variant does not support a case; '' if it does."""
        return self.variant.requires.why_not_case(self.family.case(case))

    def fitting(self, cases: Iterable[str]) -> tuple[str, ...]:
        """Returns the cases that the variant supports."""
        return tuple(c for c in cases if not self.misfit(c))

    def head(
        self, session: Session, outcome: Refusal, inputs_sha256: str = "", source_sha256: str = ""
    ) -> Head:
        """Returns what the records of all measuring stages share.

        Args:
            session: holds the worker's versions.
            outcome: status and reason.
            inputs_sha256: hash of everything that the record depends on; "" if unknown.
            source_sha256: the source, if the record is not about one build.
        """
        return {
            "family": self.family.name,
            "variant": self.variant.name,
            "status": outcome[0],
            "reason": outcome[1],
            "gpu": self.gpu.slug,
            "origin": "live",
            "source_sha256": source_sha256 or self.build.source_sha256,
            "library_sha256": "" if source_sha256 else self.build.library_sha256,
            "provenance": provenance.of_job(self.gpu, self.tools, self.commit, self.content_sha256, session),
            "inputs_sha256": inputs_sha256,
        }


def make_jobs(
    *,
    family: Family,
    variants: Sequence[str],
    gpu: Gpu,
    builds: Sequence[Path],
    campaign: Path,
    settings: Settings,
    record: Path,
    inputs_sha256: str = "",
) -> list[Job[Settings]]:
    """Returns the jobs of one stage for variants of a family.

    Args:
        family: the family.
        variants: names of the variants, in the order in which they are measured.
        gpu: the board that measures the family (family_board), or that of a campaign record.
        builds: record.json of each variant's build, in the same order; kernel.so is beside it.
        campaign: the campaign record; provides the tools' versions, and the commit if the configuration names one or
            outside of a git checkout.
        settings: the stage's settings.
        record: the family's record file of this stage. Its records with unchanged inputs are kept. Folders for
            unfinished work are created beside it.
        inputs_sha256: hash of the inputs that all variants share, such as settings, contract, campaign and code; a
            job's hash includes its variant's memory, too. "" if unknown: then all variants are measured.

    Raises:
        WarplogError: The campaign record is invalid, or the family has no such variant.
    """
    started = door.read(campaign, Campaign)
    project = paths.project()
    commit = provenance.commit_in(started, project)
    content = provenance.content_sha256(project)
    return [
        Job(
            family=family,
            variant=variant,
            gpu=gpu,
            build_folder=build.parent,
            record=record,
            scratch=record.with_name(f".{family.name}.{variant.name}.work"),
            settings=settings,
            tools=started.tools,
            commit=commit,
            content_sha256=content,
            campaign=started.campaign,
            inputs_sha256=inputs_sha256 and sha256_of(inputs_sha256, dict(variant.memory)),
        )
        for variant, build in zip(map(family.variant, variants), builds, strict=True)
    ]
