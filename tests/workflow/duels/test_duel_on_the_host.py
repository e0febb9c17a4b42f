"""`warplog ab` with its real worker and processes, on a machine whose CPU stands in for the GPU."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from host_family import REFERENCE, YAML, pretend, pretended_path
from warplog.records import door
from warplog.records.requested.duel import Duel
from warplog.records.requested.gate import Gate

PROJECT = Path(__file__).parents[3]
RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
SOURCES = {
    "right": f"usleep(300); {RIGHT}",
    "slow": f"usleep(1500); {RIGHT}",
    "bad": f"{RIGHT} a->y[0] += 1;",
    "deadly": "abort();",
    "late": f"static int calls; if (++calls > 20) return 700; {RIGHT}",
    "broken": "this is no C;",
    "endless": f"if (a->N == 64) sleep(100); {RIGHT}",
    # The second library of a process to be launched is slower, whichever it is.
    "second": f'static int late = -1; if (late < 0) {{ late = getenv("LATE") != NULL; setenv("LATE", "", 1); }}'
    f" usleep(late ? 1500 : 300); {RIGHT}",
}
PYTHON = """
import time

def launch(arrays, scalars, stream):
    time.sleep({seconds})
    arrays["y"][:] = arrays["x"] * scalars["factor"]
"""
QUICK = ("--seconds", "0.1")


def environment(place: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": pretended_path(place), "TMPDIR": str(place / "temporary")}


def git(place: Path, *words: str) -> None:
    who = ("-c", "user.name=T", "-c", "user.email=t@example.com")
    subprocess.run(["git", "-C", place, *who, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a repository with one family of C functions; at its first commit, `right` is as slow as `slow`."""
    place = tmp_path_factory.mktemp("duel")
    quick = "from warplog.duel import turns\nturns.TURN_S = turns._SETTLE_S = 0.05\n"
    quick += "match._WINDOW_S = match._WINDOW_APART_S = 0.06\nmatch._QUIET_S = float(os.environ.get('QUIET_S', 60))\n"
    pretend(place, quick)
    family = place / "kernels" / "scale"
    family.mkdir(parents=True)
    entries = "".join(f"  - {{name: {name}, parent: right, idea: an idea}}\n" for name in list(SOURCES)[1:])
    entries += "  - {name: module, language: cupy, parent: right, idea: in Python}\n"
    (family / "family.yaml").write_text(YAML.rstrip() + "\n" + entries)
    (family / "reference.py").write_text(REFERENCE)
    for name, source in SOURCES.items():
        (family / f"{name}.cu").write_text(source)
    (family / "module.py").write_text(PYTHON.format(seconds=0.001))
    (family / "right.cu").write_text(SOURCES["slow"])
    (place / ".gitignore").write_text("results/\nsite/\ntemporary/\n")
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "first")
    (family / "right.cu").write_text(SOURCES["right"])
    (family / "module.py").write_text(PYTHON.format(seconds=0.003))
    return place


def start(place: Path, *words: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "warplog", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=place, env=environment(place), start_new_session=True, **pipes)


def ab(place: Path, *words: str, status: int = 0, verb: str = "ab") -> tuple[str, str]:
    with start(place, verb, *QUICK, *words) as child:
        output, errors = child.communicate(timeout=120)
    assert child.returncode == status, output + errors
    assert list((place / "temporary").iterdir()) == []
    return output, errors


def record(place: Path, *words: str, status: int = 0) -> Duel:
    return door.decode(json.loads(ab(place, *words, "--json", status=status)[0]), Duel, "output")


def test_the_slower_variant_is_named_in_one_line(place: Path) -> None:
    output, errors = ab(place, "right", "slow")
    line = output.splitlines()[0]
    assert line.startswith("SLOWER  slow against right, scale 64 at rest: +")
    assert "4 processes" in line
    assert "rest: process 3 of 3 to 3: +" in errors


def test_the_record_holds_a_window_of_each_process_with_addresses_of_its_own(place: Path) -> None:
    duel = record(place, "slow", "right")
    (judged,) = duel.judged
    assert (judged.time.word, judged.regime, duel.apart, duel.same_arrays) == ("FASTER", "rest", "", True)
    assert judged.time.low < judged.time.high < 1
    assert [window.process for window in judged.windows] == [1, 2, 3, 4]
    assert len({window.seed for window in judged.windows}) == 4
    assert all(window.blocks >= 4 for window in judged.windows)
    assert judged.cycles is not None  # the pretended clock is 1000 MHz on both sides
    assert judged.cycles.ratio == pytest.approx(judged.time.ratio, rel=1e-6)


