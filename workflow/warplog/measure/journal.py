"""The journal of a task: the worker appends what it does, the supervisor reads along."""

import json
import os
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from warplog.core.errors import naming, say
from warplog.core.locks import holder
from warplog.core.records import Record

_SHOW_WAITING_AFTER_S = 60.0


def note(journal: Path, entry: Record) -> None:
    """Appends one line and returns once it is on disk."""
    with naming(journal), journal.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


class Journal:
    """The notes of a task's workers, one JSON object per line.

    The first line is {"fingerprint": hash of the task}. Each worker appends {"pid": its process ID},
    {"waiting": true} before it waits for the GPU, {"waiting": false, "at": time.monotonic()} once it has the GPU,
    {"session": facts}, and for each case {"begin": case} and {"result": record of the case}.

    Attributes:
        results: results of the finished cases, by case.
        session: facts about the session, such as library versions.
        running: the case that has started but not finished; None if there is none.
        pid: process ID of the worker, which a profiler may have started outside of our process group.
        waiting: whether the worker waits for the GPU because another process holds it.
        start_s: seconds during which the workers of this run held the GPU without running a case that finished.
        last_note: time.monotonic() at the last note.
    """

    def __init__(self, path: Path, fingerprint: str, cases: Collection[str]) -> None:
        self.path = path
        self.results: dict[str, Record] = {}
        self.session: Record = {}
        self.running: str | None = None
        self.pid: int | None = None
        self.waiting = False
        self.start_s = 0.0
        self.last_note = time.monotonic()
        self._held_since: float | None = None
        self._shown_waiting = False
        self._offset = 0
        header = {"fingerprint": fingerprint}
        if not self.path.is_file() or self._first_line() != header:
            with naming(path):
                self.path.write_text(json.dumps(header) + "\n")
        self.read()
        self.start_s = 0.0
        if resumed := sum(case in self.results for case in cases):
            print(f"  resuming: {resumed} of {len(cases)} cases are done", file=sys.stderr, flush=True)

    def _first_line(self) -> Any:
        with self.path.open(encoding="utf-8", errors="replace") as file:
            return _parse(file.readline())

    def begin(self) -> None:
        """Resets the state of the worker, since a new one starts."""
        self.running, self.pid, self.waiting, self._held_since = None, None, False, None
        self.last_note = time.monotonic()

    def end(self) -> None:
        """Adds up `start_s`, since the worker has ended."""
        if self._held_since is not None:
            self.start_s += time.monotonic() - self._held_since
        self._held_since = None

    def say_waiting(self, seconds: float, lock: Path) -> None:
        """Prints once that another process holds the GPU, and which, if the worker has waited for a minute."""
        if seconds > _SHOW_WAITING_AFTER_S and not self._shown_waiting:
            say(f"  waiting for the GPU: another process is measuring on it{holder(lock)}")
            self._shown_waiting = True

    def read(self) -> list[Record]:
        """Reads the new lines and returns the results among them. An incomplete last line is read next time."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        new = []
        for entry in map(_parse, whole.decode(errors="replace").splitlines()):
            self.last_note = time.monotonic()
            if "pid" in entry:
                self.pid = entry["pid"]
            elif "waiting" in entry:
                self.waiting = bool(entry["waiting"])
                self._held_since = entry.get("at")
            elif "begin" in entry:
                self.running = entry["begin"]
            elif "session" in entry:
                self.session = entry["session"]
            elif "result" in entry:
                result = entry["result"]
                self.results[result["case"]] = result
                self.start_s -= result.get("seconds", 0.0)
                self.running = None
                new.append(result)
        return new


def _parse(line: str) -> Record:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
