"""Compiles one variant; without nvcc, or a GPU for a Python variant, uses its recorded build instead."""

from pathlib import Path

from msgspec.structs import replace

from warplog.catalog.family import Family, Variant, load_family
from warplog.core import locks, store
from warplog.core.errors import WarplogError, note, progress
from warplog.machine import device, toolchain
from warplog.measure.building import build, python_build
from warplog.plan.jobs import BuildJob
from warplog.plan.script import job, parameters


def main(params: BuildJob, name: str, arch: str, record: Path) -> None:
    family = load_family(Path(params.family_file))
    variant = replace(family.variant(name), parameters=params.parameters)
    recorded = Path(params.recorded) if params.recorded else None
    if variant.is_python:
        python(family, variant, arch, record, recorded, params.attempt)
        return
    try:
        toolchain.ensure("cuda")
        nvcc = toolchain.find("nvcc")
    except WarplogError as error:
        if recorded is None or not store.is_file(recorded):
            raise
        note(f"  build   {family.name}/{name}  recorded ({error})")
        build.take_recorded(recorded, record.parent)
        return
    cuobjdump, attempt = toolchain.find("cuobjdump"), params.attempt
    done = build.build_variant(family, variant, arch, nvcc, cuobjdump, record.parent, attempt)
    progress(f"  build   {family.name}/{name}  {done.status}  {done.reason}".rstrip(), done.status)


def python(
    family: Family, variant: Variant, arch: str, record: Path, recorded: Path | None, attempt: int
) -> None:
    gpu, name = device.detect(), f"{family.name}/{variant.name}"
    if gpu is None and recorded is not None and store.is_file(recorded):
        note(f"  build   {name}  recorded (no GPU: {device.why_not()})")
        build.take_recorded(recorded, record.parent)
        return
    if gpu is not None:
        toolchain.ensure("gpu")
    cuobjdump = toolchain.find("cuobjdump")
    done = python_build.build_variant(family, variant, arch, cuobjdump, record.parent, attempt, gpu)
    progress(f"  build   {name}  {done.status}  {done.reason}".rstrip(), done.status)


def alone(params: BuildJob, name: str, arch: str, record: Path) -> None:
    """Builds while no other process does: after a `kill -9` of Snakemake, its jobs go on until they are done."""
    folder = record.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock")
    with locks.locked(lock, f"waiting for {folder}: another process is compiling {name}"):
        main(params, name, arch, record)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        alone(
            parameters(snakemake, BuildJob),
            snakemake.wildcards.variant,
            snakemake.wildcards.arch,
            Path(snakemake.output.record),
        )
