"""A process that has imported everything and forks one child per request: importing takes seconds.

Requests are lines of JSON on standard input: {"do", "folder", "kill", "full"}; answers are lines on standard
output. The child performs one of TASKS, in `folder`, under the faults of interpose.c, which is preloaded and counts the
calls on files below `folder`.
"""

import ctypes
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [
    str(TESTS.parent / "workflow"),
    str(TESTS / "support"),
    str(TESTS / "support" / "made_up"),
]
os.environ.update(OMP_NUM_THREADS="1")
RECORDED = TESTS.parent / "results" / "recorded" / "h200" / "check" / "h200" / "overlap.json"
KEPT = ("cublas", "naive")  # variants
_IMPORTED = (
    "pyarrow.dataset", "pyarrow.pandas_compat", "jsonschema_rs", "warplog.cli.recording", "warplog.records.door",
    "made_up_tables", "warplog.tables.files",
)  # fmt: skip


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


TASKS: dict[str, Callable[[Path], Any]] = {
    task.__name__: task for task in (records, read_records, tables, read_tables)
}


def _perform(request: dict[str, Any], answer: Path) -> None:
    """Performs a task in this process, which then ends, and writes what came of it."""
    folder = Path(request["folder"])
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(temporary)
    shim = ctypes.CDLL(None)
    faults = request.get("kill", 0), request.get("full", 0)
    shim.faults_begin(os.fsencode(folder), *map(ctypes.c_long, faults))
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
    read_records_of(RECORDED)  # children inherit what was imported and unpacked
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
