"""Which folder is the project, and the commands that work there."""

from pathlib import Path

FOLDER = "warplog"  # of the families, in a repository of kernels


def find(here: Path) -> Path:
    """Returns the project's folder, absolute: `here`/warplog, if it has kernels; else the nearest, from `here` upwards.

    A project has a Snakefile or a family. Returns `here` if there is none.
    """
    here = here.absolute()
    inside = here / FOLDER
    if any((inside / name).exists() for name in ("kernels", "config/config.yaml")):
        return inside
    return next((place for place in (here, *here.parents) if _is_project(place)), here)


def has_family(folder: Path) -> bool:
    """Returns whether `folder`/kernels/ holds a family."""
    return any((folder / "kernels").glob("*/family.yaml"))


def _is_project(folder: Path) -> bool:
    return (folder / "Snakefile").is_file() or has_family(folder)


def command(words: str = "") -> str:
    """Returns the command that runs the workflow with these targets and options, for the project found from here."""
    place = find(Path.cwd())
    if not (place / "Snakefile").is_file():
        return f"warplog run -- {words}" if words else "warplog run"
    cores = "" if (place / "profiles" / "default").is_dir() else " --cores 1"
    return f"{_uv(place)}snakemake{cores} {words}".rstrip()


def own_command(words: str) -> str:
    """Returns the command line of `warplog` with these words, for the project found from here."""
    return f"{_uv(find(Path.cwd()))}warplog {words}"


def _uv(place: Path) -> str:
    return "uv run " if (place / "uv.lock").is_file() else ""
