"""Variants as nvcc makes them, for tests of their machine code; what it made of the committed sources is kept.

tests/data/compiled/ holds nvcc's output for each of these builds: its messages and the disassembly. It is used while
the source, the headers, the parameters, the options and the version of nvcc are those that it was made with; any
other variant is compiled. After a change to kernels, keep the new output and remove what is no longer used:

    rm -r tests/data/compiled && WARPLOG_KEEP_COMPILED=1 uv run pytest -m nvcc tests/unit

Builds that are not in that folder are kept in pytest's cache for the next run.
"""

import inspect
import json
import lzma
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path

import pytest
from msgspec import structs

from warplog.core.files import write_text
from warplog.core.hashing import sha256_of
from warplog.core.locks import locked
from warplog.core.process import minimal_env, run
from warplog.machine import aslr, toolchain
from warplog.measure.building import build
from warplog.parsers import ptxas, sass
from warplog.records import door
from warplog.records.build import KernelCode
from warplog.records.fields import Frozen, Status

COMPILED = Path(__file__).parents[1] / "data" / "compiled"
KEEP = bool(os.environ.get("WARPLOG_KEEP_COMPILED"))
ENCODING = re.compile(r"\s*/\* 0x[0-9a-f]{16} \*/$", re.MULTILINE)
LONGEST_S = 900


class Kind(StrEnum):
    """How much of a variant is compiled."""

    LIBRARY = "library"  # as the workflow does: kernel.so, compile.log, kernel.sass
    KERNELS = "kernels"  # compile.log and kernel.sass
    RESOURCES = "resources"  # compile.log; the record's kernels have registers and spills but no opcodes


class Outcome(Frozen, frozen=True, kw_only=True):
    """What became of a build."""

    status: Status = "ok"
    reason: str = ""
    kernels: tuple[KernelCode, ...] = ()


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
    """Folder and record of one variant: from COMPILED, or the folder `kept` where nothing it is made of has changed.

    Without a kind, the folder has the files of KERNELS, from a build of the whole library; a baseline that calls a
    library is one in any case. Variants of the same source and parameters are the same build.
    """
    nvcc, cuobjdump = compilers()
    variant = structs.replace(variant, name=variant.file.stem)
    if (variant.library and kind is None) or variant.requires.why_not(build.capability_of(arch)):
        kind = Kind.LIBRARY  # no kernels, or nothing is compiled
    parameters = sha256_of(dict(variant.parameters))[:12]
    folder = kept / arch / family.name / f"{variant.name}-{parameters}-{kind or 'variant'}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = build.compile_command(nvcc, variant, folder, _target(variant, arch), folder)
    options = [word for word in command if "/" not in word]  # without folders
    text = build.launcher_source(family, variant)
    device = sha256_of(variant.fingerprint(), text, options, nvcc.version, kind)
    output = COMPILED / arch / family.name / f"{variant.name}-{device[:16]}.json.xz"
    with locked(folder.with_name(f"{folder.name}.lock"), ""):
        if kind is not Kind.LIBRARY and output.is_file():
            return folder, _from_output(output, folder)
        key = sha256_of(
            device,
            [tool.version for tool in (cuobjdump, toolchain.host_compiler())],
            [inspect.getsource(module) for module in (sys.modules[__name__], build, ptxas, sass, aslr)],
        )
        record = _compiled(family, variant, arch, folder, kind, key)
        if KEEP and record.status == "ok" and kind is not Kind.LIBRARY:
            _keep_output(output, folder)
        return folder, record


def check(variant, folder, record):
    """Checks that a variant compiles without a warning to what family.yaml expects of it."""
    assert record.status == "ok", record.reason
    assert "warning" not in (folder / "compile.log").read_text()
    opcodes = [opcode for kernel in record.kernels for opcode in kernel.opcodes]
    missing = [p for p in variant.expects.sass if not any(opcode.startswith(p) for opcode in opcodes)]
    assert missing == [], variant.name
    if variant.expects.spills is not None:
        for kernel in record.kernels:
            assert kernel.spill_store_bytes + kernel.spill_load_bytes <= variant.expects.spills, kernel.kernel


def _from_output(path, folder):
    """The record of a build whose output is kept; writes its files."""
    output = json.loads(lzma.decompress(path.read_bytes()))
    folder.mkdir(exist_ok=True)
    write_text(folder / "compile.log", output["log"])
    write_text(folder / "kernel.sass", output["sass"])
    return Outcome(kernels=tuple(build.kernel_facts(output["log"], output["sass"])))


def _keep_output(path, folder):
    dump = folder / "kernel.sass"
    text = ENCODING.sub("", dump.read_text()) if dump.is_file() else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    output = {"log": (folder / "compile.log").read_text(), "sass": text}
    path.write_bytes(lzma.compress(json.dumps(output).encode(), preset=9))


def _compiled(family, variant, arch, folder, kind, key):
    """The record of a build, from its folder if that was made with the same key."""
    nvcc, cuobjdump = compilers()
    note = folder / "made.json"
    made = json.loads(note.read_text()) if note.is_file() else {}
    if made.get("key") == key:
        return door.decode(made["outcome"], Outcome, str(note))
    shutil.rmtree(folder, ignore_errors=True)
    if kind in (None, Kind.LIBRARY):
        record = build.build_variant(family, variant, arch, nvcc, cuobjdump, folder)
        outcome = Outcome(status=record.status, reason=record.reason, kernels=record.kernels)
    else:
        outcome = _kernels(family, variant, arch, nvcc, cuobjdump, folder, kind)
    if outcome.status in ("ok", "unsupported"):
        write_text(note, json.dumps({"key": key, "outcome": door.plain(outcome)}))
    return outcome


def _kernels(family, variant, arch, nvcc, cuobjdump, folder, kind):
    """What build_variant makes, without the host's half."""
    source, log, dump = folder / "launcher.cu", folder / "compile.log", folder / "kernel.sass"
    write_text(source, build.launcher_source(family, variant))
    command = build.compile_command(nvcc, variant, source, _target(variant, arch), folder / "kernel.cubin")
    command[command.index("-shared")] = "-cubin"
    with aslr.fixed():
        done = run(command, timeout_s=LONGEST_S, env=minimal_env(), log=log)
    if not done.ok:
        return Outcome(status="compile_error", reason=done.output_tail)
    if kind is Kind.RESOURCES:
        kernels = [build.kernel_record(kernel, {}) for kernel in ptxas.parse(log.read_text())]
    else:
        command = [cuobjdump.path, "-sass", folder / "kernel.cubin"]
        dumped = run(command, timeout_s=LONGEST_S, env=minimal_env(), log=dump)
        assert dumped.ok, dumped.output_tail
        kernels = build.kernel_facts(log.read_text(), dump.read_text())
    return Outcome(kernels=tuple(kernels))


def _target(variant, arch):
    """What nvcc compiles for: sm_90a for a variant that requires it on sm_90."""
    return variant.requires.arch if variant.requires.arch == f"{arch}a" else arch
