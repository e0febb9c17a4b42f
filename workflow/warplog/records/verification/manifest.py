"""The manifest of a recorded campaign: the SHA-256 of every file, which finds what changed while its time did not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from warplog import __version__
from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file
from warplog.records import door
from warplog.records.campaign import CampaignName
from warplog.records.fields import Frozen

NAME = "manifest.json"
_Path = Annotated[str, Meta(max_length=1000)]
_Digest = Annotated[
    str, Meta(pattern="^[0-9a-f]{64}$", extra_json_schema={"$comment": "a SHA-256 in hexadecimal digits"})
]


class Manifest(Frozen, frozen=True, kw_only=True):
    """What `warplog record` wrote.

    Attributes:
        commit: commit that the campaign measured.
        warplog: version of warplog that wrote the manifest.
        files: SHA-256 of every file, by path relative to the manifest.
    """

    schema: Literal[2] = 2
    campaign: CampaignName
    commit: Annotated[str, Meta(max_length=100)]
    warplog: Annotated[str, Meta(max_length=100)]
    files: Annotated[Mapping[_Path, _Digest], Meta(max_length=100_000)]


def write(folder: Path, campaign: str, commit: str) -> None:
    """Writes `folder`/manifest.json: the SHA-256 of every file, with the campaign's name and the measured commit.

    Raises:
        WarplogError: A file cannot be read or is a symbolic link, or the manifest cannot be written.
    """
    if links := _links(folder):
        raise WarplogError(links[0])
    files = {str(path.relative_to(folder)): sha256_file(path) for path in _files(folder)}
    door.write(folder / NAME, Manifest(campaign=campaign, commit=commit, warplog=__version__, files=files))


def check(folder: Path) -> None:
    """Compares every file of a recorded campaign with its manifest.

    Raises:
        WarplogError: A file was changed, removed or added, or the manifest is missing or of an earlier release; the
            text names the first one.
    """
    if differing := problems(folder):
        more = f" ({len(differing) - 1} more: `warplog verify {folder}`)" if len(differing) > 1 else ""
        raise WarplogError(differing[0] + more)


def problems(folder: Path) -> list[str]:
    """Returns one line with a remedy per file that is not as the manifest says.

    Nothing outside of the folder is read. Only a folder in results/recorded/ must have a manifest.

    Raises:
        WarplogError: The manifest is damaged or of an earlier release.
    """
    path = folder / NAME
    places = folder.absolute(), folder.resolve()
    if not path.exists() and not any(place.parent.match(str(paths.RECORDED)) for place in places):
        return []
    if not path.exists() and not _links(folder):
        remedy = f"`warplog verify {folder} --write-manifest` writes one and trusts the files as they are now"
        return [f"{folder}: has no {NAME}, so nothing shows whether a file was changed; {remedy}"]
    return differences(folder, door.read(path, Manifest).files if path.exists() else {})


def differences(folder: Path, written: Mapping[str, str]) -> list[str]:
    """Returns one line with a remedy per file whose SHA-256 is not the one in `written`, and per file that lacks."""
    if faults := _links(folder):
        return faults
    here = {str(file.relative_to(folder)): file for file in _files(folder)}
    restore = f"restore it (git checkout -- {folder}) or record the campaign again (warplog record)"
    for name, digest in written.items():
        if name not in here:
            leaves = Path(name).is_absolute() or ".." in Path(name).parts
            wrong = (
                f"{folder / NAME}: {name!r} leads out of the folder"
                if leaves
                else f"{folder / name}: is missing"
            )
            faults.append(f"{wrong}; {restore}")
        elif sha256_file(here[name]) != digest:
            faults.append(f"{folder / name}: was changed after it was written; {restore}")
    added = sorted(here.keys() - written.keys())
    return faults + [f"{folder / name}: is not in {NAME}; remove it" for name in added]


def _files(folder: Path) -> list[Path]:
    """Returns all files below the folder except the manifest."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / NAME]


def _links(folder: Path) -> list[str]:
    return [
        f"{path}: is a symbolic link, which may lead out of the campaign; remove it"
        for path in sorted(folder.rglob("*"))
        if path.is_symlink()
    ]
