"""Adds the figures of each family to its runs in MLflow."""

from collections.abc import Iterable
from pathlib import Path

from warplog.core.errors import note
from warplog.core.files import write_text
from warplog.plan.script import job
from warplog.records import door
from warplog.track import log
from warplog.track.address import tracking_uri
from warplog.track.presence import LoggedCampaign


def main(logged: Path, folders: Iterable[Path], uri: str, done: Path) -> None:
    record = door.decode(door.read_json(logged), LoggedCampaign, str(logged))
    drawn = {folder.name: sorted(files(folder), key=in_order) for folder in folders}
    log.log_figures(record, drawn, uri, note)
    names = {family: [path.name for path in paths] for family, paths in drawn.items()}
    write_text(done, door.as_json({"uri": record.uri, "figures": names}, indent=1) + "\n")


def files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if path.suffix in (".png", ".svg")]


def in_order(path: Path) -> tuple[int, str]:
    """The ladder, from which a reader starts, before the others."""
    return (path.stem != "ladder", path.name)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.logged),
            [Path(folder) for folder in snakemake.input.figures],
            tracking_uri(snakemake.params.uri),
            Path(snakemake.output[0]),
        )
