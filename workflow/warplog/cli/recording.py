"""Recording a campaign: a live one's records and tables, without the large files, under results/recorded/."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.records import FamilyRecord, Record, read_json

_KEPT = (
    "campaign/*.json",
    "build/*/*/*/record.json",
    "check/*/*.json",
    "sanitize/*/*.json",
    "time/*/*.json",
    "profile/*/*.json",
    "extract/*/*.json",
    "tune/*/*/*.json",
    "tune/*/*/*.csv",
    "tune/*/*/*.png",
    "aa/round*/time/*/*.json",
    "aa/*.csv",
    "aa/*.md",
    "tables/*",
    "figures/*/*.png",
    "worklog/*.md",
)
_MOST_BYTES = 48 << 20  # a campaign of all families; git packs its records and tables to a tenth
_MOST_CSV_BYTES = 1 << 20  # a longer table is kept as Parquet only


def record_campaign(project: Path, name: str, reports: Sequence[str] = ()) -> tuple[Path, int]:
    """Copies the live campaign in results/ to results/recorded/<name>; the folder and its bytes.

    `reports` names variants whose ncu session is kept too, raw. What was recorded under that name before is
    replaced once the copy is whole.

    Raises:
        WarplogError: there is no finished live campaign, its tables are not live, or it is over _MOST_BYTES.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name):
        raise WarplogError(f"{name!r}: a recorded campaign's name is lower case letters, digits and hyphens")
    results = project / paths.RESULTS
    campaign = _campaign(results)
    target = project / paths.recorded_root(name)
    fresh = target.with_name(f".{name}.part")
    shutil.rmtree(fresh, ignore_errors=True)
    total = 0
    found = {p for pattern in _KEPT for p in results.glob(pattern) if p.is_file() and not _is_long_csv(p)}
    for source in sorted(found | _sessions(results, reports)):
        place = fresh / source.relative_to(results)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        total += source.stat().st_size
    if total > _MOST_BYTES:
        shutil.rmtree(fresh)
        raise WarplogError(
            f"{campaign['campaign']}: {total} bytes, over the {_MOST_BYTES} that a recorded campaign may have"
        )
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return target, total


def _is_long_csv(path: Path) -> bool:
    """Whether it is a long table that lies there as Parquet too."""
    twin = path.with_suffix(".parquet").is_file()
    return path.suffix == ".csv" and twin and path.stat().st_size > _MOST_CSV_BYTES


def _sessions(results: Path, variants: Sequence[str]) -> set[Path]:
    """The ncu reports that hold the named variants."""
    found = set()
    for path in results.glob("profile/*/*.ncu.json"):
        records = FamilyRecord.read(path).variants
        found |= {
            paths.captures(path) / (records.get(variant, {}).get("report") or "-") for variant in variants
        }
    return {path for path in found if path.is_file()}


def _campaign(results: Path) -> Record:
    files = sorted((results / "campaign").glob("*.json"))
    if len(files) != 1:
        raise WarplogError(
            f"{results}/campaign: {len(files)} live campaigns; run `snakemake` on a GPU machine first"
        )
    tables = results / "tables" / "measurements.csv"
    if not tables.is_file():
        raise WarplogError(f"{tables}: is missing; let the campaign finish first")
    head = tables.read_text(encoding="utf-8").splitlines()
    if len(head) < 2 or ",live," not in head[1]:
        raise WarplogError(
            f"{tables}: its rows are not live: these tables were made from a recorded campaign"
        )
    record: Record = read_json(files[0], "record")
    return record
