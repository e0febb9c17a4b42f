"""Where a campaign's numbers come from: the GPU to measure on, a recorded campaign, or another results folder."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warplog import device, layout, schema
from warplog.errors import WarplogError
from warplog.records import Record, read_json

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}"  # of a campaign


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
        raise WarplogError(
            f"no GPU here ({device.why_not()}) and no recorded campaign {root}; recorded: {_recorded(project)}"
        )
    record = read_json(files[0], "record")
    if settings["gpu"] not in ("auto", record["gpu"]):
        raise WarplogError(
            f"config: gpu: {settings['gpu']!r}: no GPU here, and {root} is of {record['gpu']}; set recorded to a"
            " campaign of that GPU, or mode to live where jobs are sent to it"
        )
    return root, record


def find(name: str, project: Path = Path()) -> Path | None:
    """The folder with timings that `name` means: itself, or a recorded campaign of `project`; None for neither."""
    recorded = project / layout.recorded_root(name)
    if (Path(name) / "time").is_dir():
        return Path(name)
    return recorded if re.fullmatch(NAME, name) and (recorded / "time").is_dir() else None


def folder_of(name: str, project: Path) -> Path:
    """The folder that `find` finds.

    Raises:
        WarplogError: there is none, the text lists the recorded campaigns.
    """
    if (found := find(name, project)) is not None:
        return found
    known = ", ".join(_recorded(project))
    if Path(name).is_dir():
        raise WarplogError(
            f"{name}: holds no timings; run the campaign on a machine with a GPU, or name another"
            f" ({known or 'none is recorded'})"
        )
    raise WarplogError(f"{name}: no such folder or recorded campaign ({known or 'none here'})")


def _recorded(project: Path) -> list[str]:
    return sorted(p.name for p in (project / layout.RECORDED).glob("*") if p.is_dir() and p.name[0] != ".")
