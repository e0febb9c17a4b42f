"""Record of stage chips: the variants of a family, compiled for one architecture without its GPU."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from warplog.records.fields import Arch, Count, Frozen, Language, Name, Sha256, Status, Text

# The architectures that are compiled for, with GPUs that have them.
GPUS: Mapping[str, str] = {
    "sm_80": "A100",
    "sm_89": "RTX 4090, L40S, L4",
    "sm_90": "H100, H200",
    "sm_100": "B200",
    "sm_120": "RTX 5090",
}


class NeedsArch(Frozen, tag_field="code", tag="needs_arch", frozen=True, kw_only=True):
    """The variant requires this architecture: exactly that one if it ends in `a`, else that one or a later."""

    requires: Text


class CompiledLater(Frozen, tag_field="code", tag="compiled_later", frozen=True, kw_only=True):
    """The kernel is compiled when it runs on the GPU, by the compiler of its language."""

    language: Language


class CompiledAlready(Frozen, tag_field="code", tag="compiled_already", frozen=True, kw_only=True):
    """The variant is a library that is compiled already."""


Obstacle = NeedsArch | CompiledLater | CompiledAlready


class ChipKernel(Frozen, frozen=True, kw_only=True):
    """Resources of one kernel, as ptxas reports them; stack and spills are per thread."""

    kernel: Text
    registers_per_thread: Count
    static_shared_bytes: Count
    stack_bytes: Count
    spill_store_bytes: Count | None
    spill_load_bytes: Count | None


class ChipBuild(Frozen, frozen=True, kw_only=True):
    """A variant, compiled to machine code of one architecture.

    Attributes:
        obstacle: why the status is unsupported; else None.
        error: the first error of the compiler; "" for none.
        target: architecture that nvcc compiled for, such as sm_90a; "" if it did not.
        source_sha256: fingerprint of source, headers and parameters.
        inputs_sha256: hash of everything that the build depends on.
        seconds: wall time of the compiler.
    """

    status: Status
    obstacle: Obstacle | None = None
    error: Text = ""
    target: Text = ""
    source_sha256: Sha256
    inputs_sha256: Sha256
    seconds: float = 0.0
    kernels: tuple[ChipKernel, ...] = ()


class Chips(Frozen, tag_field="stage", tag="chips", frozen=True, kw_only=True):
    """The builds of a family's variants for one architecture; `nvcc` is the version of the compiler."""

    schema: Literal[2] = 2
    arch: Arch
    family: Name
    nvcc: Text
    variants: Annotated[Mapping[Name, ChipBuild], Meta(max_length=1000)]
