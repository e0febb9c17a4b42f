"""The script of a GPU stage that takes its records from the campaign results/recorded/h200 instead of measuring.

`replay` puts it in the place of these scripts, in a copy of the project. The campaign then is replayed-<gpu>, and its
records are those of the copy's GPU and builds; all else in them is as it was recorded.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from warplog.core import paths, store
from warplog.plan.script import job
from warplog.records import door
from warplog.records.build import Build
from warplog.records.campaign import Campaign
from warplog.records.family_file import FamilyRecord
from warplog.records.profile import Profile
from warplog.records.stages import RECORDED

SCRIPTS = (
    "build/start_campaign",
    *(f"measure/{name}" for name in ("check_family", "time_family", "profile_ncu", "profile_nsys")),
    "evaluate/extract_family",
)


def replay(project: Path) -> None:
    """Lets the GPU stages of a copied project take their records from results/recorded/h200, which it must have."""
    for name in SCRIPTS:
        shutil.copy(__file__, project / "workflow" / "scripts" / f"{name}.py")


def write_campaign(root: Path, gpu: str, record: Path) -> None:
    """Writes the recorded campaign as another one: with the copy's GPU, another name and no id."""
    (source,) = (root / "campaign").glob("*.json")
    recorded = door.read(source, Campaign)
    door.write(record, structs.replace(recorded, id="", gpu=gpu, campaign=f"replayed-{gpu}"))


def write_family(root: Path, gpu: str, record: Path, builds: Mapping[str, Any]) -> None:
    """Writes the recorded results of a stage for the variants in `builds`, as if they were of these builds."""
    stage = record.parent.parent.name
    (source,) = store.glob(root, f"{stage}/*/{record.name}")
    kind = next(one.record for one in RECORDED if one.of_family and one.folder == stage)
    recorded, made = FamilyRecord.read(source, kind).variants, FamilyRecord(record, kind, {})
    for variant, build in builds.items():
        one = recorded[variant]
        of_build = {
            key: getattr(build, key) for key in ("source_sha256", "library_sha256") if hasattr(one, key)
        }
        made.put(structs.replace(one, **of_build, gpu=gpu))
    made.write()


def main(inputs: Any, variants: Sequence[str], gpu: str, record: Path) -> None:
    root = paths.project() / paths.recorded_root("h200")
    if record.parent.name == "campaign":
        write_campaign(root, gpu, record)
    elif files := inputs.get("builds"):
        built = [door.read(Path(path), Build) for path in files]
        write_family(root, gpu, record, dict(zip(variants, built, strict=True)))
    else:  # extracted metrics name no build
        write_family(root, gpu, record, FamilyRecord.read(Path(inputs.ncu), Profile).variants)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        variants = snakemake.params.get("job", {}).get("variants", ())
        main(snakemake.input, variants, snakemake.wildcards.gpu, Path(snakemake.output[0]))
