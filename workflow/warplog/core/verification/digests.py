"""Digests of files: the manifest of a recorded campaign, and what the jobs of a campaign derived from what.

Both find a file whose content changed while its time did not.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from warplog import __version__
from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.records import SCHEMA_VERSION, Record, read_json, sha256_file, write_json

MANIFEST = "manifest.json"
FOLDER = "digests"


def write_manifest(folder: Path, campaign: Record) -> None:
    """Writes `folder`/manifest.json: the SHA-256 of every file, with name and commit of the campaign.

    Raises:
        WarplogError: A file cannot be read or is a symbolic link, or the manifest cannot be written.
    """
    if found := _links(folder):
        raise WarplogError(found[0])
    head = {"schema": SCHEMA_VERSION, "campaign": campaign["campaign"], "commit": campaign["commit"]}
    files = _digests(folder, _files(folder))
    write_json(folder / MANIFEST, {**head, "warplog": __version__, "files": files}, "manifest")


def check_manifest(folder: Path) -> None:
    """Compares every file of a recorded campaign with its manifest.

    Raises:
        WarplogError: A file was changed, removed or added, or the manifest is missing; the text names the first one.
    """
    if found := manifest_problems(folder):
        more = f" ({len(found) - 1} more: `warplog verify {folder}`)" if len(found) > 1 else ""
        raise WarplogError(found[0] + more)


def manifest_problems(folder: Path) -> list[str]:
    """Returns one line with a remedy per file that is not as the manifest says.

    Nothing outside of the folder is read. Only a folder in results/recorded/ must have a manifest.
    """
    path = folder / MANIFEST
    places = folder.absolute(), folder.resolve()
    if not path.exists() and not any(place.parent.match(str(paths.RECORDED)) for place in places):
        return []
    if found := _links(folder):
        return found
    if not path.exists():
        write = f"`warplog verify {folder} --write-manifest` writes one and trusts the files as they are now"
        return [f"{folder}: has no {MANIFEST}, so nothing shows whether a file was changed; {write}"]
    written: Mapping[str, str] = read_json(path, "manifest")["files"]
    here = {str(file.relative_to(folder)): file for file in _files(folder)}
    restore = f"restore it (git checkout -- {folder}) or record the campaign again (warplog record)"
    for name, digest in written.items():
        if name not in here:
            leaves = Path(name).is_absolute() or ".." in Path(name).parts
            what = f"{path}: {name!r} leads out of the folder" if leaves else f"{folder / name}: is missing"
            found.append(f"{what}; {restore}")
        elif sha256_file(here[name]) != digest:
            found.append(f"{folder / name}: was changed after it was written; {restore}")
    added = sorted(here.keys() - written.keys())
    return found + [f"{folder / name}: is not in {MANIFEST}; remove it" for name in added]


def write_digests(path: Path, target: str, files: Iterable[Path], made_from: Iterable[Path]) -> None:
    """Writes the digests of the files that a job wrote, and of those that it read, relative to the working directory.

    Args:
        path: a file below results/digests/.
        target: what Snakemake is asked for to make the files again.
    """
    digests: dict[str, Any] = {"schema": SCHEMA_VERSION, "target": target}
    digests |= {"files": _digests(Path(), files), "made_from": _digests(Path(), made_from)}
    write_json(path, digests, "digests")


def derived_problems(results: Path) -> list[str]:
    """Returns one line per derived file that is not as its job wrote it, or whose origins are not as its job read them.

    Files that were removed together with all others of their job are not missed. Each line ends with a remedy.

    Raises:
        WarplogError: A file of digests is damaged.
    """
    jobs = _jobs(results)
    damaged = {name for job in jobs for name, _ in _changed(results.parent, job["files"])}
    found = []
    for job in jobs:
        remedy = f"run `uv run snakemake --forcerun {job['target']}`"
        for name, why in _changed(results.parent, job["files"]):
            found.append(f"{name}: {why}; delete it and {remedy}")
        for name, why in _changed(results.parent, job["made_from"]):
            if name not in damaged:
                found.append(f"{job['target']}: {name}, which it was made from, {why}; {remedy}")
    return found


def derived_count(results: Path) -> int:
    """Returns the number of derived files in a results folder whose digests are known."""
    return sum(len(job["files"]) for job in _jobs(results))


def _jobs(results: Path) -> list[Mapping[str, Any]]:
    """Returns the digests of all jobs whose files were not removed altogether."""
    found = [read_json(path, "digests") for path in sorted((results / FOLDER).rglob("*.json"))]
    return [job for job in found if any((results.parent / name).exists() for name in job["files"])]


def _files(folder: Path) -> list[Path]:
    """Returns all files below the folder except the manifest."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / MANIFEST]


def _links(folder: Path) -> list[str]:
    return [
        f"{path}: is a symbolic link, which may lead out of the campaign; remove it"
        for path in sorted(folder.rglob("*"))
        if path.is_symlink()
    ]


def _digests(base: Path, files: Iterable[Path]) -> dict[str, str]:
    return {str(path.relative_to(base)): sha256_file(path) for path in sorted(set(files))}


def _changed(base: Path, written: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns name and reason of each file that is missing or has another digest."""
    found = []
    for name, digest in written.items():
        path = base / name
        if not path.is_file():
            found.append((name, "is missing"))
        elif sha256_file(path) != digest:
            found.append((name, "was changed after it was written"))
    return found
