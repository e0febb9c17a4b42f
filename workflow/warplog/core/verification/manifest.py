"""The manifest of a recorded campaign: the SHA-256 of every file, which finds what changed while its time did not."""

from collections.abc import Mapping
from pathlib import Path

from warplog import __version__
from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file
from warplog.core.records import SCHEMA_VERSION, Record, read_json, write_json

NAME = "manifest.json"


def write(folder: Path, campaign: Record) -> None:
    """Writes `folder`/manifest.json: the SHA-256 of every file, with name and commit of the campaign.

    Raises:
        WarplogError: A file cannot be read or is a symbolic link, or the manifest cannot be written.
    """
    if found := _links(folder):
        raise WarplogError(found[0])
    head = {"schema": SCHEMA_VERSION, "campaign": campaign["campaign"], "commit": campaign["commit"]}
    files = {str(path.relative_to(folder)): sha256_file(path) for path in _files(folder)}
    write_json(folder / NAME, {**head, "warplog": __version__, "files": files}, "manifest")


def check(folder: Path) -> None:
    """Compares every file of a recorded campaign with its manifest.

    Raises:
        WarplogError: A file was changed, removed or added, or the manifest is missing; the text names the first one.
    """
    if found := problems(folder):
        more = f" ({len(found) - 1} more: `warplog verify {folder}`)" if len(found) > 1 else ""
        raise WarplogError(found[0] + more)


def problems(folder: Path) -> list[str]:
    """Returns one line with a remedy per file that is not as the manifest says.

    Nothing outside of the folder is read. Only a folder in results/recorded/ must have a manifest.
    """
    path = folder / NAME
    places = folder.absolute(), folder.resolve()
    if not path.exists() and not any(place.parent.match(str(paths.RECORDED)) for place in places):
        return []
    if found := _links(folder):
        return found
    if not path.exists():
        remedy = f"`warplog verify {folder} --write-manifest` writes one and trusts the files as they are now"
        return [f"{folder}: has no {NAME}, so nothing shows whether a file was changed; {remedy}"]
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
    return found + [f"{folder / name}: is not in {NAME}; remove it" for name in added]


def _files(folder: Path) -> list[Path]:
    """Returns all files below the folder except the manifest."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / NAME]


def _links(folder: Path) -> list[str]:
    return [
        f"{path}: is a symbolic link, which may lead out of the campaign; remove it"
        for path in sorted(folder.rglob("*"))
        if path.is_symlink()
    ]
