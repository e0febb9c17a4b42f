"""The job that builds a variant, and whether its former result may be kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from warplog.catalog.family import Variant
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file, sha256_of
from warplog.machine import toolchain
from warplog.records import door
from warplog.records.build import Build

OUTPUTS = ("record.json", "kernel.so", "kernel.sass")


@dataclass(frozen=True)
class BuildJob:
    """What is to be built.

    Attributes:
        family_file: the family.yaml.
        variant: name of the variant.
        parameters: the variant's parameters on this GPU.
        arch: architecture to compile for.
        folder: where the build goes.
        attempt: number of this build, for its record.
        contract: hash of the version of the stage, and of what the launcher is made of.
        recorded: the recorded build record to use if nvcc is missing, or a GPU for a Python variant; None if there is
            none.
    """

    family_file: Path
    variant: str
    parameters: Mapping[str, int]
    arch: str
    folder: Path
    attempt: int
    contract: str
    recorded: Path | None = None


def inputs_sha256(job: BuildJob, variant: Variant) -> str:
    """Returns the hash of what a build depends on: source and headers, contract, architecture and tools."""
    tools = [] if variant.is_python else [toolchain.find("nvcc").version]
    return sha256_of(
        variant.fingerprint(), job.contract, job.arch, [*tools, toolchain.find("cuobjdump").version]
    )


def is_kept(folder: Path, key: str) -> bool:
    """Returns whether `folder` holds a whole build with this key that was made here and did not fail."""
    try:
        record = door.read(folder / "record.json", Build)
    except WarplogError:
        return False
    if record.inputs_sha256 != key or record.origin != "live" or record.status not in ("ok", "unsupported"):
        return False
    library = folder / "kernel.so"
    whole = library.is_file() and (folder / "kernel.sass").is_file()
    return whole and (record.language != "cuda" or record.library_sha256 in ("", sha256_file(library)))
