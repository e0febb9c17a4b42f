"""Which modules decide a stage's results: a change of one of them makes Snakemake run the stage again.

Snakemake sees only what is an input, so the rules list these files as inputs. They are the modules that a stage's
roots import, directly or not, read off the import graph.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core import paths

if TYPE_CHECKING:
    from grimp import ImportGraph

# The modules that a stage's results come from.
ROOTS: Mapping[str, tuple[str, ...]] = {
    "build": ("measure.build",),
    "check": ("measure.worker.check_case",),
    "sanitize": ("measure.sanitize", "measure.worker.sanitize_case"),
    "time": ("measure.worker.time_case",),
    "profile": ("measure.capture", "measure.worker.capture_case"),
    "tune": ("measure.tuning.search", "measure.tuning.record", "measure.worker.tune_setting"),
    "plot_tuning": ("measure.tuning.figure",),
    "extract": ("extract.stage",),
    "tables": ("tables.rows", "tables.files"),
    "oracle": ("judge.oracle", "tables.rows", "tables.quantities"),
    "claims": ("judge.claims",),
    "judge": ("judge.aa", "judge.comparison", "judge.history", "judge.figures"),
    "plot": ("figures",),
    "track": ("track.log",),
    "worklog": ("worklog",),
}
# They carry data and start processes, but decide no value: an edit of them must not cost a campaign.
_CARRIERS = frozenset(
    f"core.{name}" for name in ("defaults", "errors", "locks", "paths", "process", "records", "schema")
)
# What they tell a measuring job is hashed into its inputs (contract, library, settings), or says how it is run.
_MEASURING = frozenset(("build", "check", "sanitize", "time", "profile", "tune"))
_HASHED_OTHERWISE = frozenset(
    (
        *("catalog", "machine.toolchain", "machine.wheels"),
        *(f"measure.{name}" for name in ("job", "journal", "provenance", "supervise")),
    )
)
# Files beside the modules: templates and captions.
_DATA: Mapping[str, tuple[str, ...]] = {"worklog": ("worklog/page.*", "worklog/*.css")}


def code(stage: str) -> list[str]:
    """The files that the results of a stage depend on, relative to the working directory where they lie below it."""
    stop = _CARRIERS | (_HASHED_OTHERWISE if stage in _MEASURING else frozenset())
    files = {_file(module) for module in _imported(ROOTS[stage], stop)}
    files |= {path for pattern in _DATA.get(stage, ()) for path in paths.PACKAGE.glob(pattern)}
    if stage == "worklog":
        files |= set((paths.WORKFLOW / "report").glob("*.rst"))
    return sorted(paths.shown(path) for path in files)


def _imported(roots: tuple[str, ...], stop: frozenset[str]) -> set[str]:
    """The modules that are reached from `roots` and their submodules without passing through one of `stop`."""
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
