"""The tracking stage is killed, finds the disk full or the store locked; the same command again completes it.

Afterwards every variant has exactly one current run, with all that an undisturbed process logs. The runs of another
campaign in the same store, and superseded ones that tracking keeps, are as they were.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from faulty import Faults, copy_of

SEED = 20261122
FIRST, LATER = "a first store", "changed numbers beside another campaign"
FEW, MANY = 3, 100
ARTIFACTS = "results/mlartifacts"


@dataclass(frozen=True)
class Start:
    """A project in which `track` has something to do.

    Attributes:
        changes: the calls with which any undisturbed process creates, renames or removes files; some have a few more.
        writes: the calls of any undisturbed process that need space.
        after: what the store holds afterwards.
    """

    project: Path
    changes: int
    writes: int
    after: dict

    def sample(self, most: int, count: int, name: str) -> list[int]:
        """Returns `count` different numbers from 1 to `most`: the first, the last and random ones between them."""
        chosen = random.Random(f"{SEED}/{self.project.name}/{name}")
        return [1, most, *chosen.sample(range(2, most), min(count, most) - 2)]


def start(faults: Faults, project: Path, place: Path) -> Start:
    tried = copy_of(project, place)
    outcome = faults.do("track", tried)
    assert not outcome.error, outcome.error
    return Start(
        project, outcome.changes * 95 // 100, outcome.writes * 95 // 100, faults.well("state", tried)
    )


@pytest.fixture(scope="module", params=[FIRST, LATER])
def begun(request, faults, tmp_path_factory):
    place = tmp_path_factory.mktemp("project")
    project = place / request.param
    project.mkdir()
    faults.well("make", project)
    if request.param == LATER:
        faults.well("track_another", project)
        faults.well("track", project)
        faults.well("change", project)
    found = start(faults, project, place / "undisturbed")
    assert {len(runs) for runs in found.after.values()} == {1}
    current = [key for key in found.after if not key.endswith(")")]
    assert len(current) == (2 if request.param == FIRST else 4)
    assert {run[0] for runs in found.after.values() for run in runs} == {"FINISHED"}
    assert all(run[3] for runs in found.after.values() for run in runs)
    return found


def completed(faults: Faults, begun: Start, project: Path) -> list[str]:
    """Runs the same task without faults; returns what is wrong then: it is stuck, or runs are lost or doubled."""
    again = faults.do("track", project)
    if again.error:
        return [f"stuck: {again.error[1]}"]
    after = faults.well("state", project)
    lost = [f"lost: {key}" for key in begun.after if key not in after]
    doubled = [f"doubled: {key}" for key, runs in after.items() if len(runs) > 1]
    differ = [f"differs: {key}" for key, runs in after.items() if runs != begun.after.get(key)]
    return lost + doubled + (differ if not lost and not doubled else [])


def everywhere(
    begun: Start, place: Path, numbers: list[int], attempt: Callable[[Path, int], list[str]]
) -> dict[int, list[str]]:
    """Makes an attempt on a fresh copy of the project for each number; returns what is wrong, by number."""
    tried = {number: attempt(copy_of(begun.project, place), number) for number in numbers}
    return {number: wrong for number, wrong in tried.items() if wrong}


@pytest.fixture
def killed(faults, begun):
    """Returns the attempt of tracking that is killed before its n-th change."""

    def attempt(project: Path, number: int) -> list[str]:
        assert faults.do("track", project, kill=number).killed, f"change {number} of {begun.changes}"
        return completed(faults, begun, project)

    return attempt


@pytest.fixture
def full(faults, begun):
    """Returns the attempt of tracking that finds the disk full from its n-th write on."""

    def attempt(project: Path, number: int) -> list[str]:
        error = faults.do("track", project, full=number).error
        as_line = error[:1] == ("WarplogError",) and "\n" not in error[1] and f"({project}" in error[1]
        return [
            *([] if as_line else [f"no error, or not on one line: {error}"]),
            *completed(faults, begun, project),
        ]

    return attempt


def test_killed_at_any_change_of_a_file_it_goes_on(begun, killed, tmp_path):
    numbers = begun.sample(begun.changes, FEW, "kill")
    assert everywhere(begun, tmp_path / "project", numbers, killed) == {}


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_killed_at_a_hundred_changes_of_files_it_goes_on(begun, killed, tmp_path):
    numbers = begun.sample(begun.changes, MANY, "many kills")
    assert everywhere(begun, tmp_path / "project", numbers, killed) == {}


@pytest.fixture
def redrawn(faults, begun, tmp_path):
    """Returns a project that was logged, and then a figure of it changed."""
    project = copy_of(begun.project, tmp_path / "logged")
    faults.well("track", project)
    faults.well("change_figure", project)
    return replace(begun, project=project)


def killed_below(faults: Faults, redrawn: Start, place: Path, below: str) -> Iterator[list[str]]:
    """Kills at each change below a folder, the last one first; yields what is wrong afterwards, or left over."""
    changes = faults.do("track", copy_of(redrawn.project, place), below=below).changes
    assert changes
    for number in range(changes, 0, -1):
        project = copy_of(redrawn.project, place)
        assert faults.do("track", project, kill=number, below=below).killed, f"change {number} of {changes}"
        yield completed(faults, redrawn, project) + faults.well("hidden", project)


@pytest.mark.parametrize("begun", [FIRST], indirect=True)
def test_killed_before_the_last_change_in_the_folder_of_figures_it_leaves_no_temporary_file(
    faults, redrawn, tmp_path
):
    (folder,) = redrawn.project.glob(f"{ARTIFACTS}/*/*/artifacts/figures")
    below = folder.relative_to(redrawn.project).as_posix()
    assert next(killed_below(faults, redrawn, tmp_path / "project", below)) == []


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_killed_at_any_change_of_artifacts_it_leaves_no_temporary_file(faults, redrawn, tmp_path):
    wrong = list(killed_below(faults, redrawn, tmp_path / "project", ARTIFACTS))
    assert wrong == [[]] * len(wrong)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_killed_several_times_in_a_row_it_goes_on(faults, begun, tmp_path):
    chosen = random.Random(f"{SEED}/row")
    wrong = {}
    for attempt in range(20):
        project = copy_of(begun.project, tmp_path / "project")
        kills = [chosen.randint(1, begun.changes) for _ in range(4)]
        for kill in kills:
            faults.do("track", project, kill=kill)
        if found := completed(faults, begun, project):
            wrong[attempt, *kills] = found
    assert wrong == {}


def test_on_a_disk_that_is_full_from_any_write_on_it_says_so_and_goes_on_later(begun, full, tmp_path):
    numbers = begun.sample(begun.writes, FEW, "full")
    assert everywhere(begun, tmp_path / "project", numbers, full) == {}


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_on_a_disk_that_is_full_from_one_of_a_hundred_writes_on_it_goes_on_later(begun, full, tmp_path):
    numbers = begun.sample(begun.writes, MANY, "many full disks")
    assert everywhere(begun, tmp_path / "project", numbers, full) == {}


@pytest.mark.parametrize("begun", [LATER], indirect=True)
def test_a_locked_store_is_one_error_and_is_completed_later(faults, begun, tmp_path):
    project = copy_of(begun.project, tmp_path / "project")
    locked = faults.do("track_locked", project)
    assert locked.error[:1] == ("WarplogError",)
    assert "locked" in locked.error[1]
    assert "\n" not in locked.error[1]
    assert completed(faults, begun, project) == []


@pytest.mark.parametrize("begun", [LATER], indirect=True)  # a first store: test_tracking_database.py
def test_four_processes_at_once_log_each_run_once(faults, begun, tmp_path):
    project = copy_of(begun.project, tmp_path / "project")
    assert faults.well("track_four_times", project) == [0, 0, 0, 0]
    assert {key: len(runs) for key, runs in faults.well("state", project).items()} == dict.fromkeys(
        begun.after, 1
    )
    assert completed(faults, begun, project) == []
