"""Performs tasks of fault_server.py under faults: the process is killed, or the disk is full, at a chosen call."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Outcome:
    """What came of a task.

    Attributes:
        killed: whether SIGKILL ended the process.
        error: class and text of the exception; empty if there was none.
        changes: calls that create, rename or remove a file below the folder.
        writes: calls that need space there.
    """

    value: Any
    killed: bool
    error: tuple[str, ...]
    changes: int
    writes: int


class Faults:
    """A running server; a context manager."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        library = place / "interpose.so"
        subprocess.run(
            [
                "cc",
                *("-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"),
                library,
                HERE / "interpose.c",
                "-ldl",
            ],
            check=True,
        )
        self._log = (place / "server.log").open("w")
        self._server = subprocess.Popen(
            [sys.executable, HERE / "fault_server.py", place],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=place,
            env={**os.environ, "LD_PRELOAD": str(library), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        self._log.close()

    def do(self, task: str, folder: Path, *, kill: int = 0, full: int = 0) -> Outcome:
        """Performs a task, which is killed before its `kill`-th change, or fails from its `full`-th write on.

        Only changes and writes below `folder` count.
        """
        request = {"do": task, "folder": str(folder), "kill": kill, "full": full}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        assert answer["signal"] in (0, 9), f"{task} is stuck or crashed: {answer}"
        return Outcome(
            answer.get("value"),
            answer["signal"] == 9,
            tuple(answer.get("error", ())),
            answer.get("changes", 0),
            answer.get("writes", 0),
        )

    def well(self, task: str, folder: Path) -> Any:
        """Performs a task without faults, which has to succeed, and returns its value."""
        outcome = self.do(task, folder)
        assert not outcome.error, outcome.error
        assert not outcome.killed
        return outcome.value
