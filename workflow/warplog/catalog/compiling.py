"""The key `compile` of family.yaml: what is compiled besides a variant's source, and with which options."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplog.core import paths
from warplog.core.errors import WarplogError

STANDARD = 17
# `<warplog/workspace.cuh>` and the other headers that kernels share.
HEADERS = paths.PACKAGE / "include"
Define = int | float | str | None


@dataclass(frozen=True)
class Compile:
    """Options of the compiler for one variant.

    Attributes:
        include: folders of headers, relative to the folder of family.yaml.
        flags: words for nvcc.
        defines: macros; None stands for one without a value, text is used as it is written.
        std: the C++ standard, 17 or 20.
        link: shared libraries by short name, such as "cuda" or "cublas".
        sources: further sources, relative to the folder of family.yaml.
        fast_math: whether nvcc gets --use_fast_math.
    """

    include: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    defines: Mapping[str, Define] = field(default_factory=dict)
    std: int = STANDARD
    link: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    fast_math: bool = False

    def record(self) -> dict[str, Any]:
        """Returns what was asked for, as JSON data; {} if nothing was."""
        default = Compile()
        found = {name: value for name, value in vars(self).items() if value != getattr(default, name)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    def options(self) -> list[str]:
        """Returns the options for nvcc, without folders, libraries and sources."""
        fast = ["--use_fast_math"] if self.fast_math else []
        macros = [f"-D{n}" if value is None else f"-D{n}={value}" for n, value in self.defines.items()]
        return [*fast, *self.flags, *macros]

    def text(self) -> str:
        """Returns what differs from how other variants are compiled, for people; '' if nothing does."""
        standard = [f"-std=c++{self.std}"] if self.std != STANDARD else []
        include = [f"-I{folder}" for folder in self.include]
        link = [f"-l{name}" for name in self.link]
        return " ".join([*standard, *self.options(), *include, *self.sources, *link])


def make_compile(family: Mapping[str, Any], variant: Mapping[str, Any], where: str) -> Compile:
    """Returns a variant's options: those of its family's `compile`, extended by its own.

    Flags, libraries and sources of the variant follow those of the family; its folders are searched first; its other
    keys take precedence.

    Args:
        family: `compile` of the family, variant: of the variant.
        where: prefix of errors.

    Raises:
        WarplogError: a flag would change what warplog relies on; the text names the flag and the remedy.
    """
    both = (family, variant)
    flags = [word for part in both for flag in part.get("flags", ()) for word in _words(flag, where)]
    _check_flags(flags, where)
    return Compile(
        include=_all("include", variant, family),
        flags=tuple(flags),
        defines={**family.get("defines", {}), **variant.get("defines", {})},
        std=variant.get("std", family.get("std", STANDARD)),
        link=_all("link", *both),
        sources=_all("sources", *both),
        fast_math=variant.get("fast_math", family.get("fast_math", False)),
    )


def root_of(folder: Path) -> Path:
    """Returns the folder that the sources of a family may lie in: its repository, else its project.

    That is the closest folder above with a `.git`, else the project that is run, else the folder above that of the
    families.
    """
    absolute = folder.resolve()
    repository = next((parent for parent in absolute.parents if (parent / ".git").exists()), None)
    project = paths.project().resolve()
    return repository or (project if absolute.is_relative_to(project) else absolute.parents[1])


def check_place(root: Path, folder: Path, name: str, where: str, is_folder: bool = False) -> None:
    """Checks that a file or folder, given relative to the folder of a family.yaml, exists in `root`.

    Raises:
        WarplogError: it is missing or lies outside.
    """
    path = folder / name
    if not path.resolve().is_relative_to(root):
        raise WarplogError(f"{where} {name!r}: is outside of {root}; copy it into that folder")
    if not (path.is_dir() if is_folder else path.is_file()):
        raise WarplogError(f"{where} {name!r}: requires {path}, which is missing")


def _all(key: str, *parts: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part.get(key, ())))


def _words(flag: str, where: str) -> list[str]:
    try:
        return shlex.split(flag)
    except ValueError as error:
        raise WarplogError(f"{where}.flags: {flag!r}: {str(error).lower()}") from None


# What would break the build or the records, by option, and what to do instead.
_REFUSED: Mapping[str, Sequence[str]] = {
    "warplog names the output and what nvcc makes; remove it": (
        *("o", "output-file", "odir", "output-directory", "c", "compile", "dc", "device-c", "dw", "device-w"),
        *(
            "dlink",
            "device-link",
            "ptx",
            "cubin",
            "fatbin",
            "ltoir",
            "optix-ir",
            "lib",
            "link",
            "E",
            "preprocess",
        ),
        *(
            "M",
            "MM",
            "MD",
            "MMD",
            "MP",
            "MF",
            "MT",
            "generate-dependencies",
            "generate-nonsystem-dependencies",
        ),
        *("generate-dependencies-with-compile", "generate-nonsystem-dependencies-with-compile"),
        *("dependency-output", "run", "dryrun", "h", "help", "V", "version"),
    ),
    "warplog compiles for the GPU at hand; write `requires: {arch: sm_80}` for the oldest, or sm_90a for exactly one": (
        *("arch", "gpu-architecture", "code", "gpu-code", "gencode", "generate-code"),
    ),
    "the language is that of the file's name; use .cu, .cpp or .c": ("x",),
    "use the key `std`": ("std",),
    "use the key `include`, so that a changed header is noticed": (
        *("I", "include-path", "isystem", "system-include"),
    ),
    "use the key `link`": ("l", "library"),
    "write #include in the source, so that a changed header is noticed": ("include", "pre-include"),
    "write the options themselves, so that they are recorded": ("optf", "options-file"),
}
_REMEDIES = {name: remedy for remedy, names in _REFUSED.items() for name in names}
_OPTION = re.compile(r"--?([A-Za-z][\w-]*)")
# Options whose value may follow without a space; those of nvcc that begin alike are others.
_ATTACHED = re.compile(r"-(?!lineinfo|lib|link|ltoir)([Ilx])[^=]")
# The word after these is for another program.
_PASSED_ON = re.compile(
    r"-(?:X\w+|-(?:(?:compiler|linker|archive|ptxas|nvlink|cudafe|nvvm|fatbin)-options|options))$"
)
_FILE = re.compile(r"[^-].*\.(?:cu|cuh|c|cc|cpp|cxx|o|obj|a|so|ptx|cubin|fatbin)$")


def _check_flags(flags: Sequence[str], where: str) -> None:
    for word in _own_words(flags):
        option, attached = _OPTION.match(word), _ATTACHED.match(word)
        name = attached[1] if attached else option[1] if option else ""
        remedy = _REMEDIES.get(name, "")
        if _FILE.match(word):
            remedy = "use the key `sources`, so that a changed file is noticed"
        if remedy:
            raise WarplogError(f"{where}.flags: {word!r} cannot be used: {remedy}")


def _own_words(flags: Sequence[str]) -> Iterator[str]:
    """Yields the words that are for nvcc itself."""
    passed_on = False
    for word in flags:
        if not passed_on:
            yield word
        passed_on = not passed_on and bool(_PASSED_ON.match(word))
