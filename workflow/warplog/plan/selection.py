"""What of the catalogue the configuration chooses: families, variants, cases."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import yaml

from warplog import figures
from warplog.catalog.family import Family, Variant
from warplog.core.errors import WarplogError
from warplog.core.schema import suggest


def typed(value: Any) -> Any:
    """A value of the configuration; what `--config 'time={...}'` gave as strings inside of a mapping is parsed."""
    if not isinstance(value, Mapping):
        return value
    return {k: yaml.safe_load(v) if isinstance(v, str) and len(v) < 100 else v for k, v in value.items()}


def choice(value: str | int | list[str], known: list[str], key: str) -> list[str]:
    """The chosen names of the known ones: 'all', a list, or names separated by commas.

    Raises:
        WarplogError: a name is not known; the text suggests the nearest.
    """
    if value == "all":
        return known
    names = (
        [n.strip() for n in str(value).split(",")] if not isinstance(value, list) else [str(n) for n in value]
    )
    for name in names:
        if name not in known:
            raise WarplogError(f"config: {key}: {name!r} is not there; {suggest(name, known)}")
    return names


def choose_families(value: Any, families: Mapping[str, Family]) -> dict[str, Family]:
    """The chosen families; 'all' are those that are no drafts and not of the oracle, which is a target of its own."""
    names = choice(value, list(families), "families")
    return {n: f for n, f in families.items() if n in names and (value != "all" or not (f.draft or f.probes))}


def choose_variants(value: Any, families: Mapping[str, Family]) -> dict[str, tuple[Variant, ...]]:
    """The chosen variants of each family, in ladder order, with the baseline of a family that has any.

    'all' are those that are no drafts.
    """
    full = {f"{f.name}/{v.name}" for f in families.values() for v in f.variants}
    names = set(choice(value, sorted(full | {n.split("/")[1] for n in full}), "variants"))
    chosen = {}
    for family in families.values():
        picked = tuple(
            v
            for v in family.variants
            if (value == "all" and not v.draft)
            or (value != "all" and {v.name, f"{family.name}/{v.name}"} & names)
        )
        if picked:
            chosen[family.name] = tuple(
                v for v in family.variants if v in picked or v.name == family.baseline
            )
    return chosen


def choose_cases(
    value: Any, families: Mapping[str, Family], chosen: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The timed cases of each family: of the chosen ones those that are named, of the others all."""
    known = sorted({c for f in chosen for c in families[f].cases})
    names = choice(value, known, "cases")
    return {
        f.name: tuple(c for c in f.cases if c in names or f.name not in chosen) for f in families.values()
    }


def captured(family: Family, cases: Collection[str]) -> list[str]:
    """The cases that profilers capture where these are timed: of them, and those that are never timed."""
    return [c for c in family.profile_cases if c in cases or c not in family.cases]


def choose_figures(chosen: Iterable[str], families: Mapping[str, Family]) -> dict[str, tuple[str, ...]]:
    """The figures of each chosen family, without those that would be empty.

    A figure that some family lists under `figures` is drawn for such families only.
    """
    needs = figures.needs()
    special = {figure for family in families.values() for figure in family.figures}
    return {
        name: tuple(
            figure
            for figure, needed in needs.items()
            if (figure not in special or figure in families[name].figures)
            and all(_HAS[need](families[name]) for need in needed)
        )
        for name in chosen
    }


def _shares_memory(variant: Variant) -> bool:
    """Whether its source or a header of it names shared memory; the sources of a library are not available."""
    files = (variant.file, *variant.headers())
    return variant.library or any(b"__shared__" in file.read_bytes() for file in files)


# What a figure may need (NEEDS in its module), and whether a family has it.
_HAS: Mapping[str, Callable[[Family], bool]] = {
    "counters": lambda family: "ncu" in family.measuring.profilers,
    "shared_memory": lambda family: any(_shares_memory(variant) for variant in family.variants),
    "flops": lambda family: any(family.value(family.flops, case) for case in family.cases.values()),
    "claims": lambda family: bool(family.claims),
    # The figure `overlap` shows one launch engine by engine: a timeline of all of them adds nothing.
    "no_overlap_figure": lambda family: "overlap" not in family.figures,
}
