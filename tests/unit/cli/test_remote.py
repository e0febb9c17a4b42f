"""warplog remote: one run on the other machine whatever the link does; its output and its records come back once.

The link is a program that runs the command here, or fails as ssh does when the connection breaks.
"""

import os
import shutil
import threading
from pathlib import Path

import pytest

from warplog.cli import main, remoting
from warplog.cli.remoting import Link
from warplog.core.errors import WarplogError

pytestmark = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")

SSH = """#!/bin/sh
[ "$1" = -l ] && shift 2
shift
echo call >> {home}/calls
if [ "$(head -n 1 {home}/broken 2>/dev/null)" = "$(wc -l < {home}/calls)" ]; then
  sed -i 1d {home}/broken
  echo "Connection reset by peer" >&2
  exit 255
fi
cd {home} && exec sh -c "$*"
"""
SNAKEMAKE = """
echo started >> starts
mkdir -p results/check/h200 results/campaign results/build/sm_90
echo "{}" > results/campaign/h200.json
for name in a b c; do
  echo "$name $*"
  echo "$name" > results/check/h200/$name.json
  echo "$name" > results/check/h200/.$name.part
  echo "$name" > results/build/sm_90/kernel.so
done
if [ -p wait ]; then read line < wait; fi
exit 3
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder with a project, and `home` as the other machine."""
    home = tmp_path / "home"
    home.mkdir()
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH.format(home=home))
    ssh.chmod(0o755)
    project = tmp_path / "project"
    for name in ("Snakefile", "kernels/naive.cu", "results/tables/old.csv", ".venv/python"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(name)
    (project / "snakemake.sh").write_text(SNAKEMAKE)
    monkeypatch.chdir(project)
    monkeypatch.setattr(remoting, "_POLL_S", 0.01)
    return tmp_path


def remote(place: Path, *options: str) -> int:
    arguments = ["remote", "me@box", "--path", "work dir", "--ssh", str(place / "ssh"), "--no-pages"]
    return main.main([*arguments, "--setup", "true", "--run", "sh snakemake.sh", "--", *options])


def link(place: Path) -> Link:
    return Link("me@box", "work dir", str(place / "ssh"))


def test_sources_go_there_and_records_come_back_but_nothing_else(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert remote(place, "--cores", "2", "it's") == 3, "the exit status is that of the run"
    there = place / "home" / "work dir"
    assert (there / "kernels/naive.cu").is_file()
    assert not (there / ".venv").exists()
    assert not (there / "results/tables").exists()
    here = place / "project/results/recorded/remote-box"
    found = sorted(str(path.relative_to(here)) for path in here.rglob("*") if path.is_file())
    assert found == ["campaign/h200.json", *(f"check/h200/{name}.json" for name in "abc")]
    output = capfd.readouterr().out
    assert output.splitlines() == [f"{name} --cores 2 it's" for name in "abc"]


@pytest.mark.parametrize("first", range(1, 7))
def test_a_link_that_breaks_three_times_loses_nothing_and_starts_nothing_twice(
    place: Path, capfd: pytest.CaptureFixture[str], first: int
) -> None:
    (place / "home/broken").write_text("".join(f"{first + 2 * number}\n" for number in range(3)))
    assert remote(place, "x") == 3
    assert (place / "home/work dir/starts").read_text() == "started\n"
    shown = capfd.readouterr()
    assert shown.out.splitlines() == ["a x", "b x", "c x"]
    assert "no link (" in shown.err
    assert len(list((place / "project/results/recorded/remote-box/check/h200").iterdir())) == 3


def test_the_same_command_attaches_to_the_run_and_another_one_is_refused(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    there = place / "home" / "work dir"
    there.mkdir()
    os.mkfifo(there / "wait")
    # The pipe is not a source: it must survive the copying of sources.
    project = place / "project"
    os.mkfifo(project / "wait")
    remoting.start(link(place), project, "true", "sh snakemake.sh a")
    with pytest.raises(WarplogError, match=r"another run is under way there: sh snakemake.sh a"):
        remoting.start(link(place), project, "true", "sh snakemake.sh b")
    remoting.start(link(place), project, "true", "sh snakemake.sh a")
    assert "attached to the run" in capfd.readouterr().err
    threading.Thread(target=(there / "wait").write_text, args=("go\n",)).start()
    assert remoting.follow(link(place), place / "fetched") == 3
    assert (there / "starts").read_text() == "started\n"


def test_a_link_that_stays_broken_and_a_failed_setup_are_one_line_each(place: Path) -> None:
    (place / "ssh").write_text("#!/bin/sh\necho No route to host >&2\nexit 255\n")
    with pytest.raises(WarplogError, match=r"no link \(No route to host\); run the same command again"):
        remoting.patiently(lambda: remoting.start(link(place), place / "project", "true", "true"), 0.0)
    (place / "ssh").write_text(SSH.format(home=place / "home"))
    with pytest.raises(WarplogError, match=r"the setup failed \(exit status 1\): no uv"):
        remoting.start(link(place), place / "project", "echo no uv >&2; false", "true")


def test_the_commit_of_the_sources_is_named() -> None:
    commit = "0123456789" * 4
    assert remoting.with_commit(["--cores", "2"], commit) == ["--cores", "2", "--config", f"commit={commit}"]
    assert remoting.with_commit(["--config", "gpu=all"], f"{commit}-dirty") == [
        *("--config", f"commit={commit}", "gpu=all")
    ]
    assert remoting.with_commit(["--config", "commit=abcdefg"], commit) == ["--config", "commit=abcdefg"]
    assert remoting.with_commit(["all"], "") == ["all"]
