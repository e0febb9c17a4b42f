"""Writes the C++ table of the fastest variant per case, which a family's variant `best_of` uses for dispatch.

The table is generated from the measurements of a campaign, which it names; nothing in it is chosen by hand.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.catalog import winners as tuned
from warplog.catalog.family import Family, Variant
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.tables import view

if TYPE_CHECKING:
    import pandas as pd

NAME = "best_of"
_INCLUDE = re.compile(r'^#include [<"][^<>"\n]+[>"]$', re.MULTILINE)


def write(family: Family, tables: Path) -> Path:
    """Writes `best_of.cuh` beside the family's sources, from the tables in folder `tables`; returns its path.

    Raises:
        WarplogError: The family has no variant `best_of`, or the tables contain no time of the others.
    """
    family.variant(NAME)
    campaign_tables = view.load(tables, family.name)
    as_measured = tuned.with_winners({family.name: family}, str(campaign_tables.measurements["gpu"].iloc[0]))
    path = family.folder / f"{NAME}.cuh"
    write_text(
        path, text(as_measured[family.name], campaign_tables.measurements, _multiprocessors(campaign_tables))
    )
    return path


def text(family: Family, measurements: "pd.DataFrame", multiprocessors: int) -> str:
    """Returns the header: for each minimum architecture of the variants, the fastest variants that run on it.

    Raises:
        WarplogError: No candidate has a time.
    """
    candidates = {v.name: v for v in family.variants if _can_be_called(v, family)}
    times = measurements[(measurements["status"] == "ok") & measurements["variant"].isin(list(candidates))]
    archs = sorted({_number(candidates[name]) for name in times["variant"]}, reverse=True)
    if not archs:
        raise WarplogError(f"{family.file}: {NAME}: the tables contain none of its times; run a campaign")
    origin = times.iloc[0]
    lines = [
        f"// Written by `warplog best-of {family.name}`: the fastest variant at each case of campaign",
        f"// {origin['campaign']}, {origin['gpu_name']}. Not to be edited.",
        "#pragma once",
        "",
        f"constexpr int MULTIPROCESSORS = {multiprocessors};  // of that GPU",
    ]
    for place, arch in enumerate(archs):
        winners = _winners(family, times, {n: v for n, v in candidates.items() if _number(v) <= arch})
        if winners:
            lines += [
                f"\n#{'elif' if place else 'if'} __CUDA_ARCH_LIST__ >= {arch}0",
                *_branch(family, winners),
            ]
    return "\n".join([*lines, "\n#endif", ""])


def _can_be_called(variant: Variant, family: Family) -> bool:
    """Returns whether best_of may call the variant: it takes unaligned shapes and runs on later architectures.

    `at_most` does not matter: it leaves out cases that would take too long, so the variant is not in their rows.
    """
    limits = variant.requires
    special = limits.multiple_of or limits.where or limits.arch.endswith("a") or variant.compile.record()
    return variant.name not in (NAME, family.baseline) and not special


def _number(variant: Variant) -> int:
    return int(variant.requires.arch.removeprefix("sm_"))


def _winners(family: Family, times: "pd.DataFrame", candidates: Mapping[str, Variant]) -> dict[str, Variant]:
    """Returns the fastest candidate of each case for which any has a time, in the order of family.yaml."""
    mine = times[times["variant"].isin(list(candidates))]
    fastest = mine.loc[mine.groupby("case")["median_us"].idxmin()].set_index("case")["variant"]
    return {case: candidates[str(fastest[case])] for case in family.cases if case in fastest.index}


def _branch(family: Family, winners: Mapping[str, Variant]) -> list[str]:
    """Returns the variants' sources, each in a separate namespace, and the table."""
    called = {v.name: v for v in winners.values()}
    sources = [v.file.read_text(encoding="utf-8") for v in called.values()]
    includes = sorted({line for source in sources for line in _INCLUDE.findall(source)})
    lines = ["", *includes]
    for variant in called.values():
        lines += _namespace(variant)
    sizes = [a.name for a in family.arguments if a.kind == "scalar" and a.dtype == "int32"]
    lines += ["", f"constexpr Row TABLE[] = {{  // {', '.join(sizes)}"]
    for case, variant in winners.items():
        values = ", ".join(str(int(family.cases[case].values[size])) for size in sizes)
        lines.append(f"    {{{values}, {variant.name}::launch_{variant.name}}},")
    return [*lines, "};"]


def _namespace(variant: Variant) -> Sequence[str]:
    constants = ", ".join(f"{name} = {value}" for name, value in variant.parameters.items())
    return [
        "",
        f"#define launch launch_{variant.name}",
        f"namespace {variant.name} {{",
        *([f"constexpr int {constants};"] if constants else []),
        f'#include "{variant.file.name}"',
        f"}}  // namespace {variant.name}",
        "#undef launch",
    ]


def _multiprocessors(tables: view.FigureTables) -> int:
    counts = [] if "sms" not in tables.gpus else tables.gpus["sms"].dropna().tolist()
    if not counts:
        raise WarplogError(f"{NAME}: the table gpus lacks the number of multiprocessors; rebuild the tables")
    return int(counts[0])
