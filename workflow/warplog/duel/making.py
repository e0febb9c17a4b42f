"""What a duel loads: the builds of both sides, kept while their sources are the same, and the timing core."""

import dataclasses
import os
import re
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from warplog.catalog.winners import with_winners
from warplog.core import locks
from warplog.core.errors import WarplogError, say
from warplog.core.hashing import sha256_file, sha256_of
from warplog.core.process import minimal_env, run
from warplog.duel import sides
from warplog.duel.sides import CACHE, Corner
from warplog.duel.timer import SOURCE
from warplog.machine import toolchain
from warplog.machine.toolchain import Tool
from warplog.measure.building import build
from warplog.measure.building.job import is_kept
from warplog.measure.building.launcher import PREBUILT, launcher_source
from warplog.records import door
from warplog.records.build import Build
from warplog.records.campaign import Gpu
from warplog.records.requested.duel import Difference, Side

_LDD_S = 60.0
_ELF_HEADER = struct.Struct(
    "<40xQ10xHHH"
)  # the table of sections: place, size, count, and which one holds names
_SECTION = struct.Struct("<I20xQQ")  # name, place and size
_SOURCE = re.compile(rb"^identifier = .*$", re.MULTILINE)
_LOADED = re.compile(r"^\s*(\S+) => (/\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Made:
    """A side that can be loaded.

    Attributes:
        file: the library, or the module of a Python variant.
        build: the record of its build; None for a Python variant, whose first launch compiles it.
    """

    corner: Corner
    file: Path
    build: Build | None

    def why_not(self) -> str:
        """Returns why it cannot be loaded; "" if it can."""
        return f"its build: {self.build.reason}" if self.build and self.build.status != "ok" else ""

    @property
    def nvcc(self) -> str:
        """Version of the compiler; "" for a Python variant."""
        return (self.build.tools.get("nvcc") or "") if self.build else ""

    def record(self) -> Side:
        """Returns what the record of the duel says of the side."""
        corner, kernels = self.corner, self.build.kernels if self.build else ()
        return Side(
            name=corner.name,
            family=corner.family.name,
            variant=corner.variant.name,
            commit=corner.commit,
            source_sha256=corner.variant.fingerprint(),
            library_sha256=self.build.library_sha256 if self.build else "",
            nvcc=self.nvcc,
            registers=tuple((kernel.kernel, kernel.registers_per_thread) for kernel in kernels),
            sass=sum(kernel.sass_instructions for kernel in kernels),
            sass_sha256=sha256(_listing(self)).hexdigest() if kernels else "",
        )


@dataclass(frozen=True)
class Target:
    """A GPU that is elsewhere."""

    arch: str
    slug: str = ""


def make(corner: Corner, gpu: Gpu | Target, project: Path) -> Made:
    """Compiles a side for a GPU, with that GPU's best parameters, unless an earlier build of the same sources is kept.

    Raises:
        WarplogError: A tool is missing, or a packed build is for another GPU.
    """
    if corner.packed and not corner.variant.is_python:
        folder = corner.packed / corner.folder_name
        packed = door.read(folder / "record.json", Build)
        if packed.library_sha256 not in ("", sha256_file(folder / "kernel.so")):
            raise WarplogError(f"{folder}: the library differs from its record; delete the folder")
        if packed.arch != gpu.arch:
            raise WarplogError(f"{corner.name} was compiled for {packed.arch}, and this GPU is {gpu.arch}")
        return Made(corner, folder / "kernel.so", packed)
    tuned = with_winners({corner.family.name: corner.family}, gpu.slug)[corner.family.name]
    variant = replace(corner.variant, parameters=tuned.variant(corner.variant.name).parameters)
    corner = dataclasses.replace(corner, variant=variant)
    if variant.is_python:
        return Made(corner, variant.file, None)
    nvcc, cuobjdump = _nvcc(corner, project), toolchain.find("cuobjdump")
    launcher = launcher_source(corner.family, variant)
    linked = [str(toolchain.linkable(one, nvcc.libraries)) for one in variant.compile.link]
    key = sha256_of(variant.fingerprint(), launcher, variant.requires, gpu.arch, nvcc.version, linked)
    name = f"{corner.family.name}.{variant.name}.{key[:16]}"
    folder = project / CACHE / "builds" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locks.locked(folder.with_name(f".{name}.lock"), f"waiting: another process compiles {corner.name}"):
        if not is_kept(folder, key):
            say(f"  compile {corner.name}")
            made = build.build_variant(corner.family, variant, gpu.arch, nvcc, cuobjdump, folder)
            door.write(folder / "record.json", replace(made, inputs_sha256=key))
    return Made(corner, folder / "kernel.so", door.read(folder / "record.json", Build))


def _nvcc(corner: Corner, project: Path) -> Tool:
    if corner.toolkit:
        return toolchain.compiler(corner.toolkit, project / CACHE / "toolkits", corner.variant.compile.link)
    toolchain.ensure("cuda")
    return toolchain.find("nvcc")


def make_timer(gpu: Gpu | Target, project: Path) -> Path:
    """Returns the library of the timing core, which is compiled once for each version of its sources.

    Raises:
        WarplogError: nvcc is missing, or does not compile it.
    """
    toolchain.ensure("cuda")
    nvcc = toolchain.find("nvcc")
    key = sha256_of(sha256_file(SOURCE), sha256_file(build.TIMER), gpu.arch, nvcc.version)
    library = project / CACHE / "builds" / f"timer.{key[:16]}.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    with locks.locked(
        library.with_name(f".{library.name}.lock"), "waiting: another process compiles the timing core"
    ):
        if not library.is_file():
            say("  compile the timing core")
            unfinished = library.with_suffix(".part")
            build.build_timer(nvcc, gpu.arch, unfinished, SOURCE)
            unfinished.replace(library)
    return library


