"""A process that has imported everything and forks one child per request: starting Python and MLflow takes seconds.

Requests are lines of JSON on standard input: {"do", "folder", "below", "kill", "full"}; answers are lines on standard
output. The child performs one of TASKS, in `folder`, under the faults of interpose.c, which is preloaded and counts the
calls on files below `folder`/`below`.
"""

import ctypes
import gc
import importlib
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [
    str(TESTS.parent / "workflow"),
    str(TESTS / "support"),
    str(TESTS / "support" / "made_up"),
    str(TESTS / "unit" / "track"),
]
os.environ.update(DO_NOT_TRACK="true", MLFLOW_DISABLE_TELEMETRY="true", OMP_NUM_THREADS="1")
RECORDED = TESTS.parent / "results" / "recorded" / "h200" / "check" / "h200" / "overlap.json"
KEPT = ("cublas", "naive")  # variants: a run each
_IMPORTED = (
    "mlflow", "mlflow.store.tracking.sqlalchemy_store", "mlflow.store.db.utils", "mlflow.artifacts",
    "mlflow.store.tracking.sqlalchemy_workspace_store", "alembic.command", "alembic.autogenerate",
    "sqlalchemy.dialects.sqlite", "pyarrow.dataset", "pyarrow.pandas_compat", "pandas.io.formats.csvs", "jsonschema_rs",
    "tracked_project", "warplog.figures.shared.style", "warplog.cli.recording", "warplog.records.door",
    "made_up_tables", "warplog.tables.files",
)  # fmt: skip


def make(folder: Path) -> None:
    """Makes a project with the tables and files of a small campaign, which is not logged yet."""
    from tracked_project import Project

    project = Project(folder).make()
    for table in ("variants", "measurements", "metrics", "timeline"):
        project.edit(table, lambda rows: rows[(rows["family"] == "sgemm") & rows["variant"].isin(KEPT)])


def change(folder: Path) -> None:
    """Changes the numbers and one file of a campaign that was logged."""
    from tracked_project import Project

    project = Project(folder)
    project.edit("measurements", lambda rows: rows.assign(median_us=rows["median_us"] * 2))
    (folder / "files" / "naive" / "naive.cu").write_text("// edited\n")


def change_figure(folder: Path) -> None:
    """Draws the figure of a campaign that was logged anew."""
    (folder / "figures" / "ladder.svg").write_text("<svg>new</svg>")


def track(folder: Path) -> None:
    """Logs the tables and figures, as the rules log_mlflow and log_figures do."""
    from tracked_project import Project

    Project(folder).log()


def track_another(folder: Path) -> None:
    """Logs the tables of another campaign to the same store."""
    from msgspec import structs
    from track_tables import CAMPAIGN
    from tracked_project import Project

    project = Project(folder)
    for table in ("variants", "measurements", "metrics", "timeline"):
        project.edit(table, lambda rows: rows.assign(campaign="earlier"))
    project.log(structs.replace(CAMPAIGN, campaign="earlier"))
    for table in ("variants", "measurements", "metrics", "timeline"):
        project.edit(table, lambda rows: rows.assign(campaign=CAMPAIGN.campaign))


def state(folder: Path) -> dict[str, Any]:
    """Returns what the store holds: the runs of each campaign and variant, with everything that was logged.

    Deleted runs and those that are marked as interrupted are left out; other marked ones, such as superseded runs, are
    listed apart.
    """
    from tracked_project import Project

    project = Project(folder)
    found: dict[str, list[Any]] = {}
    for run in project.stored():
        tags, params, metrics = run.data.tags, run.data.params, run.data.metrics
        place = Path(str(run.info.artifact_uri).removeprefix("file://"))
        files = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
        mark = tags.get("warplog.state", "current")
        key = f"{tags.get('campaign')}/{tags.get('family')}/{params.get('variant')}"
        key += "" if mark == "current" else f" ({mark})"
        if mark == "interrupted":
            continue
        found.setdefault(key, []).append([run.info.status, dict(params), dict(metrics), files])
    return {key: sorted(runs, key=json.dumps) for key, runs in found.items()}


def hidden(folder: Path) -> list[str]:
    """Returns the hidden files and folders among the artifacts, such as temporary ones."""
    place = folder / "results" / "mlartifacts"
    return sorted(path.relative_to(place).as_posix() for path in place.rglob(".*"))


