"""Compiles the variants of a family for an architecture whose GPU is not here: device code only, never loaded."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from warplog.catalog.family import Family, Variant
from warplog.core.errors import progress
from warplog.core.files import temporary_folder, write_text
from warplog.core.hashing import sha256_of
from warplog.core.process import explain_exit
from warplog.machine.toolchain import Tool
from warplog.measure.building import build
from warplog.measure.building.launcher import SOURCE, launcher_source
from warplog.parsers import ptxas
from warplog.records import door
from warplog.records.build import (
    ChipBuild,
    ChipKernel,
    Chips,
    CompiledAlready,
    CompiledLater,
    NeedsArch,
    Obstacle,
)
from warplog.records.fields import Language

# What is kept of an earlier record; the others are compiled again.
_FINAL = ("ok", "unsupported")


def build_family(
    family: Family,
    parameters: Mapping[str, Mapping[str, int]],
    arch: str,
    nvcc: Tool,
    version: int,
    path: Path,
) -> Chips:
    """Compiles variants of a family for one architecture and writes the record; builds of equal inputs are kept.

    A variant that does not compile, or cannot, is an entry with that status and the reason.

    Args:
        parameters: the variants to compile, with their parameters.
        arch: such as `sm_120`; a variant that requires `sm_90a` is compiled for that.
        version: of the stage; other builds are not kept.
        path: the record.

    Raises:
        WarplogError: nvcc does not run, the disk is full, or the record that is there is damaged.
    """
    known = door.read(path, Chips).variants if path.is_file() else {}
    made: dict[str, ChipBuild] = {}
    for name, values in parameters.items():
        variant = replace(family.variant(name), parameters=values)
        arguments = [argument.form() for argument in family.arguments]
        head = ChipBuild(
            status="unsupported",
            source_sha256=variant.fingerprint(),
            inputs_sha256=sha256_of(
                version, nvcc.version, variant.fingerprint(), arguments, variant.requires.arch
            ),
        )
        same = known.get(name)
        if same and same.inputs_sha256 == head.inputs_sha256 and same.status in _FINAL:
            made[name] = same
            continue
        obstacle = _obstacle(variant, arch)
        made[name] = (
            replace(head, obstacle=obstacle) if obstacle else _compiled(head, family, variant, arch, nvcc)
        )
        progress(
            f"  chips   {arch} {family.name}/{name}  {made[name].status}  {made[name].error}".rstrip(),
            made[name].status,
        )
    record = Chips(arch=arch, family=family.name, nvcc=nvcc.version or "", variants=made)
    door.write(path, record)
    return record


def _obstacle(variant: Variant, arch: str) -> Obstacle | None:
    """Returns why a variant cannot be compiled for an architecture; None if nothing is known against it."""
    if variant.is_python:
        return CompiledLater(language=cast(Language, variant.language))
    if variant.prebuilt:
        return CompiledAlready()
    if variant.requires.why_not(build.capability_of(arch)):
        return NeedsArch(requires=variant.requires.arch)
    return None


def _compiled(head: ChipBuild, family: Family, variant: Variant, arch: str, nvcc: Tool) -> ChipBuild:
    """Compiles each source of a variant with the options of a build; without a library there is no host code."""
    target = build.target_of(variant, arch)
    begin, kernels = time.monotonic(), []
    with temporary_folder() as folder:
        launcher = folder / SOURCE
        write_text(launcher, launcher_source(family, variant))
        log = folder / "compile.log"
        for source in (launcher, *variant.further_sources()):
            command = build.device_command(nvcc, variant, source, target, folder / "kernel.cubin")
            done = build.run_compiler(command, folder, log)
            output = log.read_text(errors="replace")
            if not done.ok:
                places = build.places_of(nvcc, variant, folder)
                error = build.first_error(places.quoted(output)) or explain_exit(done)
                head = replace(head, status="timeout" if done.timed_out else "compile_error", error=error)
                break
            kernels += [
                ChipKernel(
                    kernel=code.kernel,
                    registers_per_thread=code.registers_per_thread,
                    static_shared_bytes=code.static_shared_bytes,
                    stack_bytes=code.stack_bytes,
                    spill_store_bytes=code.spill_store_bytes,
                    spill_load_bytes=code.spill_load_bytes,
                )
                for code in ptxas.parse(output)
            ]
        else:
            head = replace(head, status="ok", kernels=tuple(kernels))
    return replace(head, target=target, seconds=round(time.monotonic() - begin, 3))
