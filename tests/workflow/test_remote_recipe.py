"""The commands of workflow/docs/remote.md, run as printed: they bring a campaign back, and lose no file of anyone.

The other machine is another home folder here: `ssh` runs its command there, rsync and Git are real, and what measures
copies a small campaign.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import snakemake_runs
from copied_project import PROJECT, copy_project
from small_campaign import FOLDER as SMALL
from warplog.catalog.family import load_family
from warplog.cli import main
from warplog.judge.campaigns import recorded_campaign
from warplog.records.config import Config

pytestmark = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")

PAGE = (PROJECT / "workflow" / "docs" / "remote.md").read_text()
BLOCKS = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
COMMIT = "git init -q && git add -A && git commit -qm first"
(MAKE, COPY, MEASURE, IN_TMUX, WITHOUT_UV, RECORD, FETCH, OWN_INSTALL, OWN_MEASURE, OWN_FETCH) = BLOCKS
STAND_INS = {
    "ssh": '[ "$1" = -t ] && shift; shift; cd "$THERE" && HOME=$THERE exec sh -c "$*"',
    "uv": """case "$*" in
        *mode=recorded*) shift 2; exec "$SNAKEMAKE" -m snakemake -n "$@" ;;
        "run snakemake"*) mkdir -p results && cp -r "$MEASURED"/. results ;;
        "run warplog"*) shift 2; exec "$PYTHON" -m warplog "$@" ;;
        venv*) mkdir -p .venv/bin && cp "$(command -v warplog)" .venv/bin ;;
        "pip install"*) shift 3; [ -f "${1%%\\[*}" ] ;;
        esac""",
    "warplog": """case "$*" in
        *mode=recorded*) ;;
        run*) mkdir -p warplog/results && cp -r "$MEASURED"/. warplog/results ;;
        *) exec "$PYTHON" -m warplog "$@" ;;
        esac""",
    "tmux": 'while [ $# -gt 1 ]; do shift; done; exec sh -c "$1" </dev/null',
    "python3": """mkdir -p "$3/bin" && printf '#!/bin/sh\\ncp "$(command -v uv)" .uv/bin/' > "$3/bin/pip"
        chmod +x "$3/bin/pip" """,
}


class Machines:
    """This machine and the other one, `there`; `log` holds the calls of stand-ins with their working directories."""

    def __init__(self, place: Path) -> None:
        self.here, self.there, self.log = place / "here", place / "there", place / "log"
        programs, measured = place / "programs", place / "measured"
        for folder in (self.here, self.there, programs):
            folder.mkdir()
        for name, script in STAND_INS.items():
            program = programs / name
            program.write_text(f'#!/bin/sh\nprintf "%s: {name} %s\\n" "$PWD" "$*" >> "$LOG"\n{script}\n')
            program.chmod(0o755)
        for stage in ("campaign", "build", "check", "time"):
            shutil.copytree(SMALL / stage, measured / stage)
        (measured / "tables").mkdir()
        (measured / "tables" / "measurements.csv").write_text("family,origin,x\nsgemm,live,1\n")
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            **{"THERE": str(self.there), "MEASURED": str(measured), "LOG": str(self.log)},
            **{"PYTHON": sys.executable, "WHEEL": str(place / "warplog-1.0-py3-none-any.whl")},
            **{f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self.log.touch()

    def run(self, block: str) -> subprocess.CompletedProcess[str]:
        """Runs commands of the page here."""
        return subprocess.run(
            ["bash", "-c", block],
            cwd=self.here,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def do(self, *blocks: str) -> str:
        """Runs commands of the page here, which must succeed; returns what they print."""
        output = ""
        for block in blocks:
            done = self.run(block)
            assert done.returncode == 0, done.stdout + done.stderr
            output += done.stdout + done.stderr
        return output


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes files below a folder, by name."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def state(folder: Path) -> dict[str, tuple[float, bytes | str]]:
    """Returns the time and content of everything below a folder."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime,
            str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else "",
        )
        for path in folder.rglob("*")
    }


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    """Returns a small repository here, and a home folder with files of somebody there."""
    made = Machines(tmp_path)
    texts = {
        ".gitignore": ".env\n/results/*\n!/results/recorded/\n",
        ".env": "TOKEN=secret\n",
        "Snakefile": "first\n",
        "kernels/sgemm/naive.cu": "first\n",
        "kernels/old.cu": "first\n",
        "results/recorded/README.md": "first\n",
        "results/time/mine.json": "{}\n",
    }
    write(made.here, texts)
    (made.here / "kernels" / "link.cu").symlink_to("sgemm/naive.cu")
    made.do(COMMIT)
    theirs = (
        "scratch/thesis/chapter1.tex",
        "scratch/data.csv",
        ".ssh/authorized_keys",
        ".bashrc",
        "warplog/kernels/sgemm/mine.cu",
        "warplog/NOTES.txt",
        "warplog/results/recorded/mybox/campaign/h200.json",
    )
    write(made.there, {name: name for name in theirs})
    (made.there / "current").symlink_to("scratch")
    return made


