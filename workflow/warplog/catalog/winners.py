"""The best setting of a variant on a GPU: a file beside the kernel, used by every build until a search replaces it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from warplog.catalog.family import Family, Variant
from warplog.catalog.space import name_of
from warplog.core import text
from warplog.core.files import write_text
from warplog.core.records import sha256_file, sha256_of
from warplog.core.schema import check, read_yaml


def winner_file(family: Family, variant: str, gpu: str) -> Path:
    """Where the best setting is kept: kernels/<family>/tuned/<gpu>/<variant>.yaml."""
    return family.folder / "tuned" / gpu / f"{variant}.yaml"


def write_winner(path: Path, winner: Mapping[str, Any]) -> None:
    """Writes the file of a GPU's best setting.

    Raises:
        WarplogError: it does not fit the schema, or cannot be written.
    """
    import yaml

    check(winner, "tuned", str(path))
    head = "# Written by `snakemake tune`; builds for this GPU take these parameters.\n"
    write_text(path, head + yaml.safe_dump(dict(winner), sort_keys=False, default_flow_style=None, width=120))


def with_winners(families: Mapping[str, Family], gpu: str) -> dict[str, Family]:
    """The families with this GPU's best settings as the parameters of their tuned variants.

    Raises:
        WarplogError: a winner's file is damaged.
    """
    return {
        name: replace(family, variants=tuple(_tuned(family, variant, gpu) for variant in family.variants))
        for name, family in families.items()
    }


def fingerprint(variant: Variant) -> str:
    """Of the source and its headers, whatever the parameters: what a search belongs to."""
    return sha256_of(sha256_file(variant.file), [sha256_file(path) for path in variant.headers()])


def _tuned(family: Family, variant: Variant, gpu: str) -> Variant:
    """The variant with the parameters of this GPU's winner and a remark where it is not what it could be."""
    if variant.tune is None:
        return variant
    path = winner_file(family, variant.name, gpu)
    if not path.is_file():
        return replace(variant, remark=f"default parameters: not tuned on {gpu}")
    winner = read_yaml(path, "tuned")
    setting = winner["parameters"]
    if broken := variant.tune.why_not(setting):
        remark = f"default parameters: the best of {gpu} ({name_of(setting)}) breaks {broken!r}, tune again"
        return replace(variant, remark=remark)
    told = []
    if winner["seen"] < winner["settings"]:
        told.append(f"tuned on {gpu} with {winner['seen']} of {winner['settings']} settings seen")
    if winner["source_sha256"] != fingerprint(variant):
        told.append(f"tuned on {gpu} for an earlier version of this source")
    return replace(variant, parameters=variant.tune.parameters(setting), remark=text.join_notes(*told))
