"""A small campaign in `FOLDER`, cut from the recorded H200 campaign: transpose, and eight variants of sgemm.

It is cut for each run of the tests, so the records have the format of the shipped ones, and the code under test makes
the tables.
"""

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec import structs

import shared
import shipped_families
from warplog.catalog.family import Family
from warplog.core import store
from warplog.core.columns import FLOORS
from warplog.core.files import write_bytes
from warplog.judge import floors, samples
from warplog.machine import device
from warplog.plan import evaluate
from warplog.records import door, stages
from warplog.records.build import Chips
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
UNBUILT = stages.FOR_CHIPS.file.format(arch="sm_80", family="sgemm")
FAMILIES = {name: shipped_families.FAMILIES[name] for name in ("sgemm", "transpose")}


def cut(name: str, folder: Path, families: Mapping[str, Family] = FAMILIES, chips: bool = False) -> None:
    """Writes records, tables and figures of these families of a recorded campaign; of sgemm, the STEPS.

    With `chips`, builds for other chips too, except the one at UNBUILT: `snakemake chips` has something to compile.
    """
    whole = RECORDED / name
    chosen = {
        name: tuple(
            v
            for v in family.variants
            if (name, v.name) not in shipped_families.LACKING and (name != "sgemm" or v.name in STEPS)
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
        for path in set(stages.FOR_CHIPS.files(whole, family=family) if chips else ()) - {whole / UNBUILT}:
            record = door.read(path, Chips)
            builds = {name: build for name, build in record.variants.items() if name in names}
            door.write(folder / path.relative_to(whole), structs.replace(record, variants=builds))
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
    evaluate.write_analysis(families, chosen, folder / "tables")
    manifest.write(folder, campaign.campaign, campaign.commit)


FOLDER = shared.made("small", partial(cut, "h200"))
