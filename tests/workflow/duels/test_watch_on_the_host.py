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

from host_family import REFERENCE, YAML, pretend

PROJECT = Path(__file__).parents[3]
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
    quick = "from warplog.duel import watch\nwatch._WINDOW_S = 0.06\n"
    quick += "match._QUIET_S = float(os.environ.get('QUIET_S', 60))\n"
    pretend(tmp_path, quick)
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

    assert "FASTER against the last good version: -" in session.save(source(100))
    last = session.save(source(100, "/* another comment */"))
    assert "SAME against the last good version: " in last
    marks = last.split()[-1]
    assert len(marks) == 11
    assert [place for place, mark in enumerate(marks) if mark == "x"] == [3, 5, 6, 7]
    assert marks[1] > max(marks[2], marks[10])  # a higher bar is a later character
    assert session.is_silent()


def test_an_included_file_and_family_yaml_are_saves_of_the_variant_too(session: Session) -> None:
    session.line()
    (session.family / "part.cuh").write_text(source(1500))
    assert "SLOWER against the last good" in session.save('\n#include "part.cuh"\n')
    (session.family / "part.cuh").write_text(source(200))
    assert "FASTER against the last good" in session.line()
    yaml = session.family / "family.yaml"
    valid = yaml.read_text()
    yaml.write_text("family: [")
    assert session.line().startswith("error: ")
    yaml.write_text(
        valid.replace("factor: 3.0", "factor: 5.0")
    )  # other answers: no version so far is known to be good
    again = session.line()
    assert "the last good version" not in again
    assert "FASTER against right" in again


def test_a_kernel_that_hangs_is_ended_and_the_next_save_is_judged(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("QUIET_S", "6")
    session = request.getfixturevalue("session")
    session.line()
    hung = session.save(f"if (a->N == 64) sleep(100); {RIGHT}")
    assert hung.startswith("timeout: against the last good version: checking B: no answer within 6 s")
    assert "FASTER against the last good version" in session.save(source(100))


def test_of_saves_in_quick_succession_the_last_one_has_a_line(session: Session) -> None:
    session.line()
    for us in (1500, 1600, 1700):
        session.source.write_text(source(us))
        time.sleep(0.15)  # longer than a file must rest, shorter than a compilation and a duel
    assert "FASTER against the last good" in session.save(source(100))
    assert session.is_silent()


def test_ctrl_c_during_a_duel_leaves_nothing_behind(session: Session) -> None:
    session.line()
    session.source.write_text(f"if (a->N == 64) sleep(100); {RIGHT}")
    deadline = time.monotonic() + PATIENCE_S
    journals = lambda: "".join(  # noqa: E731
        file.read_text() for file in (session.place / "temporary").glob("*/journal-2.jsonl")
    )
    while "checking B" not in journals() and time.monotonic() < deadline:
        time.sleep(0.02)
    processes = session.processes()
    os.killpg(session.child.pid, signal.SIGINT)
    assert session.child.wait(30) == 130
    assert (session.place / "errors").read_text().splitlines()[-1] == "interrupted"
    assert list((session.place / "temporary").iterdir()) == []
    assert [path.name for path in (session.place / "results").iterdir()] == [".duel"]
    assert len(processes) == 3
    assert not any(runs(pid) for pid in processes)


def runs(pid: str) -> bool:
    """Returns whether a process has neither ended nor is about to be reaped."""
    state = Path(f"/proc/{pid}/stat")
    return state.is_file() and " Z " not in state.read_text()


def test_a_wrong_name_is_a_usage_error(session: Session) -> None:
    command = [sys.executable, "-m", "warplog", "watch", "scale/nobody"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "workflow")}
    done = subprocess.run(
        command, cwd=session.place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no variant 'nobody'" in done.stderr
