"""Where files lie: those of the package, of the workflow, of a project, and the results of each stage.

Results are ordered by stage first, then by the key in one fixed order, so that rule, folder and log agree:
`results/<stage>/<gpu>/<family>.json` holds the records of all variants of a family.
"""

import os
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
# A wheel carries the workflow inside the package; a checkout has it around it.
_INSTALLED = PACKAGE / "workflow"
WORKFLOW = _INSTALLED if _INSTALLED.is_dir() else PACKAGE.parent
RESULTS = Path("results")
RECORDED = RESULTS / "recorded"
PLAN = RESULTS / "plan.json"


def project() -> Path:
    """The folder that holds `kernels/`: the working directory, or else the checkout that this package lies in."""
    return Path() if Path("kernels").is_dir() or WORKFLOW is _INSTALLED else WORKFLOW.parent


def shown(path: Path) -> str:
    """The path relative to the working directory if it lies inside of it, else as an absolute path."""
    absolute = path.absolute()
    return os.path.relpath(absolute) if absolute.is_relative_to(Path.cwd()) else str(absolute)


def build_folder(root: Path, arch: str, family: str, variant: str) -> Path:
    """The folder of one build below `root` (results, or a recorded campaign)."""
    return root / "build" / arch / family / variant


def family_record(root: Path, stage: str, gpu: str, family: str, suffix: str = ".json") -> Path:
    """The record of a stage: <root>/<stage>/<gpu>/<family>.json."""
    return root / stage / gpu / f"{family}{suffix}"


def captures(record: Path) -> Path:
    """The folder of the reports that a profile record names: <family>/ beside <family>.ncu.json."""
    return record.parent / record.name.partition(".")[0]


def search_record(root: Path, gpu: str, family: str, variant: str, suffix: str = ".json") -> Path:
    """The record of a parameter search: <root>/tune/<gpu>/<family>/<variant>.json."""
    return root / "tune" / gpu / family / f"{variant}{suffix}"


def recorded_root(name: str) -> Path:
    """The folder of a recorded campaign, relative to the project."""
    return RECORDED / name