def names_in(text: str, folder: str) -> str:
    """Returns commands of the page with another folder there."""
    return text.replace("warplog-box", folder)


@pytest.mark.parametrize("folder", ["warplog", "scratch", "scratch/thesis", ".", "", ".bashrc", "current"])
def test_a_folder_that_exists_there_is_refused_and_stays_as_it_is(machines: Machines, folder: str) -> None:
    before = state(machines.there)
    assert machines.run(names_in(MAKE, folder)).returncode != 0
    assert machines.run(names_in(COPY, folder)).returncode != 0
    assert state(machines.there) == before


def test_a_round_touches_no_file_of_others_and_copies_no_ignored_one(machines: Machines) -> None:
    write(machines.here, {"kernels/sgemm/new kernel.cu": "new\n"})
    before = state(machines.there), state(machines.here)
    machines.do(MAKE, COPY, MEASURE, RECORD)
    box = machines.there / "warplog-box"
    copied = {str(path.relative_to(box)) for path in box.rglob("*.*") if ".git/" not in str(path)}
    assert {name for name in copied if not name.startswith("results/")} == {
        *(".git", ".gitignore", ".warplog-box"),
        *(f"kernels/{name}.cu" for name in ("sgemm/naive", "sgemm/new kernel", "old", "link")),
    }
    assert (box / "Snakefile").read_text() == "first\n"
    assert (box / "results" / "recorded" / "my-gpu" / "manifest.json").is_file()
    assert not (box / "results" / "time" / "mine.json").exists()
    assert (box / "kernels" / "link.cu").readlink() == Path("sgemm/naive.cu")
    shutil.rmtree(box)
    after = state(machines.there), state(machines.here)
    assert {key: value for key, value in after[0].items() if key in before[0]} == before[0]
    assert (after[0].keys(), after[1]) == (before[0].keys(), before[1])


def test_a_second_round_keeps_what_was_changed_there_and_deletes_nothing(machines: Machines) -> None:
    machines.do(MAKE, COPY, MEASURE)
    box = machines.there / "warplog-box"
    write(box, {"Snakefile": "edited\n", "kernels/notes.txt": "mine\n"})
    results = state(box / "results")
    write(machines.here, {"Snakefile": "second, longer\n"})
    (machines.here / "kernels" / "old.cu").unlink()
    machines.do(COPY)
    assert (box / "Snakefile").read_text() == "second, longer\n"
    (kept,) = (box / ".before").iterdir()
    assert [path.name for path in kept.rglob("*")] == ["Snakefile"]
    assert (kept / "Snakefile").read_text() == "edited\n"
    assert (box / "kernels" / "notes.txt").read_text() == "mine\n"
    assert (box / "kernels" / "old.cu").is_file()
    assert state(box / "results") == results


def test_a_submodule_is_copied_by_the_same_command(machines: Machines, tmp_path: Path) -> None:
    write(tmp_path / "lib", {"include/lib.cuh": "lib\n"})
    machines.do(f"cd ../lib && {COMMIT}", "git -c protocol.file.allow=always submodule add -q ../lib lib")
    machines.do(MAKE, COPY, f"cd lib && {COPY.replace('gpu-box:warplog-box/', 'gpu-box:warplog-box/lib/')}")
    assert (machines.there / "warplog-box" / "lib" / "include" / "lib.cuh").read_text() == "lib\n"


