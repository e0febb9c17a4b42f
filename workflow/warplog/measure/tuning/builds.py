"""The settings of a search, compiled in parallel; what was compiled is not compiled again."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from warplog.catalog.family import Family, Variant
from warplog.catalog.space import Setting, Space, name_of
from warplog.catalog.winners import fingerprint
from warplog.core.records import Record, read_json, sha256_of
from warplog.machine.toolchain import Tool
from warplog.measure import build

_LARGE = ("kernel.so", "kernel.sass", "compile.log", "launcher.cu")


@dataclass(frozen=True)
class Builds:
    """Where the builds of a variant's settings lie and how they are made.

    Attributes:
        space: the variant's own.
        folder: holds a folder for each version of what is compiled, and in that one for each setting.
        cores: compilers that run at the same time.
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
        """Of all that the libraries depend on besides the setting."""
        return sha256_of(fingerprint(self.variant), self.family.arguments, self.arch, self.nvcc.version)

    def make(self, settings: Sequence[Setting]) -> dict[str, Record]:
        """The build record of each setting by its name; a compile error is a record too.

        Raises:
            WarplogError: nvcc or cuobjdump is missing or cannot be run, or the disk is full.
        """
        pool = ThreadPoolExecutor(max(self.cores, 1))
        try:
            made = list(pool.map(self._one, settings))
        finally:  # also after Ctrl-C: the compilers that run come to their end, the others do not begin
            pool.shutdown(cancel_futures=True)
        return {name_of(setting): record for setting, record in zip(settings, made, strict=True)}

    def known(self, setting: Setting) -> Record:
        """The build record of a setting that was compiled before; {} where there is none."""
        path = self._place(setting) / "record.json"
        record: Record = read_json(path, "record") if path.is_file() else {}
        return record

    def library(self, setting: Setting) -> Path:
        """The compiled setting."""
        return self._place(setting) / "kernel.so"

    def drop_libraries(self, settings: Sequence[Setting]) -> None:
        """Removes what is large; the records stay."""
        for setting in settings:
            for name in _LARGE:
                (self._place(setting) / name).unlink(missing_ok=True)

    def _place(self, setting: Setting) -> Path:
        return self.folder / self.fingerprint[:16] / name_of(setting)

    def _one(self, setting: Setting) -> Record:
        known = self.known(setting)
        if known and (known["status"] != "ok" or self.library(setting).is_file()):
            return known
        variant = replace(self.variant, parameters=self.space.parameters(setting))
        return build.build_variant(
            self.family, variant, self.arch, self.nvcc, self.cuobjdump, self._place(setting)
        )
