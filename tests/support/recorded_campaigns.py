"""Recorded campaigns for tests: one of the repository as a folder of plain files, and the record of one made up."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

import shared
from warplog.core import store
from warplog.records.campaign import Campaign, Gpu
from warplog.records.verification import manifest

FOLDER = Path(__file__).parents[2] / "results" / "recorded"
CAMPAIGN = Campaign(
    campaign="made-up",
    gpu="h200",
    gpu_name="NVIDIA H200",
    arch="sm_90",
    origin="live",
    commit="",
    content_sha256="0" * 64,
    started="2026-01-01T00:00:00Z",
    driver="580.0",
    cuda="13.0",
    clocks="unlocked",
    device=Gpu(
        slug="h200",
        name="NVIDIA H200",
        uuid="GPU-0",
        compute_capability=(9, 0),
        arch="sm_90",
        sms=132,
        memory_bytes=150_000_000_000,
        driver="580.0",
        cuda_driver="13.0",
        max_sm_mhz=1980,
        power_limit_w=700.0,
        pci_bus_id="0",
    ),
    tools={},
)


def campaign(**changes: Any) -> Campaign:
    """Returns the record of a campaign on an H200."""
    return msgspec.structs.replace(CAMPAIGN, **changes)


def unpacked(name: str) -> Path:
    """Returns a copy of a recorded campaign of the repository, with its records as files and without a manifest."""

    def make(folder: Path) -> None:
        shutil.copytree(FOLDER / name, folder)
        unpack(folder)
        (folder / manifest.NAME).unlink()

    return shared.made(name, make)


def unpack(folder: Path) -> None:
    """Puts the records of a campaign in place of its archives."""
    for archive in folder.glob(f"{store.FOLDER}/*{store.SUFFIX}"):
        for member, data in store.members(archive).items():
            path = folder / member
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        archive.unlink()
    if (folder / store.FOLDER).is_dir():
        (folder / store.FOLDER).rmdir()


def repack(archive: Path, change: Any) -> None:
    """Changes the JSON of the members of an archive in place; `change` gets a dict of their parsed contents by name."""
    members = {name: json.loads(data) for name, data in store.members(archive).items()}
    change(members)
    archive.write_bytes(store.pack({name: json.dumps(data).encode() for name, data in members.items()}))
