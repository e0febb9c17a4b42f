"""Variants as nvcc makes them, for tests of their machine code: each is compiled once and kept for the next run.

The host's half of a variant takes as long as the kernels. Where a recorded build says that this source and this
compiler make a library, only the kernels are compiled again; any other variant is built as the workflow builds it.
"""

import inspect
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path

import filelock
import pytest

from warplog.core import paths
from warplog.core.files import write_text
from warplog.core.process import minimal_env, run
from warplog.core.records import read_json, sha256_of
from warplog.machine import aslr, toolchain
from warplog.measure import build
from warplog.parsers import ptxas, sass

RECORDED = Path(__file__).parents[2] / paths.recorded_root("h200")
LONGEST_S = 900


class Kind(StrEnum):
    """How much of a variant is compiled."""

    LIBRARY = "library"  # as the workflow does: kernel.so, compile.log, kernel.sass
    KERNELS = "kernels"  # compile.log and kernel.sass
    RESOURCES = "resources"  # compile.log; the record's kernels have registers and spills but no opcodes


def compilers():
    """nvcc and cuobjdump; the test is skipped where one is missing."""
    tools = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    for tool in tools:
        if not tool.ok:
            pytest.skip(f"{tool.name}: {tool.remedy}")
    return tools


def builder(family, kept, names=None):
    """build_all(arch): folder and record of every variant, or of those named; skipped without the tools."""
    compilers()
    chosen = [v for v in family.variants if names is None or v.name in names]

    def build_all(arch, kind=None):
        with ThreadPoolExecutor(2) as pool:
            made = pool.map(lambda variant: built(family, variant, arch, kept, kind), chosen)
            return dict(zip((v.name for v in chosen), made, strict=True))

    return build_all


def built(family, variant, arch, kept, kind=None):
    """Folder and record of one variant, from the folder `kept` where nothing that it is made of has changed.

    Without a kind it is LIBRARY or, where a recorded build allows it and there are kernels, KERNELS. Variants of
    the same source and parameters are the same build.
    """
    nvcc, cuobjdump = compilers()
    variant = replace(variant, name=variant.file.stem)
    if variant.requires.why_not(build.capability_of(arch)):
        kind = Kind.LIBRARY  # nothing is compiled
    elif kind is None:
        known = (variant.fingerprint(), nvcc.version) in recorded_builds(family.name)
        kind = Kind.KERNELS if known and not variant.library else Kind.LIBRARY
    parameters = sha256_of(dict(variant.parameters))[:12]
    folder = kept / arch / family.name / f"{variant.name}-{parameters}-{kind}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    key = sha256_of(
        variant.fingerprint(),
        build.launcher_source(family, variant),
        build.compile_command(nvcc, variant, folder, arch, folder),
        [tool.version for tool in (nvcc, cuobjdump, toolchain.host_compiler())],
        [inspect.getsource(module) for module in (sys.modules[__name__], build, ptxas, sass, aslr)],
    )
    note = folder / "made.json"
    with filelock.FileLock(f"{folder}.lock"):
        made = json.loads(note.read_text()) if note.is_file() else {}
        if made.get("key") == key:
            return folder, made["record"]
        shutil.rmtree(folder, ignore_errors=True)
        if kind is Kind.LIBRARY:
            record = build.build_variant(family, variant, arch, nvcc, cuobjdump, folder)
        else:
            record = _kernels(family, variant, arch, nvcc, cuobjdump, folder, kind)
        if record["status"] in ("ok", "unsupported"):
            write_text(note, json.dumps({"key": key, "record": record}))
        return folder, record


@cache
def recorded_builds(family):
    """Source and compiler of the recorded builds of a family that are libraries, for any architecture."""
    records = map(read_json, (RECORDED / "build").glob(f"*/{family}/*/record.json"))
    return {(r["source_sha256"], r["tools"]["nvcc"]) for r in records if r["status"] == "ok"}


def _kernels(family, variant, arch, nvcc, cuobjdump, folder, kind):
    """What build_variant makes, without the host's half."""
    source, log, dump = folder / "launcher.cu", folder / "compile.log", folder / "kernel.sass"
    write_text(source, build.launcher_source(family, variant))
    target = variant.requires.arch if variant.requires.arch == f"{arch}a" else arch
    command = build.compile_command(nvcc, variant, source, target, folder / "kernel.cubin")
    command[command.index("-shared")] = "-cubin"
    with aslr.fixed():
        done = run(command, timeout_s=LONGEST_S, env=minimal_env(), log=log)
    if not done.ok:
        return {"status": "compile_error", "reason": done.output_tail}
    if kind is Kind.RESOURCES:
        kernels = [vars(kernel) for kernel in ptxas.parse(log.read_text())]
    else:
        command = [cuobjdump.path, "-sass", folder / "kernel.cubin"]
        dumped = run(command, timeout_s=LONGEST_S, env=minimal_env(), log=dump)
        assert dumped.ok, dumped.output_tail
        kernels = build.kernel_facts(log.read_text(), dump.read_text())
    return {"status": "ok", "reason": "", "kernels": kernels}
