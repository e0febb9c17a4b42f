"""Where a campaign's numbers come from: the GPU to measure on, or a recorded campaign."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warplog import device, layout, schema
from warplog.errors import WarplogError
from warplog.records import Record, read_json


def live_gpu(settings: Mapping[str, Any], found: device.Gpu | None, project: Path) -> tuple[str, str]:
    """Slug and architecture of the GPU to measure on: the one here (`found`), or the one that is named.

    Raises:
        WarplogError: it is not here, and config/gpus.yaml does not know it.
    """
    if settings["gpu"] in ("auto", getattr(found, "slug", None)) and found is not None:
        return found.slug, found.arch
    table = schema.read_yaml(project / "config" / "gpus.yaml", "gpus")
    if settings["gpu"] not in table:
        raise WarplogError(
            f"config: gpu: {settings['gpu']!r} is not in config/gpus.yaml; {schema.suggest(settings['gpu'], table)}"
            " (mode: live without a GPU here needs a name)"
        )
    return settings["gpu"], table[settings["gpu"]]["arch"]


def recorded_campaign(settings: Mapping[str, Any], project: Path) -> tuple[Path, Record]:
    """Folder and campaign record of the recorded campaign `settings["recorded"]`.

    Raises:
        WarplogError: there is none of that name, the text lists those that are there; or `settings["gpu"]` names
            another GPU than its own.
    """
    root = layout.recorded_root(settings["recorded"])
    files = sorted((project / root / "campaign").glob("*.json"))
    if not files:
        known = sorted(p.name for p in (project / layout.RECORDED).glob("*") if p.is_dir())
        raise WarplogError(
            f"no GPU here ({device.why_not()}) and no recorded campaign {root}; recorded: {known}"
        )
    record = read_json(files[0], "record")
    if settings["gpu"] not in ("auto", record["gpu"]):
        raise WarplogError(
            f"config: gpu: {settings['gpu']!r}: no GPU here, and {root} is of {record['gpu']}; set recorded to a"
            " campaign of that GPU, or mode to live where jobs are sent to it"
        )
    return root, record
