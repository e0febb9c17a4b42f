"""Builds a variant for a campaign: compiled here, or taken from a recorded campaign where that is not possible."""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from warplog.catalog.family import Family, Variant, load_family
from warplog.core import locks, store
from warplog.core.errors import WarplogError, note, progress
from warplog.machine import device, toolchain
from warplog.measure.building import build, python_build
from warplog.records.build import Build


def build_variant(
    family_file: Path,
    variant: str,
    parameters: Mapping[str, int],
    arch: str,
    folder: Path,
    attempt: int,
    recorded: Path | None = None,
    word: str = "build",
) -> None:
    """Compiles one variant into `folder`, while no other process does.

    After a `kill -9` of Snakemake, its jobs go on until they are done.

    Args:
        parameters: the variant's parameters on this GPU.
        attempt: number of this build, for its record.
        recorded: the recorded build record to use if nvcc is missing, or a GPU for a Python variant; None if there is
            none.
        word: the stage, for the line that says how it ended.

    Raises:
        WarplogError: a tool is missing and there is no recorded build, or the results cannot be written.
    """
    family = load_family(family_file)
    chosen = replace(family.variant(variant), parameters=parameters)
    known = recorded if recorded is not None and store.is_file(recorded) else None
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock")
    with locks.locked(lock, f"waiting for {folder}: another process is compiling {variant}"):
        line = f"  {word:7} {family.name}/{variant}"
        if known and (why := _why_not_here(chosen)):
            note(f"{line}  recorded ({why})")
            build.take_recorded(known, folder)
            return
        made = _build(family, chosen, arch, folder, attempt)
        progress(f"{line}  {made.status}  {made.reason}".rstrip(), made.status)


def _why_not_here(variant: Variant) -> str:
    """Returns why this machine cannot build the variant; "" if it can."""
    if variant.is_python:
        return "" if device.detect() else f"no GPU: {device.why_not()}"
    try:
        toolchain.ensure("cuda")
    except WarplogError as error:
        return str(error)
    return ""


def _build(family: Family, variant: Variant, arch: str, folder: Path, attempt: int) -> Build:
    if not variant.is_python:
        toolchain.ensure("cuda")
        nvcc, cuobjdump = toolchain.find("nvcc"), toolchain.find("cuobjdump")
        return build.build_variant(family, variant, arch, nvcc, cuobjdump, folder, attempt)
    gpu = device.detect()
    if gpu is not None:
        toolchain.ensure("gpu")
    cuobjdump = toolchain.find("cuobjdump")
    return python_build.build_variant(family, variant, arch, cuobjdump, folder, attempt, gpu)
