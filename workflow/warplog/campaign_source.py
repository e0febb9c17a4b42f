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


def recorded_campaign(name: str, project: Path) -> tuple[Path, Record]:
    """Folder and campaign record of a recorded campaign.

    Raises:
        WarplogError: there is none of that name; the text lists those that are there.
    """
    root = layout.recorded_root(name)
    files = sorted((project / root / "campaign").glob("*.json"))
    if not files:
        known = sorted(p.name for p in (project / layout.RECORDED).glob("*") if p.is_dir())
        raise WarplogError(
            f"no GPU here ({device.why_not()}) and no recorded campaign {root}; recorded: {known}"
        )
    return root, read_json(files[0], "record")