def test_what_the_second_library_of_a_process_pays_falls_on_each_side_in_turn(place: Path) -> None:
    (judged,) = record(place, "second", "second").judged
    assert [window.time.log_ratio > 0 for window in judged.windows] == [True, False, True]
    assert all(abs(window.time.log_ratio) > 0.5 for window in judged.windows)
    assert judged.time.word == "AMBIGUOUS"


def test_a_commit_duels_with_the_working_tree(place: Path) -> None:
    duel = record(place, "HEAD:", "right")
    assert duel.judged[0].time.word == "FASTER"
    assert len(duel.a.commit) == 40
    assert duel.b.commit == ""
    assert duel.a.source_sha256 != duel.b.source_sha256


def test_a_file_takes_the_place_of_the_other_side(place: Path) -> None:
    own = place / "mine.cu"
    own.write_text(SOURCES["slow"] + "/* mine */")
    assert record(place, "scale/right", "mine.cu").judged[0].time.word == "SLOWER"


def test_modules_of_two_commits_alternate_in_processes_of_their_own(place: Path) -> None:
    duel = record(place, "HEAD:module", "module")
    assert "two folders" in duel.apart
    assert duel.judged[0].time.word == "SLOWER"
    assert not duel.same_arrays


def test_at_a_limit_they_also_duel_sustained(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMITED_N", "64")
    builds = place / "results" / ".duel" / "builds"
    timers = lambda: [timer.unlink() for timer in builds.glob("timer.*.so")]  # noqa: E731
    timers()
    try:
        rest, sustained = record(place, "right", "slow").judged
        only = record(place, "right", "slow", "--rest").judged
    finally:
        timers()
    assert (rest.regime, sustained.regime, sustained.time.word) == ("rest", "sustained", "SLOWER")
    assert [window.blocks for window in sustained.windows] == [1] * len(sustained.windows)
    assert sustained.cycles is None
    assert rest.windows[0].limited
    assert [judged.regime for judged in only] == ["rest"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("right", "nobody"), "no variant 'nobody'"),
        (("right", "slow", "--case", "65"), "no case '65'"),
        (("v9:right", "slow"), "v9"),
        (("right", "gone.cu"), "no such file"),
    ],
)
def test_a_wrong_name_is_a_usage_error(place: Path, words: tuple[str, ...], why: str) -> None:
    assert why in ab(place, *words, status=2)[1]


@pytest.mark.parametrize(
    ("variant", "status", "why"),
    [
        ("bad", "wrong", "B: case odd: y: 1 of 127 elements are outside the tolerance"),
        ("deadly", "crashed", "checking B: the process ended: SIGABRT"),
        ("late", "crashed", "B: host"),  # what the pretended driver says of any error
        ("broken", "compile_error", "broken: its build: error"),
        ("endless", "timeout", "checking B: no answer within 6 s"),
    ],
)
def test_a_side_that_cannot_be_measured_has_no_verdict(
    place: Path, variant: str, status: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if status == "timeout":
        monkeypatch.setenv("QUIET_S", "6")
    duel = record(place, "right", variant, status=3)
    assert (duel.status, duel.judged) == (status, ())
    assert why in duel.reason


def test_a_gate_names_what_became_slower_beside_an_unchanged_control(place: Path) -> None:
    files = "comment.md", "junit.xml"
    wide = ("--margin", "0.3")  # the clock is that of a busy host
    written = (*wide, "--markdown", files[0], "--junit", files[1])
    output, _ = ab(place, "HEAD", "--json", *written, status=1, verb="gate")
    gate = door.decode(json.loads(output), Gate, "output")
    words = {(one.variant, one.control): one.word for one in gate.cases}
    assert (words["right", False], words["module", False]) == ("gain", "loss")
    assert gate.cases[0].control
    assert gate.unchanged == len(SOURCES) - 1
    comment, junit = ((place / name).read_text() for name in files)
    assert comment.startswith("### Loss: the working tree against HEAD")
    assert "| loss" in comment
    assert junit.count("<failure") == 1


def test_a_gate_without_a_change_measures_nothing(place: Path) -> None:
    output, _ = ab(place, "HEAD", "HEAD", verb="gate")
    assert output.startswith("NOTHING TO MEASURE  HEAD against HEAD")


def test_an_interrupted_duel_leaves_nothing_behind(place: Path) -> None:
    with start(place, "ab", "right", "endless") as child:
        deadline = time.monotonic() + 60
        while not list((place / "temporary").glob("*/journal.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=30)
    assert child.returncode == 130
    assert errors.splitlines()[-1] == "interrupted"
    assert list((place / "temporary").iterdir()) == []
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(place / "temporary") not in found
