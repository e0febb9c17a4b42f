"""Which of several runs of one variant is current: runs are added and marked, never changed or deleted.

The key of a run is its line (project, campaign, GPU, family, variant) and a digest of its selection. Which runs of a
line are current depends on its complete runs alone. So writers that do not know of each other reach the same result,
whichever of them marks last.
"""

import datetime
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from warplog.core.hashing import sha256_of
from warplog.core.process import is_running

if TYPE_CHECKING:
    from mlflow.entities import Run as StoredRun

KEY, FINGERPRINT, STATE = "warplog.key", "warplog.fingerprint", "warplog.state"
SELECTION, VERSION, LOGGED_AT = "warplog.selection", "warplog.version", "warplog.logged_at"
WRITER = "warplog.writer"
FAMILY = "warplog.family"  # of an experiment
WRITING, CURRENT, SUPERSEDED, INTERRUPTED = "writing", "current", "superseded", "interrupted"
_SURELY_DEAD = datetime.timedelta(hours=1)  # a run is written in seconds, one with large files in minutes


def key(line: str, selection: Sequence[str]) -> str:
    """Returns the key of a run: its line, then a digest of what was selected."""
    return f"{line}/{sha256_of(sorted(selection))[:12]}"


def line_of(run: "StoredRun") -> str:
    """Returns the line of a stored run."""
    return str(run.data.tags[KEY]).rpartition("/")[0]


def is_complete(run: "StoredRun") -> bool:
    """Returns whether the run was written to its end."""
    tags = run.data.tags
    return FINGERPRINT in tags and run.info.status != "RUNNING" and tags.get(STATE) != INTERRUPTED


def is_active(run: "StoredRun") -> bool:
    """Returns whether nobody deleted the run."""
    return bool(run.info.lifecycle_stage == "active")


def version(run: "StoredRun") -> int:
    """Returns the number of the run in its line; 0 for runs of earlier versions of warplog, or if the tag is none."""
    number = str(run.data.tags.get(VERSION, 0))
    return int(number) if re.fullmatch(r"[0-9]{1,9}", number) else 0


def newest(runs: Iterable["StoredRun"]) -> "StoredRun | None":
    """Returns the newest run; of those that were written at the same time, the one with the smallest id."""
    return max(sorted(runs, key=lambda run: run.info.run_id), key=version, default=None)


def states(line: Iterable["StoredRun"]) -> Mapping[str, str]:
    """Returns run id -> state of the complete runs of a line.

    A run is superseded if a newer one contains everything that it selected. So a smaller selection adds a run beside
    the larger one, and only the same or a larger selection takes its place. A run without results, of a copy of the
    campaign that lacks the variant, takes the place of none with results.
    """
    left = [run for run in line if is_complete(run)]
    states_of: dict[str, str] = {}
    newer: list[tuple[bool, set[str]]] = []
    while (run := newest(left)) is not None:
        left.remove(run)
        mine = run.data.tags.get("status") != "missing", _selection(run)
        superseded = any(mine[0] <= has_results and mine[1] <= other for has_results, other in newer)
        states_of[run.info.run_id] = SUPERSEDED if superseded else CURRENT
        newer.append(mine)
    return states_of


def contains(selection: Sequence[str], run: "StoredRun") -> bool:
    """Returns whether everything that the stored run selected is in `selection`."""
    return _selection(run) <= set(selection)


def joined(selection: Sequence[str]) -> str:
    """Returns the selection as the text of a tag."""
    return ", ".join(sorted(selection))


def this_writer() -> str:
    """Returns host/id of this process."""
    return f"{platform.node()}/{os.getpid()}"


def has_died(run: "StoredRun") -> bool:
    """Returns whether the process that began to write a run is gone, or on another host began over an hour ago."""
    host, _, pid = run.data.tags.get(WRITER, "").rpartition("/")
    if host == platform.node() and re.fullmatch(r"\d{1,9}", pid) and not is_running(int(pid)):
        return True
    try:
        begun = datetime.datetime.fromisoformat(run.data.tags.get(LOGGED_AT, ""))
        return datetime.datetime.now(datetime.UTC) - begun > _SURELY_DEAD
    except (ValueError, TypeError):  # no time, or one without a zone
        return True


def _selection(run: "StoredRun") -> set[str]:
    return set(filter(None, run.data.tags.get(SELECTION, "").split(", ")))
