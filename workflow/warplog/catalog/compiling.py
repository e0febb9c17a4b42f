"""The key `compile` of family.yaml: what is compiled besides a variant's source, and with which options."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.records.build import Compiled
from warplog.records.fields import Frozen, matching

STANDARD = 17
# `<warplog/workspace.cuh>` and the other headers that kernels share.
HEADERS = paths.PACKAGE / "include"

Place = Annotated[
    str,
    Meta(max_length=300),
    matching(
        "[A-Za-z0-9_.-][A-Za-z0-9_./ +-]*",
        "a path relative to family.yaml, in letters, digits, spaces and _ . / + -",
    ),
]
Flag = Annotated[str, Meta(min_length=1, max_length=500), matching(r"-[^\n]*", "one line that begins with -")]
Macro = Annotated[str, matching("[A-Za-z_][A-Za-z0-9_]*", "the name of a macro: letters, digits and _")]
Defined = Annotated[str, Meta(max_length=500), matching(r"[^\n]*", "one line")] | int | float | None
ShortName = Annotated[
    str,
    matching("[A-Za-z0-9_.+-]{1,64}", "the short name of a library, such as cublas for libcublas.so"),
]


class Compile(Frozen, frozen=True, kw_only=True):
    """Options of the compiler that a family or a variant asks for.

    Attributes:
        include: folders of headers in the project, relative to family.yaml.
        flags: options for nvcc.
        defines: macros: a number, text as it is written (quotes included), or no value.
        std: C++ standard (default 17).
        link: shared libraries by short name, such as cuda or cublas.
        sources: further sources in the project, relative to family.yaml.
        fast_math: whether nvcc gets --use_fast_math.
    """

    include: Annotated[tuple[Place, ...], Meta(max_length=32)] = ()
    flags: Annotated[tuple[Flag, ...], Meta(max_length=64)] = ()
    defines: Annotated[Mapping[Macro, Defined], Meta(max_length=64)] = field(default_factory=dict)
    std: Literal[17, 20] | None = None
    link: Annotated[tuple[ShortName, ...], Meta(max_length=32)] = ()
    sources: Annotated[tuple[Place, ...], Meta(max_length=64)] = ()
    fast_math: bool | None = None


def extended(family: Compile, variant: Compile, where: str) -> Compiled:
    """Returns a variant's options: those of its family's `compile`, extended by its own.

    Flags, libraries and sources of the variant follow those of the family; its folders are searched first; its other
    keys take precedence.

    Args:
        where: prefix of errors.

    Raises:
        WarplogError: a flag would change what warplog relies on; the text names the flag and the remedy.
    """
    flags = [word for flag in family.flags + variant.flags for word in _words(flag, where)]
    _check_flags(flags, where)
    standard = variant.std or family.std
    return Compiled(
        include=_each_once(variant.include + family.include),
        flags=tuple(flags),
        defines={**family.defines, **variant.defines},
        std=None if standard == STANDARD else standard,
        link=_each_once(family.link + variant.link),
        sources=_each_once(family.sources + variant.sources),
        fast_math=bool(family.fast_math if variant.fast_math is None else variant.fast_math),
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


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


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
