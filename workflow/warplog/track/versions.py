"""Which of several runs of one variant is current: runs are added and marked, never changed or deleted.

The key of a run is its line (project, campaign, GPU, family, variant) and a digest of its selection. Which runs of a
line are current depends on its complete runs alone. So writers that do not know of each other reach the same result,
whichever of them marks last.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from warplog.core.hashing import sha256_of

if TYPE_CHECKING:
    from mlflow.entities import Run as StoredRun

KEY, FINGERPRINT, STATE = "warplog.key", "warplog.fingerprint", "warplog.state"
SELECTION, VERSION, LOGGED_AT = "warplog.selection", "warplog.version", "warplog.logged_at"
WRITING, CURRENT, SUPERSEDED, INTERRUPTED = "writing", "current", "superseded", "interrupted"
_PARTS_OF_AN_OLD_KEY = 4  # campaign/gpu/family/variant, without origin and selection


def key(line: str, selection: Sequence[str]) -> str:
    """Returns the key of a run: its line, then a digest of what was selected."""
    return f"{line}/{sha256_of(sorted(selection))[:12]}"


def line_of(run: "StoredRun") -> str:
    """Returns project/campaign/gpu/family/variant of a stored run; of earlier versions, what their key begins with."""
    tags = run.data.tags
    if len(tags[KEY].split("/")) == _PARTS_OF_AN_OLD_KEY:
        return f"{tags[KEY]}/{tags.get('origin', '')}"
    return str(tags[KEY]).rpartition("/")[0]


def renewed(key: str, line: str) -> str:
    """Returns the key on `line` of a run that an earlier version of warplog gave this key."""
    parts = key.split("/")
    return f"{line}/{'' if len(parts) == _PARTS_OF_AN_OLD_KEY else parts[-1]}"


def is_complete(run: "StoredRun") -> bool:
    """Returns whether the run was written to its end."""
    tags = run.data.tags
    return FINGERPRINT in tags and run.info.status != "RUNNING" and tags.get(STATE) != INTERRUPTED


def version(run: "StoredRun") -> int:
    """Returns the number of the run in its line; 0 for runs of earlier versions of warplog."""
    return int(run.data.tags.get(VERSION, 0))


def newest(runs: Iterable["StoredRun"]) -> "StoredRun | None":
    """Returns the newest run; of those that were written at the same time, the one with the smallest id."""
    ordered = sorted(runs, key=lambda run: run.info.run_id)
    return max(ordered, key=version, default=None)


def states(line: Sequence["StoredRun"]) -> Mapping[str, str]:
    """Returns run id -> state of the complete runs of a line.

    A run is superseded if a newer one contains everything that it selected. So a smaller selection adds a run beside
    the larger one, and only the same or a larger selection takes its place. A run without results, of a copy of the
    campaign that lacks the variant, takes the place of none with results.
    """
    left = [run for run in line if is_complete(run)]
    found: dict[str, str] = {}
    newer: list[tuple[bool, set[str]]] = []
    while (run := newest(left)) is not None:
        left.remove(run)
        mine = run.data.tags.get("status") != "missing", _selection(run)
        superseded = any(mine[0] <= has_results and mine[1] <= other for has_results, other in newer)
        found[run.info.run_id] = SUPERSEDED if superseded else CURRENT
        newer.append(mine)
    return found


def contains(selection: Sequence[str], run: "StoredRun") -> bool:
    """Returns whether everything that the stored run selected is in `selection`."""
    return _selection(run) <= set(selection)


def joined(selection: Sequence[str]) -> str:
    """Returns the selection as the text of a tag."""
    return ", ".join(sorted(selection))


def _selection(run: "StoredRun") -> set[str]:
    return set(filter(None, run.data.tags.get(SELECTION, "").split(", ")))
