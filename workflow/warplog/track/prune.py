"""Delete runs of warplog from a tracking store: superseded and interrupted ones, or those of a campaign."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warplog.track import identity, versions
from warplog.track.address import shown
from warplog.track.connection import connect
from warplog.track.store import by_line, search_all

if TYPE_CHECKING:
    from mlflow.entities import Run as StoredRun


@dataclass(frozen=True)
class Choice:
    """Which runs to delete; an empty text matches all.

    Attributes:
        campaign: name or id of the campaign.
        current: whether to delete current runs as well.
    """

    campaign: str = ""
    family: str = ""
    origin: str = ""
    current: bool = False


def prune(uri: str, choice: Choice, delete: bool, report: Callable[[str], None]) -> int:
    """Reports the chosen runs, a line each; deletes them if `delete`; returns their number.

    MLflow keeps deleted runs until `mlflow gc`.

    Raises:
        WarplogError: the store does not exist or does not answer, or several campaigns have the chosen name.
    """
    with connect(uri, write=delete) as link:
        experiments = link.client.search_experiments(max_results=1000)
        ids = [experiment.experiment_id for experiment in experiments if versions.FAMILY in experiment.tags]
        lines = by_line(search_all(link.client, ids, "") if ids else [])
        chosen = [
            (line, run, state)
            for line in sorted(lines)
            for run, state in _states(lines[line])
            if _matches(run, state, choice)
        ]
        if choice.campaign:
            identity.check_one(choice.campaign, (run for _, run, _ in chosen))
        for line, run, state in chosen:
            report(_described(line, run, state))
            if delete:
                link.client.delete_run(run.info.run_id)
    did = "deleted" if delete else "would be deleted"
    how = "; `mlflow gc` frees their space" if delete else "; repeat with --yes to delete them"
    report(f"{shown(uri)}: {len(chosen)} runs {did}{how if chosen else ''}")
    return len(chosen)


def _states(line: "list[StoredRun]") -> "list[tuple[StoredRun, str]]":
    states = versions.states(line)
    return [(run, states.get(run.info.run_id) or _incomplete(run)) for run in line]


def _incomplete(run: "StoredRun") -> str:
    """Returns the state of an incomplete run: being written, or interrupted."""
    marked = run.data.tags.get(versions.STATE) == versions.INTERRUPTED
    return versions.INTERRUPTED if marked or versions.has_died(run) else versions.WRITING


def _matches(run: "StoredRun", state: str, choice: Choice) -> bool:
    tags = run.data.tags
    wanted = {"family": choice.family, "origin": choice.origin}
    if any(value and tags.get(name) != value for name, value in wanted.items()):
        return False
    if choice.campaign and choice.campaign not in (tags.get("campaign"), tags.get(identity.CAMPAIGN_ID)):
        return False
    return state in (versions.SUPERSEDED, versions.INTERRUPTED) or (
        choice.current and state == versions.CURRENT
    )


def _described(line: str, run: "StoredRun", state: str) -> str:
    tags = run.data.tags
    selection = tags.get(versions.SELECTION, "")
    cases = f"cases {selection}" if selection else "cases unknown"
    return f"{state:<11}  {line}  {cases}  logged {tags.get(versions.LOGGED_AT, '?')}  run {run.info.run_id}"
