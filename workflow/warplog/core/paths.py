"""Paths of the package, the workflow, a project and the results of each stage, and the commands for a project.

The path of a result starts with its stage, followed by the keys in a fixed order, as in rules and logs:
`results/<stage>/<gpu>/<family>.json` holds the records of all variants of a family.
"""

import os
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
# A wheel has the workflow inside the package, a checkout has the package inside the workflow.
_INSTALLED = PACKAGE / "workflow"
WORKFLOW = _INSTALLED if _INSTALLED.is_dir() else PACKAGE.parent
# What lies beside the workflow in a checkout: settings of Snakemake itself, the README.
HOME = WORKFLOW if WORKFLOW is _INSTALLED else WORKFLOW.parent
PROFILE = HOME / "profiles" / "default"
RESULTS = Path("results")
RECORDED = RESULTS / "recorded"
PLAN = RESULTS / "plan.json"
FOLDER = "warplog"  # of the families, in a repository of kernels


def project() -> Path:
    """Returns the folder of `kernels/`: the working directory, or the checkout of this package if it has none."""
    return Path() if Path("kernels").is_dir() or WORKFLOW is _INSTALLED else WORKFLOW.parent


def nearest_project(here: Path) -> Path:
    """Returns the project's folder, absolute: `here`/warplog, if it has kernels; else the nearest, from `here` upwards.

    A project has a Snakefile or a family. Returns `here` if there is none.
    """
    here = here.absolute()
    inside = here / FOLDER
    if any((inside / name).exists() for name in ("kernels", "config/config.yaml")):
        return inside
    places = (here, *here.parents)
    return next((folder for folder in places if (folder / "Snakefile").is_file() or has_family(folder)), here)


def has_family(folder: Path) -> bool:
    """Returns whether `folder`/kernels/ holds a family."""
    return any((folder / "kernels").glob("*/family.yaml"))


def command(words: str = "") -> str:
    """Returns the command that runs the workflow with these targets and options, for the project found from here."""
    place = nearest_project(Path.cwd())
    if not (place / "Snakefile").is_file():
        return f"warplog run -- {words}" if words else "warplog run"
    cores = "" if (place / "profiles" / "default").is_dir() else " --cores 1"
    return f"{_uv(place)}snakemake{cores} {words}".rstrip()


def own_command(words: str) -> str:
    """Returns the command line of `warplog` with these words, for the project found from here."""
    return f"{_uv(nearest_project(Path.cwd()))}warplog {words}"


def _uv(place: Path) -> str:
    return "uv run " if (place / "uv.lock").is_file() else ""


def shown(path: Path) -> str:
    """Returns the path relative to the working directory if it is inside it, else the absolute path."""
    absolute = path.absolute()
    return os.path.relpath(absolute) if absolute.is_relative_to(Path.cwd()) else str(absolute)


def captures(record: Path) -> Path:
    """Returns the folder of the reports that a profile record names: <family>/ beside <family>.ncu.json."""
    return record.parent / record.name.partition(".")[0]


def recorded_root(name: str) -> Path:
    """Returns the folder of a recorded campaign, relative to the project."""
    return RECORDED / name