def test_the_run_there_names_the_commit_from_here_and_also_in_tmux_and_without_uv(machines: Machines) -> None:
    machines.do(MAKE, COPY, MEASURE, IN_TMUX, WITHOUT_UV, MEASURE.replace("uv run", ".uv/bin/uv run"))
    box = machines.there / "warplog-box"
    head = machines.do("git rev-parse HEAD").strip()
    run = f"{box}: uv run snakemake --cores all --config commit={head}"
    assert machines.log.read_text().splitlines().count(run) == 3
    assert (box / "results" / "campaign" / "h200.json").is_file()


def test_fetching_refuses_a_name_that_exists(machines: Machines) -> None:
    machines.do(MAKE, COPY, MEASURE, RECORD)
    write(machines.here, {"results/recorded/my-gpu/campaign/h200.json": "mine\n"})
    before = state(machines.here)
    done = machines.run(FETCH)
    assert done.returncode != 0
    assert "results/recorded/my-gpu" in done.stderr
    assert state(machines.here) == before
    there = state(machines.there)
    done = machines.run(RECORD)
    assert done.returncode == 1
    assert "my-gpu: exists; choose another name, or replace it with --replace" in done.stderr
    assert state(machines.there) == there


def test_links_that_the_other_machine_planted_are_not_fetched(machines: Machines) -> None:
    machines.do(MAKE, COPY, MEASURE, RECORD)
    campaign = machines.there / "warplog-box" / "results" / "recorded" / "my-gpu"
    (campaign / "campaign" / "evil.json").symlink_to("/etc/passwd")
    (campaign / "etc").symlink_to("/etc")
    (campaign / "aa").symlink_to("../../../../..")
    before = state(machines.here)
    fetched = machines.run(FETCH.rpartition("&&")[0])
    assert fetched.returncode == 0, fetched.stderr
    here = machines.here / "results" / "recorded" / "my-gpu"
    assert (here / "manifest.json").read_bytes() == (campaign / "manifest.json").read_bytes()
    assert not [path for path in here.rglob("*") if path.is_symlink()]
    assert not (here / "campaign" / "evil.json").exists()
    shutil.rmtree(here)
    after = state(machines.here)
    assert after.keys() == before.keys()


def test_a_campaign_that_was_measured_there_is_read_here(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    machines.environment["SNAKEMAKE"] = snakemake_runs.interpreter()
    copy_project(machines.here, families=("sgemm",))
    write(
        machines.here, {"results/recorded/README.md": "", ".gitignore": "/results/*\n!/results/recorded/\n"}
    )
    machines.do(COMMIT)
    said = machines.do(MAKE, COPY, MEASURE, RECORD, FETCH)
    assert "mode: recorded: using the recorded campaign h200-2026" in said
    assert "make_tables" in said


def test_a_folder_made_by_init_is_measured_there_and_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = Machines(tmp_path)
    Path(machines.environment["WHEEL"]).touch()
    assert main.main(["init", str(machines.here), "--name", "mine"]) == 0
    family = Path("warplog") / "kernels" / "mine"
    (machines.here / family / "naive.cu").rename(machines.here / "outside.cu")
    text = (machines.here / family / "family.yaml").read_text()
    assert "{name: naive," in text
    named = text.replace("{name: naive,", "{name: naive, file: ../../../outside.cu,")
    (machines.here / family / "family.yaml").write_text(named)
    machines.do(COMMIT)
    machines.do(MAKE, COPY, OWN_INSTALL, OWN_INSTALL, OWN_MEASURE)
    box = machines.there / "warplog-box"
    assert load_family(box / family / "family.yaml").variant("naive").file.samefile(box / "outside.cu")
    machines.do(OWN_FETCH)
    log = machines.log.read_text().splitlines()
    head = machines.do("git rev-parse HEAD").strip()
    assert f"{box}: warplog run --cores all -- --config commit={head}" in log
    assert f"{machines.here}: warplog run -- --config mode=recorded recorded=my-gpu" in log
    monkeypatch.chdir(machines.here / "warplog")
    settings = Config(mode="recorded", recorded="my-gpu")
    assert recorded_campaign(settings, Path())[0] == Path("results/recorded/my-gpu")
    before = state(machines.here)
    assert machines.run(OWN_FETCH).returncode != 0
    assert state(machines.here) == before
