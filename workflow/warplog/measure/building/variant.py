"""Builds a variant for a campaign: compiled here, or taken from a recorded campaign where that is not possible."""

from msgspec.structs import replace

from warplog.catalog.family import Family, Variant, load_family
from warplog.core import locks, store
from warplog.core.errors import WarplogError, note, progress
from warplog.machine import device, toolchain
from warplog.measure.building import build, python_build
from warplog.measure.building.job import OUTPUTS, BuildJob, inputs_sha256, is_kept
from warplog.records import door
from warplog.records.build import Build


def build_variant(job: BuildJob, word: str = "build") -> None:
    """Compiles one variant, while no other process does; an unchanged build is kept, since no two are equal bit by bit.

    After a `kill -9` of Snakemake, its jobs go on until they are done.

    Args:
        word: the stage, for the line that says how it ended.

    Raises:
        WarplogError: a tool is missing and there is no recorded build, or the results cannot be written.
    """
    family = load_family(job.family_file)
    variant = replace(family.variant(job.variant), parameters=job.parameters)
    folder, recorded = job.folder, job.recorded
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock")
    with locks.locked(lock, f"waiting for {folder}: another process is compiling {job.variant}"):
        line = f"  {word:7} {family.name}/{job.variant}"
        if recorded and store.is_file(recorded) and (why := _why_not_here(variant)):
            note(f"{line}  recorded ({why})")
            build.take_recorded(recorded, folder)
            return
        if not variant.is_python:
            toolchain.ensure("cuda")
        key = inputs_sha256(job, variant)
        if is_kept(folder, key):
            for name in OUTPUTS:
                (folder / name).touch()
            return
        made = replace(_build(family, variant, job), inputs_sha256=key)
        door.write(folder / "record.json", made)
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


def _build(family: Family, variant: Variant, job: BuildJob) -> Build:
    if not variant.is_python:
        nvcc, cuobjdump = toolchain.find("nvcc"), toolchain.find("cuobjdump")
        return build.build_variant(family, variant, job.arch, nvcc, cuobjdump, job.folder, job.attempt)
    gpu = device.detect()
    if gpu is not None:
        toolchain.ensure("gpu")
    cuobjdump = toolchain.find("cuobjdump")
    return python_build.build_variant(family, variant, job.arch, cuobjdump, job.folder, job.attempt, gpu)
