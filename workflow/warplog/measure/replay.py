"""Takes the records of the GPU stages from a recorded campaign, to try a cluster or a remote machine without a GPU.

The environment variable WARPLOG_REPLAY names the campaign. Builds, tables, figures and pages are made as usual. The
replayed campaign is named replayed-<gpu>, and its rows keep the GPU name, board and date of the recorded ones.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warplog.core import paths
from warplog.core.errors import WarplogError, note
from warplog.core.records import FamilyRecord, Record, read_json, write_json
from warplog.core.verification.digests import check_manifest

VARIABLE = "WARPLOG_REPLAY"


def wanted(project: Path) -> Path | None:
    """Returns the folder of the campaign to replay; None if the GPU stages are to measure.

    Raises:
        WarplogError: No recorded campaign has that name, or a file is not as its manifest says.
    """
    name = os.environ.get(VARIABLE, "")
    if not name:
        return None
    places = [place / paths.recorded_root(name) for place in (Path(), project)]
    found = next((place for place in places if (place / "campaign").is_dir()), None)
    if found is None:
        raise WarplogError(f"{VARIABLE}={name}: no recorded campaign {places[0]}; unset it to measure")
    check_manifest(found)
    return found


def replay_campaign(root: Path, gpu: str, record: Path) -> None:
    """Writes the campaign record of a replayed campaign.

    Raises:
        WarplogError: The recorded one is missing or damaged, or the file cannot be written.
    """
    (source,) = sorted((root / "campaign").glob("*.json"))
    campaign = read_json(source, "record")
    campaign.pop("id", None)  # it is another campaign
    write_json(record, {**campaign, "gpu": gpu, "campaign": f"replayed-{gpu}"}, "record")


def replay_family(
    root: Path, gpu: str, record: Path, variants: Sequence[str], builds: Sequence[Path]
) -> None:
    """Writes a family's records of a stage: those of the replayed campaign, as if they were of these builds.

    Args:
        root: folder of the recorded campaign.
        gpu: slug of the campaign's GPU; that of the recorded one may be another.
        record: the record file to write, <results>/<stage>/<gpu>/<family>.json.
        variants: names of the variants.
        builds: record.json of each variant's build, in the same order; empty if the stage does not refer to builds.

    Raises:
        WarplogError: A recorded or build record is missing or damaged, or the file cannot be written.
    """
    stage, name = record.parent.parent.name, record.name
    source = next(iter(sorted((root / stage).glob(f"*/{name}"))), None)
    if source is None:
        raise WarplogError(f"{root / stage}: no records of {name}, which {VARIABLE} asks for")
    recorded = FamilyRecord.read(source).variants
    made = FamilyRecord(record, {})
    of_build = dict(zip(variants, builds, strict=True)) if builds else {}
    for variant in variants:
        if variant in recorded:
            made.put(_moved(recorded[variant], gpu, read_json(of_build[variant]) if of_build else {}))
    note(f"  {stage:7} {name.partition('.')[0]}  replayed from {root}")
    made.write()


def _moved(record: Record, gpu: str, build: Record) -> Record:
    named = ("source_sha256", "library_sha256")
    keys: dict[str, Any] = {key: build[key] for key in named if key in record and key in build}
    return {**record, **keys, "gpu": gpu}
