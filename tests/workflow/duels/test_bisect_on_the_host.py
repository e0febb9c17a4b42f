"""`warplog bisect` in a repository of 16 commits, on a machine whose CPU stands in for the GPU."""

import json
import math
import subprocess
from pathlib import Path

import pytest
from test_duel_on_the_host import RIGHT, ab, git

from host_family import REFERENCE, YAML, pretend
from warplog.records import door
from warplog.records.requested.bisect import Bisection

# The clock is that of a busy host: a noisy look is followed by another one.
WIDE = ("--margin", "0.3", "--seconds", "0.8")
FAST, SLOW = (f"usleep({us}); {RIGHT}" for us in (1000, 2500))
GUILTY, COMMITS = 11, 16


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a repository: `right` becomes slower at commit 11 of 16 after the tag `good`.

    Every fourth commit changes a comment. On the branch `flaky`, commit 8 does not compile, and commit 12 is wrong; on
    `hidden`, the guilty one does not compile.
    """
    place = tmp_path_factory.mktemp("bisect")
    pretend(place, "match._WINDOW_S = match._WINDOW_APART_S = 0.06\n")
    family = place / "kernels" / "scale"
    family.mkdir(parents=True)
    (family / "family.yaml").write_text(YAML)
    (family / "reference.py").write_text(REFERENCE)
    (place / ".gitignore").write_text("results/\nsite/\ntemporary/\n")
    git(place, "init", "-q", "-b", "main")
    sources = dict.fromkeys(range(GUILTY), FAST) | dict.fromkeys(range(GUILTY, COMMITS + 1), SLOW)
    planted = {8: "this is no C;", 12: f"{SLOW} a->y[0] += 1;"}
    for branch, own in (
        ("main", sources),
        ("flaky", sources | planted),
        ("hidden", sources | {GUILTY: "no C;"}),
    ):
        if branch != "main":
            git(place, "checkout", "-q", "-b", branch, "good")
        for number, source in own.items():
            (family / "right.cu").write_text(f"/* {number // 4} */ {source}")
            git(place, "add", "-A")
            git(place, "commit", "-q", "--allow-empty", "-m", f"change {number}")
            if branch == "main" and number == 0:
                git(place, "tag", "good")
    git(place, "checkout", "-q", "good")
    (family / "right.cu").write_text("not yet committed")
    return place


def state(place: Path) -> str:
    """Returns what git knows of the working tree, its branch and its stash."""
    words = ("status", "--porcelain=v2", "--branch")
    return subprocess.run(["git", "-C", place, *words], capture_output=True, text=True, check=True).stdout


def bisection(place: Path, *words: str, status: int = 0) -> Bisection:
    before = state(place)
    output, _ = ab(place, *words, *WIDE, "--json", status=status, verb="bisect")
    assert state(place) == before
    assert (place / "kernels" / "scale" / "right.cu").read_text() == "not yet committed"
    return door.decode(json.loads(output), Bisection, "output")


@pytest.mark.parametrize("branch", ["main", "flaky"])
def test_the_commit_is_found_and_confirmed_with_few_builds(place: Path, branch: str) -> None:
    found = bisection(place, "good", branch)
    assert (found.word, [one.subject for one in found.suspects]) == ("found", [f"change {GUILTY}"])
    assert found.confirmed is not None
    assert found.confirmed.judged[0].time.low > 1.3
    assert found.confirmed.a.commit != found.confirmed.b.commit == found.suspects[0].hash
    around = [step.commit.subject for step in found.steps if step.word == "stepped around"]
    assert found.builds <= math.ceil(math.log2(found.commits)) + 2 + len(around)
    assert around == (["change 8", "change 12"] if branch == "flaky" else [])


def test_equal_machine_code_needs_no_duel(place: Path) -> None:
    found = bisection(place, "good", "main")
    assert [step.commit.subject for step in found.steps if step.duel] == ["change 16"]
    assert "the machine code is that of" in found.steps[1].reason


def test_the_last_line_names_the_commit_and_its_ratio(place: Path) -> None:
    output, errors = ab(
        place, "good", "main", "--variant", "scale/right", "--case", "64", *WIDE, verb="bisect"
    )
    (line,) = output.splitlines()
    assert line.startswith("FOUND  ")
    assert f" change {GUILTY}: scale/right 64 +" in line
    assert " to +" in line
    assert errors.count("  bisect  ") == 5


def test_without_a_regression_there_is_none(place: Path) -> None:
    output, _ = ab(place, "good", f"main~{COMMITS - GUILTY + 1}", *WIDE, status=1, verb="bisect")
    assert output.startswith("NONE  no regression of scale/right 64 between good and main~6")


def test_a_commit_hidden_by_one_that_does_not_compile_is_not_named(place: Path) -> None:
    found = bisection(place, "good", "hidden", status=3)
    assert (found.word, found.confirmed) == ("unclear", None)
    assert [one.subject for one in found.suspects] == ["change 11", "change 12"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("main", "good"), "main is not an earlier commit that good is built on"),
        (("good", "v9"), "'v9' is no commit"),
        (("good", "main", "--variant", "scale/left"), "no variant 'scale/left'"),
        (("good", "main", "--case", "65"), "no case '65'"),
        (("good", "main~15"), "no variant differs between good and main~15; name one with --variant"),
    ],
)
def test_a_wrong_name_is_a_usage_error(place: Path, words: tuple[str, ...], why: str) -> None:
    assert why in ab(place, *words, status=2, verb="bisect")[1]