def copied(made: Made, folder: Path) -> Path:
    """Returns a copy of a side's library, so that the same library on both sides is loaded twice; a module itself."""
    if made.build is None:
        return made.file
    folder.mkdir()
    for name in (made.file.name, PREBUILT):
        if (made.file.parent / name).is_file():
            shutil.copyfile(made.file.parent / name, folder / name)
    return folder / made.file.name


def differences(a: Made, b: Made) -> tuple[Difference, ...]:
    """Returns what differs between two sides that may make a difference to their times."""
    found = sides.differences(a.corner, b.corner)
    return (*found, "compiler") if a.nvcc and b.nvcc and a.nvcc != b.nvcc else found


def same_code(a: Made, b: Made) -> bool:
    """Returns whether the machine code of two builds is the same; of a comment, for example, it is."""
    if a.build is None or b.build is None:
        return a.corner.variant.fingerprint() == b.corner.variant.fingerprint()
    if a.why_not() or b.why_not():
        return False
    if a.build.library_sha256 == b.build.library_sha256:
        return True
    return _listing(a) == _listing(b) != b"" and _host_code(a) == _host_code(b)


def _listing(made: Made) -> bytes:
    """Returns the machine code of a build's kernels without the path of its source, which depends on the folder."""
    return _SOURCE.sub(b"", made.file.with_name("kernel.sass").read_bytes())


def _host_code(made: Made) -> list[bytes]:
    """Returns the code and constants of the host in a build, which decide how its kernels are launched."""
    libraries = (made.file.with_name(name) for name in (made.file.name, PREBUILT))
    return [part for one in libraries if one.is_file() for part in _host_sections(one.read_bytes())]


def _host_sections(elf: bytes) -> list[bytes]:
    """Returns .text and .rodata of a 64-bit ELF file."""
    table, size, count, names = _ELF_HEADER.unpack_from(elf)
    headers = [_SECTION.unpack_from(elf, table + size * place) for place in range(count)]
    start = headers[names][1]
    return [
        elf[offset : offset + length]
        for name, offset, length in headers
        if elf[start + name : elf.index(b"\0", start + name)] in (b".text", b".rodata")
    ]


def why_apart(pair: Sequence[Made]) -> str:
    """Returns why two sides cannot share a process; "" if they can.

    A process has one module of a name, and loads a shared library by its name once.
    """
    a, b = pair
    if a.build is None and b.build is None and a.corner.variant.folder != b.corner.variant.folder:
        return "both are Python modules of one name, from two folders"
    first, second = (_shared() | loaded_by(made) for made in pair)
    different = sorted(name for name in first.keys() & second.keys() if first[name] != second[name])
    return f"they load different files as {different[0]}" if different else ""


def own_copy(made: Made) -> str:
    """Returns the name of the library of which a side links another file than each process loads; "" for none."""
    own = loaded_by(made)
    return next((name for name, file in _shared().items() if own.get(name, file) != file), "")


def _shared() -> dict[str, str]:
    """Returns what each process loads for sides that do not link it: cuBLAS, by name."""
    cublas = toolchain.library("cublas")
    return {cublas.name: os.path.realpath(cublas)} if cublas else {}


def loaded_by(made: Made) -> dict[str, str]:
    """Returns the files that the dynamic linker finds for a side's library, by name."""
    found: dict[str, str] = {}
    for name in (made.file.name, PREBUILT) if made.build else ():
        if (made.file.parent / name).is_file():
            done = run(["ldd", str(made.file.parent / name)], timeout_s=_LDD_S, env=minimal_env())
            found |= dict(_LOADED.findall(done.output_tail))
    return {name: os.path.realpath(file) for name, file in found.items()}
