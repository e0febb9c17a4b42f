"""A small campaign in `FOLDER`, cut from the recorded H200 campaign: transpose, and eight variants of sgemm.

Each process cuts its own, so the records have the format of the shipped ones, and the code under test makes the tables.
"""

import atexit
import json
import shutil
import tempfile
from pathlib import Path

import shipped_families
from warplog.core.columns import FLOORS
from warplog.core.records import FamilyRecord, read_json
from warplog.judge import floors, samples
from warplog.machine import device
from warplog.records import manifest
from warplog.tables.files import write_table, write_tables
from warplog.tables.records import Source
from warplog.tables.rows import make_rows

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
        for path in WHOLE.glob(f"*/h200/{family}.*json"):
            record = FamilyRecord(folder / path.relative_to(WHOLE), json.loads(path.read_text())["variants"])
            record.keep_only(names)
            record.write()
        for name in names:
            shutil.copytree(
                WHOLE / "build" / "sm_90" / family / name, folder / "build" / "sm_90" / family / name
            )
        for stage in ("figures", "profile/h200"):
            if (WHOLE / stage / family).is_dir():
                shutil.copytree(WHOLE / stage / family, folder / stage / family)
    campaign = read_json(folder / "campaign" / "h200.json", "record")
    source = Source(folder, "h200", campaign["arch"], "live", campaign, folder)
    peaks = device.peaks(source.device, {})
    cases = {name: tuple(family.cases) for name, family in FAMILIES.items()}
    write_tables(make_rows(source, FAMILIES, cases, CHOSEN, source.device, peaks), folder / "tables")
    measured = samples.load(folder, counted=False)
    write_table(
        [row | source.labels() for row in floors.table_rows(measured)], FLOORS, folder / "tables" / "floors"
    )
    manifest.write(folder, campaign["campaign"], campaign["commit"])


FOLDER = Path(tempfile.mkdtemp(prefix="warplog-small-")) / "small"
atexit.register(shutil.rmtree, FOLDER.parent)
_cut(FOLDER)
