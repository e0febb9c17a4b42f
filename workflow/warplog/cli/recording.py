"""`warplog record`: copies a live campaign to results/recorded/, without large files."""

import os
import re
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from warplog.core import paths
from warplog.core.errors import WarplogError, say
from warplog.core.records import FamilyRecord, Record, read_json
from warplog.records import manifest

_KEPT = (
    "campaign/*.json",
    "build/*/*/*/record.json",
    "check/*/*.json",
    "sanitize/*/*.json",
    "time/*/*.json",
    "profile/*/*.json",
    "extract/*/*.json",
    "timeline/*/*.json",
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
_MOST_BYTES = 64 << 20  # 17 families take 48 MiB; git compresses records and tables to about a tenth
_MOST_CSV_BYTES = 1 << 20  # a longer table is kept as Parquet only


def record_campaign(
    project: Path, name: str, reports: Sequence[str] = (), replace: bool = False
) -> tuple[Path, int]:
    """Copies the live campaign to results/recorded/<name>; returns the folder and its size in bytes.

    Args:
        reports: variants whose raw ncu reports are copied too, without the path of the project on the GPU's machine.
        replace: whether a campaign of that name may be replaced, which is done after the copy is complete.

    The copy contains a manifest with the SHA-256 of every file. A campaign that an interrupted call left aside gets its
    name back first.

    Raises:
        WarplogError: a folder of that name exists and is not to be replaced, results/ holds no finished live campaign,
            its tables were made from a recorded one, the copy exceeds _MOST_BYTES, or `name` is not valid.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name):
        raise WarplogError(
            f"{name!r}: the name of a recorded campaign consists of lower-case letters, digits and hyphens"
        )
    target = project / paths.recorded_root(name)
    fresh, aside = (target.with_name(f".{name}.{what}") for what in ("part", "old"))
    if aside.is_dir() and not os.path.lexists(target):
        aside.rename(target)
        say(f"{target}: restored; `warplog record --replace` was interrupted and had left it as {aside.name}")
    if os.path.lexists(target) and not replace:
        raise WarplogError(f"{target}: exists; choose another name, or replace it with --replace")
    results = project / paths.RESULTS
    campaign = _campaign(results)
    shutil.rmtree(fresh, ignore_errors=True)
    total = 0
    found = {p for pattern in _KEPT for p in results.glob(pattern) if p.is_file() and not _is_long_csv(p)}
    raw = _sessions(results, reports)
    for source in sorted(found | raw):
        place = fresh / source.relative_to(results)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        total += source.stat().st_size
    for report in raw:
        _anonymise(fresh, fresh / report.relative_to(results))
    if total > _MOST_BYTES:
        shutil.rmtree(fresh)
        raise WarplogError(
            f"{campaign['campaign']}: {total} bytes, over the limit of {_MOST_BYTES} for recorded campaigns"
        )
    manifest.write(fresh, campaign)
    if target.exists():
        shutil.rmtree(aside, ignore_errors=True)
        target.rename(aside)
    fresh.rename(target)
    shutil.rmtree(aside, ignore_errors=True)
    return target, total + (target / manifest.NAME).stat().st_size


def _is_long_csv(path: Path) -> bool:
    """Returns whether the file is a long CSV table that also exists as Parquet."""
    twin = path.with_suffix(".parquet").is_file()
    return path.suffix == ".csv" and twin and path.stat().st_size > _MOST_CSV_BYTES


def _sessions(results: Path, variants: Sequence[str]) -> set[Path]:
    """Returns the ncu reports that contain the named variants."""
    found = set()
    for path in results.glob("profile/*/*.ncu.json"):
        records = FamilyRecord.read(path).variants
        found |= {
            paths.captures(path) / (records.get(variant, {}).get("report") or "-") for variant in variants
        }
    return {path for path in found if path.is_file()}


def _anonymise(recorded: Path, report: Path) -> None:
    """Overwrites the path of the project in a raw report, and writes the new digest into the records that name it.

    The line tables of the kernels (-lineinfo) hold the paths of their folder and of those of headers. The length of the
    file does not change.
    """
    data = report.read_bytes()
    before = sha256(data).hexdigest()
    folder = re.escape(f"/kernels/{report.parent.name}".encode())
    for project in sorted(
        set(re.findall(rb"/[\x20-\x7e]{1,400}?(?=" + folder + rb")", data)), key=len, reverse=True
    ):
        data = data.replace(project, b"/".ljust(len(project), b"_"))
    report.write_bytes(data)
    for record in recorded.glob("extract/*/*.json"):
        text = record.read_text(encoding="utf-8")
        if before in text:
            record.write_text(text.replace(before, sha256(data).hexdigest()), encoding="utf-8")


def _campaign(results: Path) -> Record:
    files = sorted((results / "campaign").glob("*.json"))
    if len(files) != 1:
        raise WarplogError(
            f"{results}/campaign: {len(files)} live campaigns, expected one; run `snakemake` on a machine with a GPU,"
            " each model in a folder of its own (--directory)"
        )
    tables = results / "tables" / "measurements.csv"
    if not tables.is_file():
        raise WarplogError(f"{tables}: is missing; finish the campaign first")
    head = tables.read_text(encoding="utf-8").splitlines()
    if len(head) < 2 or ",live," not in head[1]:
        raise WarplogError(
            f"{tables}: the rows are not live; these tables were made from a recorded campaign"
        )
    record: Record = read_json(files[0], "record")
    return record
