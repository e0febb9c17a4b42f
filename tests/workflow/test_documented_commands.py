"""The commands in the documents: those that need nothing are run in a copy of the project, all others are parsed."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Container, Sequence
from pathlib import Path

import documented
import pytest
from documented import PROJECT, Block

import report_files
import shipped_families
import small_campaign
import snakemake_runs
from copied_project import RestoredCopy, copy_project
from warplog.cli import main, running
from warplog.core.errors import WarplogError
from warplog.records import door
from warplog.records.config import Config

# Documents whose blocks in `bash` other tests run: test_contained and test_remote_recipe.
RUN_APART = {"security.md", "remote.md"}
LANGUAGES = {"sh", "bash", "console", "text", "c++", "python", "yaml", "json", "ini"}
SHELL = [block for block in documented.blocks() if block.is_shell]
RUN = [block for block in SHELL if not block.needs]
NEW = documented.first_lines(RUN)
PARSED = [block for block in documented.blocks() if block.is_shell or block.words == ("console",)]
PARSED = [block for block in PARSED if block not in RUN]
# A part of two ladders is enough for any of the commands, and so is each figure that none names for one of them.
FAMILIES = {name: shipped_families.FAMILIES[name] for name in ("sgemm", "reduction")}
SELECTION = """\
families: [sgemm, reduction]
variants: [sgemm/naive, sgemm/warptile, reduction/atomics, reduction/shuffle]
figures: {formats: [png]}
"""
FIGURES = (
    *("bank_conflicts", "chains_x_warps", "memory_chart", "occupancy", "overlap", "quantization"),
    *("throughput_vs_size", "tile_schedule", "warp_stalls"),
)
STAND_INS = {
    # Installing takes the network; a test of the tests would not end.
    "pip": "exit 0",
    "pytest": "exit 0",
    "uv": '[ "$1" != run ] || { shift; exec "$@"; }',
    "uvx": 'shift 2; exec "$@"',
    "snakemake": 'exec PYTHON -m snakemake --nocolor "$@"',
    "ncu": "cat FOLDER/page.csv",
    # A fork of the process has no standard input.
    "warplog": '[ -p /dev/stdin ] && exec python3 FOLDER/run_warplog.py "$@"; exec PYTHON FOLDER/run_warplog.py "$@"',
}
PAGE = """\
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"gpu__time_duration.sum"
"","","","","","","","","","","","ns"
"0","77","app","127.0.0.1","gemm","1","7","(256, 1, 1)","(8, 4, 1)","0","9.0","1000"
"""
TOOLS = {
    "git", "rm", "cp", "mkdir", "cd", "pip", "uv", "pytest", "ruff", "mypy", "lint-imports", "snakefmt",
    "pre-commit", "ncu", "nsys", "rsync", "ssh", "tmux", "python", "docker", "mlflow", "psql",
}  # fmt: skip

pytestmark = pytest.mark.timeout(600)  # the first test waits for the campaign


def test_every_block_names_its_language_and_what_it_needs() -> None:
    unknown = [
        f"{block.name}: {' '.join(block.words)!r}"
        for block in documented.blocks()
        if not LANGUAGES & set(block.words[:1])
        or (block.is_shell and block.needs not in documented.NEEDS)
        or (block.words[0] == "bash" and block.document.name not in RUN_APART)
    ]
    assert unknown == []
    assert len(RUN) >= 3
    assert len(PARSED) >= 5


class Place:
    """A copy of the project in which the README's main command ran, and programs that stand in for installers."""

    def __init__(self, folder: Path) -> None:
        original = copy_project(folder / "original", "tests/data/parsers", families=FAMILIES)
        for campaign in ("h200", "h100"):
            small_campaign.cut(campaign, folder / campaign, FAMILIES, chips=True)
            shutil.copytree(folder / campaign, original / "results" / "recorded" / campaign)
        self._bin = folder / "bin"
        self._bin.mkdir()
        (self._bin / "run_warplog.py").write_text(
            "import sys\nfrom warplog.cli import main\nsys.exit(main.main())\n"
        )
        (self._bin / "page.csv").write_text(PAGE)
        for name, text in STAND_INS.items():
            text = (
                text.replace("PYTHON", snakemake_runs.interpreter())
                .replace("python3", sys.executable)
                .replace("FOLDER", str(self._bin))
            )
            (self._bin / name).write_text(f"#!/bin/sh\n{text}\n")
            (self._bin / name).chmod(0o755)
        reduction = original / "kernels" / "reduction" / "family.yaml"
        reduction.write_text(reduction.read_text() + f"\nfigures: [{', '.join(FIGURES)}]\n")
        settings = original / "config" / "config.yaml"
        chosen = settings.read_text().replace("families: all\nvariants: all\n", SELECTION)
        assert SELECTION in chosen
        settings.write_text(chosen)
        _reports(original)
        self.path = original
        self.run("snakemake --cores 2")
        self._copy = RestoredCopy(original, folder / "copy")
        self.path = self._copy.place

    def restore(self) -> None:
        self._copy.restore()

    def run(self, text: str, allowed: Container[int] = (0,)) -> None:
        """Runs a shell text in the copy, up to its first failure, whose exit status must be an allowed one."""
        environment = {
            **os.environ,
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT / "workflow"),  # equal to that of the copy, and imported already
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in allowed, done.stdout[-3000:] + done.stderr[-3000:]
        assert "Traceback" not in done.stderr


