"""Who duels: two variants of a family, each named by compiler, commit, and variant or file, or by some of these."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from msgspec.structs import replace

from warplog.catalog import family as catalog
from warplog.catalog.family import Family, Variant
from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.schema import suggest
from warplog.core.text import listed
from warplog.duel.sources import Tree, repository_of, tree_of
from warplog.records import door
from warplog.records.config import configured
from warplog.records.requested.duel import Difference

WORKING_TREE = "tree"  # in a pack, in place of a commit
FILES = (".cu", ".py", ".so")
_TOOLKIT = re.compile(r"nvcc:(\d[^:]*)(?::|$)")
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
CACHE = paths.RESULTS / ".duel"  # sources and builds, which can be deleted at any time


@dataclass(frozen=True)
class Corner:
    """One of the two that duel.

    Attributes:
        name: as the command line names it.
        commit: of the sources; "" for the working tree.
        packed: folder with the builds of a pack that was made elsewhere; None to build here.
        toolkit: version of the nvcc that builds it, 13.0 or 13.0.88; "" for the compiler of the project.
    """

    name: str
    family: Family
    variant: Variant
    commit: str = ""
    packed: Path | None = None
    toolkit: str = ""

    @property
    def folder_name(self) -> str:
        """The folder of its build in a pack."""
        return f"{self.family.name}.{self.variant.name}.{self.commit or WORKING_TREE}"


@dataclass(frozen=True)
class _Named:
    """A side, taken apart: the toolkit, the families of its tree, and the words after the commit."""

    name: str
    toolkit: str
    words: str
    tree: Tree
    families: Mapping[str, Family]

    def corner(self, family: Family, variant: Variant) -> Corner:
        """Returns a variant of this side."""
        name = self.name if self.words else f"{self.name.removesuffix(':')}:{family.name}/{variant.name}"
        return Corner(name, family, variant, self.tree.commit, toolkit=self.toolkit)


def resolve(
    a: str, b: str, project: Path, folders: Sequence[Path], default: str = ""
) -> tuple[Corner, Corner]:
    """Returns both sides.

    Args:
        a, b: [nvcc:VERSION:][COMMIT:], then [FAMILY/]VARIANT, FILE, or nothing for the other side's variant.
        project: the project.
        folders: folders of families, in addition to those of the project.
        default: [FAMILY/]VARIANT for sides that name none; "" for the other side's.

    Raises:
        WarplogError: One is not found, a name is ambiguous, they are not variants of one family, or nvcc does not
            compile the one that it is named for.
    """
    sides = [_named(name, project, folders) for name in (a, b)]
    found = [_candidates(side) for side in sides]
    meant = _candidates(_named(default, project, folders)) if default else []
    if not any((*found, meant)):
        raise WarplogError(f"{a}, {b}: one of them must name a variant or the file of one, or --variant")
    for place, (side, others) in enumerate(zip(sides, reversed(found), strict=True)):
        found[place] = found[place] or [_like(side, other) for other in meant or others]
    common = [name for name in (one.family.name for one in found[0]) if name in _names(found[1])]
    if not common:
        kinds = [f"{name} is of {listed(_names(own))}" for name, own in zip((a, b), found, strict=True)]
        raise WarplogError(f"{', '.join(kinds)}: only variants of one family do the same work")
    pairs = [[one for one in own if one.family.name in common] for own in found]
    for name, own in zip((a, b), pairs, strict=True):
        if len(own) > 1:
            several = listed([f"{one.family.name}/{one.variant.name}" for one in own])
            raise WarplogError(f"{name}: may be {several}; write one of them")
        if own[0].toolkit and (own[0].variant.is_python or own[0].variant.prebuilt):
            raise WarplogError(
                f"{name}: nvcc does not compile {own[0].variant.file}; name a variant of CUDA sources, or no nvcc"
            )
    return pairs[0][0], pairs[1][0]


def _names(corners: Sequence[Corner]) -> list[str]:
    return [corner.family.name for corner in corners]


def why_other_work(a: Corner, b: Corner, case: str) -> str:
    """Returns why two corners do not do the same work at a case; "" if they do."""
    for corner in (a, b):
        if case not in corner.family.cases:
            return f"{corner.family.file}: no case {case!r}; {suggest(case, corner.family.cases)}"
        if why := corner.variant.requires.why_not_case(corner.family.case(case)):
            return f"{corner.name} does not support the case {case}: {why}"
    forms = [door.plain([argument.form() for argument in corner.family.arguments]) for corner in (a, b)]
    values = [dict(corner.family.case(case).values) for corner in (a, b)]
    if forms[0] != forms[1] or values[0] != values[1]:
        what = "arguments" if forms[0] != forms[1] else f"case {case}"
        return f"the {what} of {a.family.name} differ between {a.name} and {b.name}"
    return ""


def differences(a: Corner, b: Corner) -> tuple[Difference, ...]:
    """Returns what two corners are compiled from that differs."""
    differs: dict[Difference, bool] = {
        "sources": a.variant.content()[:2] != b.variant.content()[:2],
        "options": a.variant.compile.record() != b.variant.compile.record(),
        "parameters": dict(a.variant.parameters) != dict(b.variant.parameters),
    }
    return tuple(name for name, is_so in differs.items() if is_so)


def _named(name: str, project: Path, folders: Sequence[Path]) -> _Named:
    named = _TOOLKIT.match(name)
    toolkit, rest = (named[1], name[named.end() :]) if named else ("", name)
    if named and not _VERSION.fullmatch(toolkit):
        raise WarplogError(f"{name}: {toolkit!r} is no version of nvcc; write nvcc:13.0 or nvcc:13.0.88")
    ref, colon, words = rest.partition(":")
    if not colon or Path(rest).is_file():
        return _Named(name, toolkit, rest, Tree(Path.cwd()), families_of(project, folders))
    return _Named(name, toolkit, words, *families_at(ref, project, folders))


def families_at(ref: str, project: Path, folders: Sequence[Path] = ()) -> tuple[Tree, Mapping[str, Family]]:
    """Returns the files of a commit, and the families of the project there.

    Raises:
        WarplogError: There is no repository or commit, or a family is invalid there.
    """
    top = repository_of(project)
    tree = tree_of(ref, top, project / CACHE / "commits")
    there = [tree.top / folder.resolve().relative_to(top) for folder in (project, *folders)]
    return tree, families_of(there[0], there[1:])


def families_of(project: Path, folders: Sequence[Path] = ()) -> Mapping[str, Family]:
    """Returns the families of a project, and of further folders."""
    own = (project / "kernels", *(project / folder for folder in configured(project).kernel_folders))
    return catalog.load([*(folder for folder in own if folder.is_dir()), *folders])


def _candidates(side: _Named) -> list[Corner]:
    """Returns the variants that a side may mean; none if it names nothing, or a file that is of no variant.

    Raises:
        WarplogError: There is no such variant or file.
    """
    words = side.words
    if not words or (side.tree.top / words).suffix in FILES:
        return _of_file(side)
    named, slash, variant = words.rpartition("/")
    if slash and named not in side.families:
        raise WarplogError(f"{side.name}: no family {named!r}; {suggest(named, side.families)}")
    families = [side.families[named]] if slash else list(side.families.values())
    found = [family for family in families if variant in [own.name for own in family.variants]]
    if not found:
        known = {own.name for family in families for own in family.variants}
        hint = (
            suggest(variant, known) if slash or get_close_matches(variant, known) else "write FAMILY/VARIANT"
        )
        raise WarplogError(f"{side.name}: no variant {variant!r}; {hint}")
    return [side.corner(family, family.variant(variant)) for family in found]


def _of_file(side: _Named) -> list[Corner]:
    if not side.words:
        return []
    file = (side.tree.top / side.words).resolve()
    if not file.is_file():
        raise WarplogError(f"{side.name}: no such file: {file}")
    return [
        side.corner(family, variant)
        for family in side.families.values()
        for variant in family.variants
        if variant.file.resolve() == file
    ]


def _like(side: _Named, other: Corner) -> Corner:
    """Returns the other side's variant with the sources of this side: its file, or its commit."""
    if side.words:
        file = (side.tree.top / side.words).resolve()
        if file.suffix != other.variant.file.suffix:
            raise WarplogError(
                f"{side.name}: is the source of no variant, and cannot take the place of {other.variant.file}"
            )
        variant = replace(other.variant, file=file)
        return side.corner(other.family, variant)
    if other.family.name not in side.families:
        raise WarplogError(f"{side.name}: has no family {other.family.name!r}")
    family = side.families[other.family.name]
    return side.corner(family, family.variant(other.variant.name))
