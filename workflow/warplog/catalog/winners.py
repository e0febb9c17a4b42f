"""Best setting of a variant per GPU: a file beside the kernels, which builds use until a search replaces it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from warplog.catalog.contract import Parameter
from warplog.catalog.family import Family, Variant
from warplog.catalog.space import name_of
from warplog.core.files import write_text
from warplog.core.hashing import sha256_of
from warplog.records.door import decode, plain, read_yaml
from warplog.records.fields import CaseName, Frozen, Number, matching
from warplog.records.remarks import NotTuned, PartlyTuned, TunedForEarlier, TuneRemark, Violated

_Setting = Annotated[Mapping[Parameter, int], Meta(max_length=12)]
_Short = Annotated[str, Meta(max_length=200)]


class Scored(Frozen, frozen=True, kw_only=True):
    """A setting and its score."""

    parameters: _Setting
    score_us: float


class Winner(Scored, frozen=True, kw_only=True):
    """The best setting of a variant on one GPU, as `snakemake tune` writes it.

    Attributes:
        score_us: geometric mean of the median cold times of the cases, in microseconds.
        cases: timed cases in the score.
        default: the setting in family.yaml; None if it has no score.
        runner_up: the second-best setting; None if there is none.
        seen: number of settings tried.
        settings: number of valid settings in the search space.
        source_sha256: fingerprint of the source and its headers, without parameters.
        commit: commit of the code that ran the search; "" if unknown.
        found: end of the search, ISO 8601 UTC.
    """

    cases: Annotated[tuple[CaseName, ...], Meta(max_length=8)]
    default: Scored | None
    runner_up: Scored | None
    seen: Number
    settings: Number
    source_sha256: Annotated[str, matching("[0-9a-f]{64}", "a SHA-256 in hexadecimal digits")]
    gpu_name: _Short
    driver: _Short
    nvcc: _Short
    campaign: _Short
    commit: _Short
    found: _Short


def winner_file(family: Family, variant: str, gpu: str) -> Path:
    """Returns the file with the best setting: kernels/<family>/tuned/<gpu>/<variant>.yaml."""
    return family.folder / "tuned" / gpu / f"{variant}.yaml"


def write_winner(path: Path, winner: Winner) -> None:
    """Writes the file with a GPU's best setting.

    Raises:
        WarplogError: The content does not fit its type, or the file cannot be written.
    """
    import yaml

    data = plain(winner)
    decode(data, Winner, str(path))
    head = "# Written by `snakemake tune`; builds for this GPU use these parameters.\n"
    write_text(path, head + yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=120))


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
    winner = read_yaml(path, Winner)
    setting = winner.parameters
    if violated := variant.tune.why_not(setting):
        return replace(variant, remarks=(Violated(gpu=gpu, setting=name_of(setting), rule=violated),))
    remarks: list[TuneRemark] = []
    if winner.seen < winner.settings:
        remarks.append(PartlyTuned(gpu=gpu, seen=winner.seen, settings=winner.settings))
    if winner.source_sha256 != fingerprint(variant):
        remarks.append(TunedForEarlier(gpu=gpu))
    return replace(variant, parameters=variant.tune.parameters(setting), remarks=tuple(remarks))
