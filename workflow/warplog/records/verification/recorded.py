"""The form of a recorded campaign: what is kept of a results folder, its records packed by stage, within a limit."""

import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path

from warplog.core import store
from warplog.core.errors import WarplogError, say
from warplog.core.files import read_bytes, write_bytes
from warplog.records.campaign import Campaign
from warplog.records.stages import RECORDED
from warplog.records.verification import manifest

RECORDS = tuple(stage.pattern() for stage in RECORDED if stage.kept)
_OTHERS = (
    "campaign/*.json",
    f"{store.FOLDER}/*{store.SUFFIX}",
    "tables/*.parquet",
    *(f"tables/{name}.csv" for name in ("measurements", "claims", "columns")),  # which people open on the web
)
MOST_BYTES = 16_000_000
_MOST_FILE_BYTES = 64 << 20
_SMALLER = (
    "measure fewer families, variants or cases (config/config.yaml), or capture fewer (`profile_cases`)"
)


def kept(root: Path, figures: Collection[str]) -> dict[str, bytes]:
    """Returns what is kept of a results folder or recorded campaign, by relative path, with the named figures.

    Raises:
        WarplogError: A file cannot be read or is larger than 64 MiB.
    """
    candidates = {path for pattern in (*RECORDS, *_OTHERS) for path in root.glob(pattern)}
    candidates |= {root / figure for figure in figures}
    files = sorted(path for path in candidates if path.is_file())
    return {
        str(path.relative_to(root)): read_bytes(path, _MOST_FILE_BYTES, "too large to keep") for path in files
    }


def shown(project: Path, name: str) -> set[str]:
    """Returns the figures of a recorded campaign, by relative path, that the README.md of its project shows."""
    readme = project / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    return set(re.findall(rf"results/recorded/{re.escape(name)}/(figures/[a-z0-9_]+/[a-z0-9_]+\.png)", text))


def write(target: Path, files: Mapping[str, bytes], campaign: Campaign) -> int:
    """Writes a recorded campaign and returns its size in bytes; a former one is replaced once it is complete.

    Args:
        files: what it holds, by relative path; records are packed.

    Raises:
        WarplogError: The campaign exceeds 16 MB, or a file cannot be written.
    """
    fresh, aside = _beside(target)
    packed = _packed(files)
    total = sum(map(len, packed.values()))
    if total > MOST_BYTES:
        parts: Counter[str] = Counter()
        for name, data in packed.items():
            parts[name if name.startswith(store.FOLDER) else name.partition("/")[0]] += len(data)
        sizes = ", ".join(f"{part} {size / 1e6:.1f}" for part, size in parts.most_common())
        limit = f"{total / 1e6:.1f} MB, over the limit of {MOST_BYTES / 1e6:.0f} MB for recorded campaigns"
        raise WarplogError(f"{campaign.campaign}: {limit} ({sizes}); {_SMALLER}")
    shutil.rmtree(fresh, ignore_errors=True)
    for name, data in packed.items():
        write_bytes(fresh / name, data)
    manifest.write(fresh, campaign.campaign, campaign.commit)
    if target.exists():
        shutil.rmtree(aside, ignore_errors=True)
        target.rename(aside)
    fresh.rename(target)
    shutil.rmtree(aside, ignore_errors=True)
    return total + (target / manifest.NAME).stat().st_size


def restore(target: Path) -> None:
    """Gives a campaign its name back that an interrupted `write` left aside."""
    _, aside = _beside(target)
    if aside.is_dir() and not os.path.lexists(target):
        aside.rename(target)
        say(f"{target}: restored; its replacement was interrupted and had left it as {aside.name}")


def _beside(target: Path) -> tuple[Path, Path]:
    """Returns where the new campaign is written, and where the former one waits until the new one is in its place."""
    return target.with_name(f".{target.name}.part"), target.with_name(f".{target.name}.old")


def _packed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Returns the files of a recorded campaign: the records of each stage in one archive, others as they are."""
    stages = {pattern.partition("/")[0] for pattern in RECORDS}
    others: dict[str, bytes] = {}
    records: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
    for name, data in files.items():
        stage = name.partition("/")[0]
        (records[stage] if stage in stages else others)[name] = data
    return others | {
        f"{store.FOLDER}/{stage}{store.SUFFIX}": store.pack(members) for stage, members in records.items()
    }
