"""Records of builds: how a variant was compiled, and the resources of its kernels; also for chips that are not here."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import asdict

from warplog.records.fields import Arch, Count, Frozen, Language, Name, Sha256, Status, Text, Versions
from warplog.records.measured import Identity

Defined = Mapping[str, int | float | str | None]


class Compiled(Frozen, frozen=True, kw_only=True):
    """The keys `compile` of family and variant together.

    Attributes:
        include: folders of headers, relative to the folder of family.yaml.
        flags: words for nvcc.
        defines: macros; None stands for one without a value, text is used as it is written.
        std: the C++ standard; None for 17.
        link: shared libraries by short name, such as "cuda" or "cublas".
        sources: further sources, relative to the folder of family.yaml.
        fast_math: whether nvcc gets --use_fast_math.
    """

    include: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    defines: Defined = field(default_factory=dict)
    std: int | None = None
    link: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    fast_math: bool = False

    def record(self) -> dict[str, object]:
        """Returns what was asked for, as JSON holds it; {} if nothing was."""
        options = {name: value for name, value in asdict(self).items() if value not in (None, False, (), {})}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}

    def options(self) -> list[str]:
        """Returns the options for nvcc, without folders, libraries and sources."""
        fast = ["--use_fast_math"] if self.fast_math else []
        macros = [f"-D{n}" if value is None else f"-D{n}={value}" for n, value in self.defines.items()]
        return [*fast, *self.flags, *macros]

    def text(self) -> str:
        """Returns what differs from how other variants are compiled, for people; '' if nothing does."""
        standard = [f"-std=c++{self.std}"] if self.std else []
        include = [f"-I{folder}" for folder in self.include]
        link = [f"-l{name}" for name in self.link]
        return " ".join([*standard, *self.options(), *include, *self.sources, *link])


class KernelCode(Frozen, frozen=True, kw_only=True):
    """Resources of one kernel; None for what the compiler does not report.

    Attributes:
        dynamic_shared_bytes: shared memory that Triton requests at the launch.
        spill_store_bytes, spill_load_bytes: per thread; unknown of a library that was compiled already.
        opcodes: static instruction count per SASS opcode.
    """

    kernel: Text
    mangled: Text
    registers_per_thread: Count
    static_shared_bytes: Count
    dynamic_shared_bytes: Count | None = None
    constant_bytes: int | None
    stack_bytes: Count
    spill_store_bytes: Count | None
    spill_load_bytes: Count | None
    barriers: Count
    sass_instructions: Count
    opcodes: Mapping[str, Count]


class Build(Identity, tag="build", frozen=True, kw_only=True):
    """The build of a variant.

    Attributes:
        source_sha256: fingerprint of source, headers and parameters.
        library_sha256: "" if there is no library.
        parameters: compile-time parameters.
        seconds: wall time of the compiler.
        compiler_output: output of the compiler if it failed.
        attempt: number of this build; the next one has another number if it failed.
        inputs_sha256: hash of what the build depends on; "" if unknown: then the next job builds again.
        dependencies: SHA-256 of the files that nvcc read, by path relative to the project, without those of CUDA and
            the system.
    """

    arch: Arch
    language: Language = "cuda"
    source_sha256: Sha256
    library_sha256: Sha256 = ""
    parameters: Mapping[str, int]
    compile: Compiled = Compiled()
    command: tuple[Text, ...]
    seconds: float
    tools: Versions
    compiler_output: Text = ""
    attempt: int = 1
    inputs_sha256: Sha256 = ""
    dependencies: Annotated[Mapping[str, Sha256], Meta(max_length=10_000)] = field(default_factory=dict)
    kernels: tuple[KernelCode, ...] = ()

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Source, library, status and reason: two builds with the same are measured alike."""
        return self.source_sha256, self.library_sha256, self.status, self.reason

    def __post_init__(self) -> None:
        """Checks that a build with status ok names its library."""
        if self.status == "ok" and not self.library_sha256:
            raise ValueError("library_sha256: is empty, but the status is ok")


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
