"""What makes results stale besides the files that they are made of: the modules of a stage, and a failed build.

Snakemake detects changes of input files and parameters only, so the rules list the modules that the results of a stage
depend on as inputs. They are all modules that the roots of a stage import, directly or indirectly, according to the
import graph. A build has its number as a parameter.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.records import door
from warplog.records.build import Build

if TYPE_CHECKING:
    from grimp import ImportGraph

_PYTHON = "measure.worker.python_launcher"  # the worker's main module imports it
# The modules that compute the results of a stage.
ROOTS: Mapping[str, tuple[str, ...]] = {
    "build": ("measure.building.build", "measure.building.python_build"),
    "trial": ("measure.trial",),
    "check": ("measure.worker.check_case", _PYTHON),
    "sanitize": ("measure.stages.sanitize", "measure.worker.sanitize_case", _PYTHON),
    "time": ("measure.worker.time_case", "measure.pooling", _PYTHON),
    "profile": ("measure.stages.capture", "measure.worker.capture_case", _PYTHON),
    "timeline": ("measure.stages.timeline", "measure.worker.timeline_case"),
    "tune": ("measure.tuning.search", "measure.tuning.record", "measure.worker.tune_setting"),
    "plot_tuning": ("measure.tuning.figure",),
    "extract": ("extract.stage",),
    "tables": ("tables.rows", "tables.files"),
    "oracle": ("judge.oracle", "tables.rows", "analysis.quantities"),
    "claims": ("judge.claims",),
    "floors": ("judge.floors",),
    "analysis": ("analysis.conclude",),
    "summary": ("judge.summary", "worklog.site.index"),
    "judge": ("judge.aa", "judge.comparison", "judge.history", "judge.figures"),
    "plot": ("figures",),
    "track": ("track.log", "track.links"),
    "worklog": ("worklog",),
}
# These store data and start processes, but do not affect values: editing them must not repeat a campaign.
_CARRIERS = frozenset(
    (
        *(
            f"core.{name}"
            for name in (
                "errors",
                "files",
                "locks",
                "paths",
                "process",
                "schema",
                "store",
            )
        ),
        "records.verification.manifest",
    )
)
# What these contribute to a measuring job is hashed into its inputs (contract, library, settings), or only affects how
# the job is run.
_MEASURING = frozenset(("build", "trial", "check", "sanitize", "time", "profile", "timeline", "tune"))
_HASHED_OTHERWISE = frozenset(
    (
        *("catalog", "machine.toolchain", "machine.wheels", "records"),
        *(
            f"measure.{name}"
            for name in (
                *("family_board", "job", "journal", "progress"),
                *("provenance", "results", "stages.stage", "supervise", "task"),
            )
        ),
    )
)
# Builds with these statuses are tried again; `unsupported` depends on family.yaml and the GPU only.
_RETRIED = ("compile_error", "error", "timeout")
# Templates and style sheets beside the modules.
_DATA: Mapping[str, tuple[str, ...]] = {
    "worklog": ("worklog/*.j2", "worklog/*.css", "worklog/*.js"),
    "summary": ("worklog/*.j2", "worklog/*.css"),
}


def code(stage: str) -> list[str]:
    """Returns the files that the results of a stage depend on, relative to the working directory if they are in it."""
    stop = _CARRIERS | (_HASHED_OTHERWISE if stage in _MEASURING else frozenset())
    files = {_file(module) for module in _imported(ROOTS[stage], stop)}
    files |= {path for pattern in _DATA.get(stage, ()) for path in paths.PACKAGE.glob(pattern)}
    if stage == "worklog":
        files |= set((paths.WORKFLOW / "report").glob("*.rst"))
    return sorted(paths.shown(path) for path in files)


def attempt(build: Path) -> int:
    """Returns the number of the build that makes this record: one more than that of a failed build, which runs again.

    A build that succeeded keeps its number. So the parameter of its job is what it was, and the job does not run. It
    is 1 if there is no record yet, or if it is damaged, which the jobs that read it report.
    """
    try:
        record = door.read(build, Build)
    except WarplogError:
        return 1
    failed = record.origin == "live" and record.status in _RETRIED
    return record.attempt + 1 if failed else record.attempt


def _imported(roots: tuple[str, ...], stop: frozenset[str]) -> set[str]:
    """Returns the modules that `roots` and their submodules import, directly or indirectly, not following `stop`."""
    graph = _graph()
    left = [module for root in roots for module in (root, *graph.find_descendants(f"warplog.{root}"))]
    found: set[str] = set()
    while left:
        module = left.pop().removeprefix("warplog.")
        if module in found or any(module == name or module.startswith(f"{name}.") for name in stop):
            continue
        found.add(module)
        left += graph.find_modules_directly_imported_by(f"warplog.{module}")
    return found - {"warplog"}


def _file(module: str) -> Path:
    path = paths.PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _graph() -> "ImportGraph":
    import grimp

    return grimp.build_graph("warplog", cache_dir=None, exclude_type_checking_imports=True)
