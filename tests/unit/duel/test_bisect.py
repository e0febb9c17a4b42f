"""What a bisection names, from duels with made-up ratios in a repository of five commits."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from host_family import REFERENCE, YAML
from made_up_duels import found as made_up
from warplog.duel import making, words
from warplog.duel.changes.bisect import bisect, corner_at
from warplog.duel.making import Made
from warplog.duel.match import Options
from warplog.duel.sides import Corner
from warplog.duel.sources import commits_between
from warplog.machine import device
from warplog.records.requested.bisect import Bisection
from warplog.records.requested.duel import Duel

Search = Callable[[Sequence[float]], Bisection]


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    """Returns a function that searches where the commits, the first of which is GOOD, take these times."""
    family = tmp_path / "kernels" / "scale"
    family.mkdir(parents=True)
    (family / "family.yaml").write_text(YAML)
    (family / "reference.py").write_text(REFERENCE)
    git = ("git", "-C", tmp_path, "-c", "user.name=T", "-c", "user.email=t@example.com")
    subprocess.run([*git, "init", "-q"], check=True)
    for number in range(5):
        (family / "right.cu").write_text(str(number))
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"change {number}"], check=True)
    monkeypatch.setattr(device, "boards", lambda: ["board"])
    made = lambda corner, *_: Made(corner, corner.variant.file, None)  # noqa: E731
    monkeypatch.setattr(making, "make", made)

    def found(times: Sequence[float]) -> Bisection:
        def fight(corners: Sequence[Corner], options: Options, _: Path) -> Duel:
            a, b = (times[int(one.variant.file.read_text())] for one in corners)
            word = "SAME" if b <= 1.005 * a else "SLOWER"
            return made_up(word, b / a)

        refs = "HEAD~4", "HEAD"
        commits = commits_between(*refs, tmp_path)
        good = corner_at(refs[0], "scale/right", tmp_path)
        return bisect(good, refs, commits, Options("64", 9.0, 0.005), tmp_path, fight)

    return found


@pytest.mark.parametrize("guilty", [1, 2, 3, 4])
def test_each_place_is_found_with_few_builds(search: Search, guilty: int) -> None:
    found = search([1.0 if number < guilty else 1.02 for number in range(5)])
    (commit,) = found.suspects
    assert (found.word, commit.subject.startswith(f"change {guilty}")) == ("found", True)
    assert found.builds <= 4  # log2(4) + 2


def test_losses_that_only_add_up_accuse_no_commit(search: Search) -> None:
    found = search([1.0, 1.003, 1.006, 1.009, 1.012])
    assert (found.word, found.reason) == ("unclear", "not confirmed against the commit before it: same")


def test_a_commit_that_is_faster_than_good_is_no_suspect(search: Search) -> None:
    found = search([1.0, 0.9, 0.9, 1.02, 1.02])
    assert [one.subject[:8] for one in found.suspects] == ["change 3"]
    assert found.confirmed is not None
    assert found.confirmed.judged[0].time.ratio == pytest.approx(
        1.02 / 0.9
    )  # against the one before, not GOOD


def test_the_line_of_a_step_names_commit_verdict_and_ratio(search: Search) -> None:
    found = search([1.0, 1.0, 1.0, 1.0, 1.02])
    line = words.step_line(found.steps[0])
    assert line.startswith(f"{found.steps[0].commit.hash[:12]} change 4")
    assert "bad; +2.00 %" in line
