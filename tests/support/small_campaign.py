"""A small campaign in `FOLDER`, cut from the recorded H200 campaign: transpose, and eight variants of sgemm.

Each process cuts its own, so the records have the format of the shipped ones, and the code under test makes the tables.
"""

import atexit
import shutil
import tempfile
from pathlib import Path

import shipped_families
from warplog.core import store
from warplog.core.columns import FLOORS
from warplog.core.files import write_bytes
from warplog.judge import floors, samples
from warplog.machine import device
from warplog.plan import evaluate
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.family_file import FamilyRecord
from warplog.records.stages import RECORDED
from warplog.records.verification import manifest
from warplog.tables.files import write_table, write_tables
from warplog.tables.rows import make_rows
from warplog.tables.verified_records import Source

WHOLE = Path(__file__).parents[2] / "results" / "recorded" / "h200"
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
CHOSEN = {
    name: tuple(v for v in family.variants if name != "sgemm" or v.name in STEPS)
    for name, family in FAMILIES.items()
}


def _cut(folder: Path) -> None:
    """Writes records, tables and figures of the campaign."""
    shutil.copytree(WHOLE / "campaign", folder / "campaign")
    for family, variants in CHOSEN.items():
        names = [variant.name for variant in variants]
        for stage in RECORDED:
            for path in stage.files(WHOLE, family=family) if stage.of_family else []:
                record = FamilyRecord.read(path, stage.record)
                record.path = folder / path.relative_to(WHOLE)
                record.keep_only(names)
                record.write()
        for name in names:
            build = f"build/sm_90/{family}/{name}/record.json"
            write_bytes(folder / build, store.read(WHOLE / build, 1 << 20, ""))
        if (WHOLE / "figures" / family).is_dir():
            shutil.copytree(WHOLE / "figures" / family, folder / "figures" / family)
    campaign = door.read(folder / "campaign" / "h200.json", Campaign)
    source = Source(folder, "live", campaign, folder)
    peaks = device.peaks(campaign.device, {})
    cases = {name: tuple(family.cases) for name, family in FAMILIES.items()}
    write_tables(make_rows(source, FAMILIES, cases, CHOSEN, peaks), folder / "tables")
    measured = samples.load(folder, counted=False)
    write_table(
        [row | source.labels() for row in floors.table_rows(measured)], FLOORS, folder / "tables" / "floors"
    )
    evaluate.write_analysis(CHOSEN, folder / "tables")
    manifest.write(folder, campaign.campaign, campaign.commit)


FOLDER = Path(tempfile.mkdtemp(prefix="warplog-small-")) / "small"
atexit.register(shutil.rmtree, FOLDER.parent)
_cut(FOLDER)
