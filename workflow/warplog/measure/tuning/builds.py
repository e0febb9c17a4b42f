"""Compiles the settings of a search in parallel, each only once."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from warplog.catalog.family import Family, Variant
from warplog.catalog.space import Setting, Space, name_of
from warplog.catalog.winners import fingerprint
from warplog.core.hashing import sha256_of
from warplog.machine.toolchain import Tool
from warplog.measure.building import build
from warplog.records import door
from warplog.records.build import Build

_LARGE = ("kernel.so", "kernel.sass", "compile.log", "launcher.cu")


@dataclass(frozen=True)
class Builds:
    """Compiles settings of a variant and finds their builds.

    Attributes:
        space: the variant's search space.
        arch: architecture to compile for, such as `sm_90`.
        folder: contains one folder per `fingerprint`, and in it one per setting.
        cores: number of compilers that run in parallel.
    """

    family: Family
    variant: Variant
    space: Space
    arch: str
    nvcc: Tool
    cuobjdump: Tool
    folder: Path
    cores: int

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that the libraries depend on besides the setting."""
        return sha256_of(fingerprint(self.variant), self.family.arguments, self.arch, self.nvcc.version)

    def make(self, settings: Sequence[Setting]) -> dict[str, Build]:
        """Compiles settings and returns their build records by name; a compile error is a record too.

        Raises:
            WarplogError: nvcc or cuobjdump is missing or fails to run, or the disk is full.
        """
        pool = ThreadPoolExecutor(max(self.cores, 1))
        try:
            made = list(pool.map(self._one, settings))
        finally:  # also after Ctrl-C: running compilers finish, the others do not start
            pool.shutdown(cancel_futures=True)
        return {name_of(setting): record for setting, record in zip(settings, made, strict=True)}

    def known(self, setting: Setting) -> Build | None:
        """Returns the build record of a setting that was compiled before; None if there is none."""
        path = self.place(setting) / "record.json"
        return door.read(path, Build) if path.is_file() else None

    def library(self, setting: Setting) -> Path:
        """Returns the path of the compiled setting."""
        return self.place(setting) / "kernel.so"

    def drop_libraries(self, settings: Sequence[Setting]) -> None:
        """Deletes the large files of builds; the records stay."""
        for setting in settings:
            for name in _LARGE:
                (self.place(setting) / name).unlink(missing_ok=True)

    def place(self, setting: Setting) -> Path:
        """Returns the folder of a setting."""
        return self.folder / self.fingerprint[:16] / name_of(setting)

    def _one(self, setting: Setting) -> Build:
        before = self.known(setting)
        if before and (before.status != "ok" or self.library(setting).is_file()):
            return before
        variant = replace(self.variant, parameters=self.space.parameters(setting))
        return build.build_variant(
            self.family, variant, self.arch, self.nvcc, self.cuobjdump, self.place(setting)
        )
