"""`warplog watch` with its real worker and processes, on a machine whose CPU stands in for the GPU."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from host_family import REFERENCE, YAML

PROJECT = Path(__file__).parents[2]
RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
PATIENCE_S = 60


def source(us: int, more: str = "") -> str:
    return f"usleep({us}); {RIGHT} {more}"


class Session:
    """A running `warplog watch` of the variant `mine`, whose parent is `right`."""

    def __init__(self, place: Path) -> None:
        self.place, self.family = place, place / "kernels" / "scale"
        self.source = self.family / "mine.cu"
        paths = [PROJECT / "workflow", place / "site", PROJECT / "tests" / "support"]
        self.child = subprocess.Popen(
            [sys.executable, "-m", "warplog", "watch", "scale/mine", "--margin", "0.3"],
            cwd=place,
            env={**os.environ, "PYTHONPATH": ":".join(map(str, paths)), "TMPDIR": str(place / "temporary")},
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=(place / "errors").open("w"),
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.child.stdout:
            self._lines.put(line.rstrip("\n"))

    def line(self) -> str:
        return self._lines.get(timeout=PATIENCE_S)

    def save(self, text: str) -> str:
        """Saves the source as many editors do, beside it and then in its place, and returns the line that follows."""
        new = self.source.with_suffix(".new")
        new.write_text(text)
        new.replace(self.source)
        return self.line()

    def processes(self) -> set[str]:
        """Returns the ids of the processes of the worker, which outlive a save."""
        children = lambda pid: Path(f"/proc/{pid}/task/{pid}/children").read_text().split()  # noqa: E731
        (worker,) = children(self.child.pid)
        return {one for one in children(worker) if " Z " not in Path(f"/proc/{one}/stat").read_text()}

    def is_silent(self) -> bool:
        return self._lines.empty()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    for name in ("site", "temporary"):
        (tmp_path / name).mkdir()
    pretended = (PROJECT / "tests" / "workflow" / "pretended_gpu.py").read_text()
    quick = "from warplog.duel import watch\nwatch._WINDOW_S = 0.06\n"
    (tmp_path / "site" / "sitecustomize.py").write_text(pretended + quick)
    family = tmp_path / "kernels" / "scale"
    family.mkdir(parents=True)
    (family / "family.yaml").write_text(YAML.rstrip() + "\n  - {name: mine, parent: right, idea: an idea}\n")
    (family / "reference.py").write_text(REFERENCE)
    (family / "right.cu").write_text(source(400))
    (family / "mine.cu").write_text(source(400, "/* the first */"))
    session = Session(tmp_path)
    yield session
    if session.child.poll() is None:
        os.killpg(session.child.pid, signal.SIGKILL)
    session.child.wait()


def test_ten_saves_in_a_row(session: Session) -> None:
    first = session.line()
    assert "SAME against right" in first
    assert "the last good version" not in first
    processes = session.processes()
    assert len(processes) == 3

    slower = session.save(source(1500))
    assert "SLOWER against the last good version: +" in slower
    assert "SLOWER against right: +" in slower
    faster = session.save(source(200))
    assert "FASTER against the last good version: -" in faster
    assert "FASTER against right: -" in faster
    assert session.processes() == processes

    assert session.save("this is no C;").startswith("compile_error: error: expected expression")
    assert session.save(source(200)).startswith("unchanged: ")
    assert session.processes() == processes

    wrong = session.save(source(200, "a->y[0] += 1;"))
    assert wrong.startswith("wrong: against the last good version: B: case odd: y: 1 of 127 elements")
    crash = session.save("abort();")
    assert crash.startswith("crashed: against the last good version: checking B: the process ended: SIGABRT")
    late = session.save(source(200, "static int calls; if (++calls > 20) return 700;"))
    assert late.startswith("crashed: against the last good version: B: ")
    session.save(source(200, "/* good again */"))
    assert len(session.processes() & processes) == 2  # that of the first look was replaced

    last = session.save(source(100))
    assert "FASTER against the last good version: -" in last
    marks = last.split()[-1]
    assert len(marks) == 11
    assert [place for place, mark in enumerate(marks) if mark == "x"] == [3, 5, 6, 7]
    assert (marks[1], marks[10]) == ("█", "▁")
