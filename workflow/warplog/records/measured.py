"""What the records of all measuring stages share: identity, provenance, and the state of each case."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from warplog.records.fields import CaseName, Count, Frozen, Name, Origin, Sha256, Slug, Status, Text


class Provenance(Frozen, frozen=True, kw_only=True):
    """Code, machine and tools of a job, recorded by the job itself; "" for what is unknown."""

    gpu_name: Text
    gpu_uuid: Text
    compute_capability: Text
    driver: Text
    cuda_driver: Annotated[Text, Meta(description="Newest CUDA version that the driver supports")]
    cuda_runtime: Text
    commit: Text
    content_sha256: Annotated[Sha256, Meta(description="Hash of code, kernels and configuration")]
    finished: Annotated[Text, Meta(description="End of the job, ISO 8601 UTC")]
    python: Text
    cupy: Text
    nvcc: Text
    ncu: Text
    nsys: Text
    clocks: Annotated[Text, Meta(description="unlocked, or the frequency they were locked to")]


class Session(Frozen, frozen=True, kw_only=True):
    """Facts that a worker recorded about itself; None for what its mode does not have."""

    cupy: Text = ""
    cuda_runtime: Text = ""
    start_seconds: float = 0.0
    empty_us: Annotated[float | None, Meta(description="The empty interval of the timing core")] = None
    seed: Annotated[Count | None, Meta(description="Seed of the order and of the addresses")] = None


class Case(Frozen, frozen=True, kw_only=True):
    """What a stage says of a case.

    Attributes:
        reason: why the status is not ok, in words that are only shown; "" if it is ok.
        own_limits: of an unsupported case, the upper limits of the variant that it exceeds, by parameter, if nothing
            else keeps it from the case.
        seconds: wall time of the case; None if it did not run.
    """

    case: CaseName
    status: Status
    reason: Text
    own_limits: Mapping[str, int | float] = field(default_factory=dict)
    seconds: float | None = None


class Identity(Frozen, tag_field="stage", frozen=True, kw_only=True):
    """Which record this is, and whether it is ok."""

    schema: Literal[2] = 2
    family: Name
    variant: Name
    status: Status
    reason: Text
    origin: Annotated[Origin, Meta(description="live: measured by this installation")]


class OfGpu(Identity, tag_field="stage", frozen=True, kw_only=True):
    """An entry of the record of a family on one GPU."""

    gpu: Slug


class Measured(OfGpu, tag_field="stage", frozen=True, kw_only=True):
    """An entry of a stage that runs on the GPU.

    Attributes:
        source_sha256: fingerprint of source, headers and parameters.
        library_sha256: the library that ran; "" if there is none.
        inputs_sha256: hash of everything that the record depends on; "" if unknown.
        cases: what it says of each case, or their names.
    """

    source_sha256: Sha256
    library_sha256: Sha256
    provenance: Provenance
    inputs_sha256: Sha256 = ""
    cases: tuple[Case, ...] | tuple[CaseName, ...]


def worst(statuses: Iterable[Status]) -> Status:
    """Returns the first status that is neither 'ok' nor 'skipped', else 'skipped' if there is one, else 'ok'."""
    others = [status for status in statuses if status != "ok"]
    return next((status for status in others if status != "skipped"), others[0] if others else "ok")


def only_if_ok(case: Case, *results: str) -> None:
    """Checks that a case has each of the named results if its status is ok, and none of them otherwise.

    Raises:
        ValueError: It has not.
    """
    for name in results:
        if (getattr(case, name) is not None) != (case.status == "ok"):
            raise ValueError(
                f"{name}: a case has it if and only if its status is ok, and that is {case.status}"
            )


class Absent(Frozen, frozen=True, kw_only=True):
    """No record, and why: it is missing, or damaged, misplaced or of another GPU (error)."""

    status: Literal["missing", "error"]
    reason: Text
