"""Best setting of a variant per GPU: a file beside the kernels, which builds use until a search replaces it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from warplog.catalog.family import Family, Variant
from warplog.catalog.space import name_of
from warplog.core.files import write_text
from warplog.core.hashing import sha256_of
from warplog.core.schema import check, read_yaml
from warplog.records.remarks import NotTuned, PartlyTuned, Remark, TunedForEarlier, Violated


def winner_file(family: Family, variant: str, gpu: str) -> Path:
    """Returns the file with the best setting: kernels/<family>/tuned/<gpu>/<variant>.yaml."""
    return family.folder / "tuned" / gpu / f"{variant}.yaml"


def write_winner(path: Path, winner: Mapping[str, Any]) -> None:
    """Writes the file with a GPU's best setting.

    Raises:
        WarplogError: The content does not fit the schema, or the file cannot be written.
    """
    import yaml

    check(winner, "tuned", str(path))
    head = "# Written by `snakemake tune`; builds for this GPU use these parameters.\n"
    write_text(path, head + yaml.safe_dump(dict(winner), sort_keys=False, default_flow_style=None, width=120))


def with_winners(families: Mapping[str, Family], gpu: str) -> dict[str, Family]:
    """Returns the families with this GPU's best settings as parameters of the tuned variants.

    Raises:
        WarplogError: The file with a best setting is invalid.
    """
    return {
        name: replace(family, variants=tuple(_tuned(family, variant, gpu) for variant in family.variants))
        for name, family in families.items()
    }


def fingerprint(variant: Variant) -> str:
    """Returns the SHA-256 of all that is compiled, without parameters, which identifies a search."""
    return sha256_of(*variant.content())


def _tuned(family: Family, variant: Variant, gpu: str) -> Variant:
    """Returns the variant with this GPU's best parameters, and a remark if they are missing, partial or outdated."""
    if variant.tune is None:
        return variant
    path = winner_file(family, variant.name, gpu)
    if not path.is_file():
        return replace(variant, remarks=(NotTuned(gpu=gpu),))
    winner = read_yaml(path, "tuned")
    setting = winner["parameters"]
    if violated := variant.tune.why_not(setting):
        return replace(variant, remarks=(Violated(gpu=gpu, setting=name_of(setting), rule=violated),))
    remarks: list[Remark] = []
    if winner["seen"] < winner["settings"]:
        remarks.append(PartlyTuned(gpu=gpu, seen=winner["seen"], settings=winner["settings"]))
    if winner["source_sha256"] != fingerprint(variant):
        remarks.append(TunedForEarlier(gpu=gpu))
    return replace(variant, parameters=variant.tune.parameters(setting), remarks=tuple(remarks))
