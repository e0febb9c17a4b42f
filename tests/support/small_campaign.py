"""A small campaign in `FOLDER`, cut from the recorded H200 campaign: transpose, and eight variants of sgemm.

Each process cuts its own, so the records have the format of the shipped ones, and the code under test makes the tables.
"""

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import shipped_families
from warplog.catalog.family import Family
from warplog.core import store
from warplog.core.columns import FLOORS
from warplog.core.files import write_bytes
from warplog.judge import floors, samples
from warplog.machine import device
from warplog.plan import evaluate
from warplog.records import door, stages
from warplog.records.campaign import Campaign
from warplog.records.family_file import FamilyRecord
from warplog.records.verification import manifest
from warplog.tables.files import write_table, write_tables
from warplog.tables.rows import make_rows
from warplog.tables.verified_records import Source

RECORDED = Path(__file__).parents[2] / "results" / "recorded"
WHOLE = RECORDED / "h200"
STEPS = (
    "naive",
    "gmem_coalesced",
    "smem_tiled",
    "blocktile_1d",
    "blocktile_2d",
    "vectorized",
    "warptile",
    "cublas",
)
FAMILIES = {name: shipped_families.FAMILIES[name] for name in ("sgemm", "transpose")}


def cut(name: str, folder: Path, families: Mapping[str, Family] = FAMILIES) -> None:
    """Writes records, tables and figures of these families of a recorded campaign; of sgemm, the STEPS."""
    whole = RECORDED / name
    chosen = {
        name: tuple(
            v
            for v in family.variants
            if (name, v.name) not in shipped_families.NEW and (name != "sgemm" or v.name in STEPS)
        )
        for name, family in families.items()
    }
    shutil.copytree(whole / "campaign", folder / "campaign")
    (about,) = (folder / "campaign").iterdir()
    for family, variants in chosen.items():
        names = [variant.name for variant in variants]
        for stage in stages.RECORDED:
            for path in stage.files(whole, family=family) if stage.of_family else []:
                record = FamilyRecord.read(path, stage.record)
                record.path = folder / path.relative_to(whole)
                record.keep_only(names)
                record.write()
        for name in names:
            build = f"build/sm_90/{family}/{name}/record.json"
            write_bytes(folder / build, store.read(whole / build, 1 << 20, ""))
        if (whole / "figures" / family).is_dir():
            shutil.copytree(whole / "figures" / family, folder / "figures" / family)
    campaign = door.read(about, Campaign)
    source = Source(folder, "live", campaign, folder)
    peaks = device.peaks(campaign.device, {})
    cases = {name: tuple(family.cases) for name, family in families.items()}
    write_tables(make_rows(source, families, cases, chosen, peaks), folder / "tables")
    measured = samples.load(folder, counted=False)
    write_table(
        [row | source.labels() for row in floors.table_rows(measured)], FLOORS, folder / "tables" / "floors"
    )
    evaluate.write_analysis(chosen, folder / "tables")
    manifest.write(folder, campaign.campaign, campaign.commit)


FOLDER = Path(tempfile.mkdtemp(prefix="warplog-small-")) / "small"
atexit.register(shutil.rmtree, FOLDER.parent)
cut("h200", FOLDER)
