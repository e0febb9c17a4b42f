"""Selects families, variants, cases and figures by the configuration."""

from collections.abc import Callable, Collection, Iterable, Mapping

import yaml

from warplog import figures
from warplog.catalog.family import Family, Variant
from warplog.core.errors import WarplogError
from warplog.core.schema import suggest
from warplog.records.config import Choice, Config

_DEFAULTS = Config()


def typed(key: str, value: object) -> object:
    """Returns a value of the configuration with its type, which `--config` loses.

    Strings in a mapping are parsed: they come from `--config 'time={...}'`. A whole number is text again if the key
    holds text, as in `--config commit=1234567`; a commit gets the leading zeros back. `strict=true` is true.
    """
    if isinstance(value, Mapping):
        return {k: yaml.safe_load(v) if isinstance(v, str) and len(v) < 100 else v for k, v in value.items()}
    default = getattr(_DEFAULTS, key, None)
    if isinstance(default, bool) and value in ("true", "false"):
        return value == "true"
    if type(value) is int and isinstance(default, str):
        return f"{value:07}" if key == "commit" else str(value)
    return value


def choice(value: Choice, existing: list[str], key: str) -> list[str]:
    """Returns the chosen names; `value` is 'all', a list, or names separated by commas.

    Raises:
        WarplogError: a name is not in `existing`; the text suggests the closest one.
    """
    if value == "all":
        return existing
    names = [str(n).strip() for n in (value if isinstance(value, tuple) else str(value).split(","))]
    for name in names:
        if name not in existing:
            raise WarplogError(f"config: {key}: {name!r} does not exist; {suggest(name, existing)}")
    return names


def choose_families(value: Choice, families: Mapping[str, Family]) -> dict[str, Family]:
    """Returns the chosen families; 'all' excludes drafts and the families of the oracle."""
    names = choice(value, list(families), "families")
    return {
        n: f for n, f in families.items() if n in names and (value != "all" or not (f.draft or f.of_oracle))
    }


def choose_variants(value: Choice, families: Mapping[str, Family]) -> dict[str, tuple[Variant, ...]]:
    """Returns the chosen variants by family, in ladder order; 'all' excludes drafts.

    Families without a chosen variant are left out; the baseline of the others is always included.
    """
    full = {f"{f.name}/{v.name}" for f in families.values() for v in f.variants}
    names = set(choice(value, sorted(full | {n.split("/")[1] for n in full}), "variants"))
    chosen = {}
    for family in families.values():
        named = tuple(
            v
            for v in family.variants
            if (value == "all" and not v.draft)
            or (value != "all" and {v.name, f"{family.name}/{v.name}"} & names)
        )
        if named:
            chosen[family.name] = tuple(v for v in family.variants if v in named or v.name == family.baseline)
    return chosen


def choose_cases(
    value: Choice, families: Mapping[str, Family], chosen: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Returns the timed cases of each family: the named ones, or all cases of a family that was not chosen."""
    existing = sorted({c for f in chosen for c in families[f].cases})
    names = choice(value, existing, "cases")
    return {
        f.name: tuple(c for c in f.cases if c in names or f.name not in chosen) for f in families.values()
    }


def captured(family: Family, cases: Collection[str]) -> tuple[str, ...]:
    """Returns the `profile_cases` of a family that are in `cases` or are never timed."""
    return tuple(c for c in family.profile_cases if c in cases or c not in family.cases)


def choose_figures(
    chosen: Iterable[str], families: Mapping[str, Family], recorded: Mapping[str, Collection[str]] = {}
) -> dict[str, tuple[str, ...]]:
    """Returns the figures of each chosen family, without those that would be empty.

    A figure that needs to be `listed` is drawn only for families that list it under `figures`. `recorded` names the
    families with a record of what is only made on request: `timelines` from inside kernels, `accesses` to memory.
    """

    def has(family: Family, need: str, figure: str) -> bool:
        if need == "listed":
            return figure in family.figures
        return family.name in recorded.get(need, ()) if need in _ON_REQUEST else _HAS[need](family)

    needs = figures.needs().items()
    return {
        name: tuple(
            figure for figure, needed in needs if all(has(families[name], need, figure) for need in needed)
        )
        for name in chosen
    }


def _shares_memory(variant: Variant) -> bool:
    """Returns whether the variant may use shared memory: its sources contain `__shared__`, or others use it for it."""
    files = (variant.file, *variant.headers())
    return variant.library or variant.is_python or any(b"__shared__" in file.read_bytes() for file in files)


_ON_REQUEST = ("timelines", "accesses")
# The other values that NEEDS of a figure may list, and whether a family meets them.
_HAS: Mapping[str, Callable[[Family], bool]] = {
    "counters": lambda family: "ncu" in family.measuring.profilers,
    "shared_memory": lambda family: any(_shares_memory(variant) for variant in family.variants),
    "flops": lambda family: any(family.amount(family.work.flops, case, 1) for case in family.cases.values()),
    "claims": lambda family: bool(family.claims),
    # The figure `overlap` already shows a launch engine by engine; a trace would add nothing.
    "no_overlap_figure": lambda family: "overlap" not in family.figures,
}
