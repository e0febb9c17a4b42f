"""The journal of a task: the worker notes in it what it does, the supervisor reads it as it grows."""

import json
import os
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from warplog.core.records import Record

_SAY_AFTER_S = 60.0


def note(journal: Path, entry: Record) -> None:
    """Appends one line and makes sure that it is on disk before the next case begins."""
    with journal.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


class Journal:
    """What workers noted: {"pid": theirs}, {"waiting": true} for the GPU, {"waiting": false, "at": when it was theirs},
    {"session": facts}, {"begin": case}, {"result": case and what came out}.

    Attributes:
        results: what is finished, by case; `running`: the case that has begun and not ended.
        pid: of the worker, which a profiler may have started outside our process group.
        waiting: whether the worker waits for the GPU, which another process has.
        start_s: seconds for which the workers of this run had the GPU and no case ran to its end.
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
        self._said = False
        self._offset = 0
        header = {"fingerprint": fingerprint}
        if not self.path.is_file() or self._first_line() != header:
            self.path.write_text(json.dumps(header) + "\n")
        self.read()
        self.start_s = 0.0
        if resumed := sum(case in self.results for case in cases):
            words = f"  resuming: {resumed} of {len(cases)} cases are done"
            print(words, file=sys.stderr, flush=True)

    def _first_line(self) -> Any:
        with self.path.open(encoding="utf-8", errors="replace") as file:
            return _parse(file.readline())

    def begin(self) -> None:
        """A worker starts."""
        self.running, self.pid, self.waiting, self._held_since = None, None, False, None
        self.last_note = time.monotonic()

    def end(self) -> None:
        """The worker has ended."""
        if self._held_since is not None:
            self.start_s += time.monotonic() - self._held_since
        self._held_since = None

    def say_waiting(self, seconds: float) -> None:
        """Says once that the GPU is another's, where that has lasted."""
        if seconds > _SAY_AFTER_S and not self._said:
            print("  waiting for the GPU: another process is measuring on it", file=sys.stderr, flush=True)
            self._said = True

    def read(self) -> list[Record]:
        """Takes in what is new; the results among it. A half-written last line waits for its end."""
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