def records(folder: Path) -> None:
    """Writes a stage's record, variant by variant, as a measuring job does."""
    from warplog.records.check import Check
    from warplog.records.family_file import FamilyRecord

    for record in FamilyRecord.read(RECORDED, Check).variants.values():
        written = FamilyRecord.read_if_there(folder / "results" / "overlap.json", Check)
        written.put(record)
        written.write()


def read_records(folder: Path) -> list[str]:
    """Returns the variants in the stage's record, which is read with all checks."""
    return read_records_of(folder / "results" / "overlap.json")


def read_records_of(path: Path) -> list[str]:
    """Returns the variants in a stage's record; none if there is no file."""
    from warplog.records.check import Check
    from warplog.records.family_file import FamilyRecord

    return list(FamilyRecord.read_if_there(path, Check).variants)


def tables(folder: Path) -> None:
    """Writes the tables of a small campaign."""
    from made_up_tables import MadeUpTables
    from warplog.tables.files import write_tables

    made = MadeUpTables()
    for order, name in enumerate(KEPT):
        made.variant("sgemm", name, order, 2, "64")
        made.measured("sgemm", name, "64", 64, 1.5, 10.0, 20.0)
    write_tables(made.rows, folder / "results" / "tables")


def read_tables(folder: Path) -> dict[str, str]:
    """Returns the hashes of the tables."""
    from warplog.core.hashing import sha256_file

    place = folder / "results" / "tables"
    return {p.name: sha256_file(p) for p in sorted(place.glob("[a-z]*"))}


def track_locked(folder: Path) -> None:
    """Logs while another process holds the store's database locked, and does not wait long for it."""
    from warplog.track import database

    database._BUSY_S = 0.1
    with closing(sqlite3.connect(folder / "results" / "mlflow.db", isolation_level=None)) as sql:
        sql.execute("begin exclusive")
        track(folder)


def track_four_times(folder: Path) -> list[int]:
    """Logs the same tables in four processes at once; returns their exit statuses."""
    ready, go = os.pipe()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(ready, 1)  # returns in all four when the parent closes the other end
            try:
                track(folder)
            except Exception as error:
                print(error, file=sys.stderr)
                os._exit(1)
            os._exit(0)
        children.append(child)
    os.close(go)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


TASKS: dict[str, Callable[[Path], Any]] = {
    task.__name__: task
    for task in (
        make,
        change,
        change_figure,
        track,
        track_another,
        track_locked,
        track_four_times,
        state,
        hidden,
        records,
        read_records,
        tables,
        read_tables,
    )
}


def _perform(request: dict[str, Any], answer: Path) -> None:
    """Performs a task in this process, which then ends, and writes what came of it."""
    folder = Path(request["folder"])
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(temporary)
    shim = ctypes.CDLL(None)
    faults = request.get("kill", 0), request.get("full", 0)
    shim.faults_begin(os.fsencode(folder / request.get("below", "")), *map(ctypes.c_long, faults))
    result: dict[str, Any] = {}
    try:
        result["value"] = TASKS[request["do"]](folder)
    except Exception as error:
        result["error"] = [type(error).__name__, str(error)]
    result |= {"changes": shim.faults_changes(), "writes": shim.faults_writes()}
    shim.faults_begin(b"", ctypes.c_long(0), ctypes.c_long(0))
    answer.write_text(json.dumps(result))


def main(answers: Path) -> None:
    """Answers requests until standard input ends; a child that takes longer than a minute is stuck and killed."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for module in _IMPORTED:
        importlib.import_module(module)
    from warplog.track import database

    read_records_of(RECORDED)  # children inherit what was imported and unpacked
    database._pattern()  # and the tables of an empty store
    database._newest()
    gc.freeze()  # what was imported is shared with the children, which look for no garbage in it
    gc.set_threshold(100_000, 50, 100)
    for number, line in enumerate(sys.stdin):
        answer = answers / f"{number}.json"
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            with suppress(BaseException):
                _perform(json.loads(line), answer)
            os._exit(0 if answer.exists() else 1)
        _, status = os.waitpid(child, 0)
        ended = {"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0}
        print(
            json.dumps((json.loads(answer.read_text()) if answer.exists() else {}) | ended),
            file=out,
            flush=True,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
