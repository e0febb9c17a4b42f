"""Builds variants for this machine's GPU and makes the jobs that measure them."""

from pathlib import Path

from warplog.catalog.family import Family
from warplog.machine import device, toolchain
from warplog.measure.building import build, python_build
from warplog.measure.job import Job, Settings
from warplog.records.campaign import Gpu


def this_gpu() -> Gpu:
    gpu = device.detect()
    assert gpu is not None
    return gpu


def build_timer(folder: Path) -> None:
    """Compiles the timing core to `folder`/timer.so."""
    toolchain.ensure("cuda")
    toolchain.ensure("gpu")
    build.build_timer(toolchain.find("nvcc"), this_gpu().arch, folder / "timer.so")


def build_variant(family: Family, variant: str, folder: Path) -> None:
    found, gpu = family.variant(variant), this_gpu()
    if found.is_python:
        toolchain.ensure("gpu")
        python_build.build_variant(family, found, gpu.arch, toolchain.find("cuobjdump"), folder, gpu=gpu)
        return
    toolchain.ensure("cuda")
    tools = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    build.build_variant(family, found, gpu.arch, *tools, folder)


def gpu_job(
    family: Family, variant: str, build_folder: Path, record: Path, settings: Settings
) -> Job[Settings]:
    return Job(
        family=family,
        variant=family.variant(variant),
        gpu=this_gpu(),
        build_folder=build_folder,
        record=record,
        scratch=record.with_name(f".{record.stem}.work"),
        settings=settings,
        tools={},
        commit="",
        content_sha256="",
    )
