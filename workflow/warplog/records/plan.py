"""The plan of a run as data: a parameter of jobs, and results/plan.json for jobs on other machines."""

from collections.abc import Mapping
from typing import Literal

from warplog.records.config import Config
from warplog.records.fields import Arch, Frozen, Name, Slug


class Decided(Frozen, frozen=True, kw_only=True):
    """What was decided for a variant on this GPU: its parameters, and remarks on them."""

    parameters: Mapping[str, int]
    remarks: tuple[Mapping[str, int | str], ...]


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
        drawn: figures of each family.
    """

    schema: Literal[2] = 2
    decisions: Decisions
    settings: Config
    message: str
    drawn: Mapping[Name, tuple[str, ...]]
