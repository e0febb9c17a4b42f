"""The journal of a task: the worker appends what it does, the supervisor reads along."""

import json
import os
import sys
import time
from collections.abc import Collection
from pathlib import Path

from warplog.core.errors import WarplogError, naming, say
from warplog.core.locks import holder
from warplog.measure.results import Result
from warplog.measure.task import CaseRun
from warplog.records import door
from warplog.records.fields import Frozen
from warplog.records.measured import Session

_SHOW_WAITING_AFTER_S = 60.0


class _Note(Frozen, tag_field="note", frozen=True, kw_only=True):
    """One line of a journal."""


class Header(_Note, tag="task", frozen=True, kw_only=True):
    """The first line: the hash of the task."""

    fingerprint: str


class Started(_Note, tag="pid", frozen=True, kw_only=True):
    """A worker has started; `pid` is its process ID."""

    pid: int


class Waiting(_Note, tag="waiting", frozen=True, kw_only=True):
    """The worker waits for the GPU, or has it since `held_since_s` of time.monotonic()."""

    held_since_s: float | None = None


class Opened(_Note, tag="session", frozen=True, kw_only=True):
    """The worker is ready to run cases."""

    session: Session


class Begun(_Note, tag="begin", frozen=True, kw_only=True):
    """A case has started."""

    run: CaseRun


Note = Header | Started | Waiting | Opened | Begun | Result


def note(journal: Path, entry: Note) -> None:
    """Appends one line and returns once it is on disk."""
    with naming(journal), journal.open("a", encoding="utf-8", errors="replace") as file:
        file.write(door.as_json(entry) + "\n")
        file.flush()
        os.fsync(file.fileno())


def results_in(journal: Path) -> list[Result]:
    """Returns the results in a journal, in the order in which the cases were finished."""
    entries = map(_parse, journal.read_text(encoding="utf-8", errors="replace").split("\n"))
    return [entry for entry in entries if isinstance(entry, Result)]


class Journal:
    """The notes of a task's workers, one per line.

    Attributes:
        results: results of the finished cases.
        session: facts about the session, such as library versions.
        running: the case that has started but not finished; None if there is none.
        pid: process ID of the worker, which a profiler may have started outside of our process group.
        waiting: whether the worker waits for the GPU because another process holds it.
        start_s: seconds during which the workers of this run held the GPU without running a case that finished.
        last_note: time.monotonic() at the last note.
    """

    def __init__(self, path: Path, fingerprint: str, runs: Collection[CaseRun]) -> None:
        self.path = path
        self.results: dict[CaseRun, Result] = {}
        self.session = Session()
        self.running: CaseRun | None = None
        self.pid: int | None = None
        self.waiting = False
        self.start_s = 0.0
        self.last_note = time.monotonic()
        self._held_since: float | None = None
        self._shown_waiting = False
        self._offset = 0
        header = Header(fingerprint=fingerprint)
        if not self.path.is_file() or self._first_line() != header:
            self.path.unlink(missing_ok=True)
            note(self.path, header)
        self.read()
        self.start_s = 0.0
        if 0 < (done := sum(run in self.results for run in runs)) < len(runs):
            print(f"  resuming: {done} of {len(runs)} cases are done", file=sys.stderr, flush=True)

    def _first_line(self) -> Note | None:
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

    def read(self) -> list[Result]:
        """Reads the new lines and returns the results among them. An incomplete last line is read next time."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        new = []
        for entry in map(_parse, whole.decode(errors="replace").split("\n")[:-1]):
            self.last_note = time.monotonic()
            match entry:
                case Started():
                    self.pid = entry.pid
                case Waiting():
                    self.waiting, self._held_since = entry.held_since_s is None, entry.held_since_s
                case Opened():
                    self.session = entry.session
                case Begun():
                    self.running = entry.run
                case Result():
                    self.results[entry.run] = entry
                    self.start_s -= entry.seconds or 0.0
                    self.running = None
                    new.append(entry)
        return new


def _parse(line: str) -> Note | None:
    """Returns the note in a line; None if it is damaged or foreign."""
    try:
        return door.decode(json.loads(line), Note, "")  # type: ignore[arg-type]  # a union is a type for msgspec
    except (ValueError, WarplogError):
        return None