def _reports(folder: Path) -> None:
    """Writes the reports that the documents name."""
    launch = report_files.Launch(
        "sgemm_naive", {**report_files.HOPPER, **report_files.SHAPE, "gpu__time_duration.sum": 1e6}
    )
    for name in ("report", "run", "before", "after"):
        report_files.write_ncu(folder / f"{name}.ncu-rep", [launch])
    trace = report_files.Nsys(folder / "trace.sqlite", report_files.KERNEL_2026)
    trace.kernel("sgemm_naive", called=100, start=200, duration=1000)
    trace.write()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("documented"))


@pytest.mark.parametrize("name", NEW)
def test_the_commands_of_a_block_work(place: Place, name: str) -> None:
    place.restore()
    for line in NEW[name]:
        place.run(line, {0, 1} if "exit status 1 if" in line else {0})


@pytest.mark.parametrize("block", PARSED, ids=lambda block: block.name)
def test_the_commands_of_a_block_are_ones_that_exist(block: Block) -> None:
    text = block.text
    if block.words == ("console",):
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    for words in documented.commands(text):
        parse(words)


def test_the_commands_in_sentences_are_ones_that_exist() -> None:
    found = list(documented.inline())
    assert len(found) > 30
    for document, words in found:
        try:
            parse(words, mentioned=True)
        except AssertionError as error:
            raise AssertionError(f"{document}: {' '.join(words)}") from error


@pytest.mark.parametrize(
    "text",
    [
        "uv run snakemake --cores 1 --resources measuring=3 all",
        "uv run snakemake tables_and_more",
        "uv run snakemake --config familys=sgemm",
        "uv run snakemake --config time.processes=5",
        "warplog remote me@box",
        "warplog verify --no-such-option results",
        "uv run pytest tests/unit/test_no_such_file.py",
        "uv run pytest -m no_such_marker",
        "no-such-program",
    ],
)
def test_a_command_that_does_not_exist_is_found(text: str) -> None:
    (words,) = documented.commands(text)
    with pytest.raises(AssertionError):
        parse(words)


def parse(words: Sequence[str], mentioned: bool = False) -> None:
    """Parses a command as its program would; of a verb of warplog in a sentence, arguments may be missing.

    Raises:
        AssertionError: there is no such program, subcommand, option, target, key of the configuration, file or marker.
    """
    program, *arguments = words
    if mentioned and program == "warplog" and len(arguments) == 1:
        assert arguments[0] in VERBS, arguments
    elif program in PARSERS:
        PARSERS[program](arguments)
    else:
        assert program in TOOLS or (PROJECT / program).is_file(), f"{program}: no known program"


def _snakemake(arguments: Sequence[str]) -> None:
    from snakemake.cli import get_argument_parser, parse_config

    try:
        options = get_argument_parser().parse_args(list(arguments))
        door.decode(parse_config(options.config), Config, "--config")
    except (SystemExit, ValueError, WarplogError) as error:
        raise AssertionError(f"snakemake {' '.join(arguments)}: {error}") from None
    unknown = set(options.targets) - TARGETS
    assert not unknown, f"no rules {unknown}"


def _warplog(arguments: Sequence[str]) -> None:
    own, rest = running.parted(arguments) if arguments[:1] == ["run"] else (arguments, [])
    if own[:1] == ["help"]:
        assert set(own) <= VERBS, own
        return
    try:
        main.make_parser().parse_args(list(own))
    except SystemExit:
        raise AssertionError(f"warplog {' '.join(arguments)}") from None
    if rest:
        _snakemake(rest)


def _pytest(arguments: Sequence[str]) -> None:
    for before, word in zip(["", *arguments], arguments, strict=False):
        if before == "-m":
            assert word in MARKERS, word
        elif "/" in word:
            assert (PROJECT / word).exists(), word


PARSERS = {"snakemake": _snakemake, "warplog": _warplog, "pytest": _pytest}


def _verbs() -> set[str]:
    actions = main.make_parser()._actions
    (verbs,) = (one.choices for one in actions if isinstance(one, argparse._SubParsersAction))
    return {"help", *verbs}


def _targets() -> set[str]:
    rules = [PROJECT / "workflow" / "Snakefile", *(PROJECT / "workflow" / "rules").glob("*.smk")]
    return {name for path in rules for name in re.findall(r"^rule (\w+):", path.read_text(), re.MULTILINE)}


def _markers() -> set[str]:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    return {line.partition(":")[0] for line in settings["tool"]["pytest"]["ini_options"]["markers"]}


TARGETS, MARKERS, VERBS = _targets(), _markers(), _verbs()
