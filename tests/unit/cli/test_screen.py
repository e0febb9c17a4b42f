"""No text of a campaign, a report or a page moves the cursor, colours or hides anything on the terminal."""

import functools
import json
import operator
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import snakemake_runs
from report_files import Launch, Nsys, write_ncu
from small_campaign import FOLDER as SMALL
from warplog.analysis import answers
from warplog.catalog import family as catalog
from warplog.cli import main as commands
from warplog.cli.main import main
from warplog.core.columns import CLAIMS, FLOORS
from warplog.core.errors import WarplogError
from warplog.core.text import HIDDEN
from warplog.judge import claims, floors, samples
from warplog.machine import device
from warplog.plan import script
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.stages import KINDS, folder_of
from warplog.records.verification import manifest
from warplog.tables.files import write_table, write_tables
from warplog.tables.rows import make_rows
from warplog.tables.verified_records import Source

PROJECT = Path(__file__).parents[3]
PLANTED = "\x1b]0;owned\x07\x9b31m\u202e"
RECORD: Any = functools.reduce(operator.or_, KINDS)
ROWS = 40  # of a variant's metrics, lines and timeline


BY_FOLDER = {folder_of(kind): kind for kind in KINDS}


def planted(record: dict[str, Any], accepted: dict[tuple[str, ...], bool]) -> dict[str, Any]:
    """Returns the record with PLANTED in every text in which its type allows it, except the names of cases."""

    def texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, Any, tuple[str, ...]]]:
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            place = (*path, key) if isinstance(key, str) else path
            if isinstance(value[key], str) and key != "case":
                yield value, key, place
            elif isinstance(value[key], dict | list):
                yield from texts(value[key], place)

    kind = BY_FOLDER[record["stage"]]
    for holder, key, place in texts(record, (record["stage"],)):
        before, holder[key] = holder[key], holder[key] + PLANTED
        if place not in accepted:
            try:
                door.decode(record, kind, "")
                accepted[place] = True
            except WarplogError:
                accepted[place] = False
        if not accepted[place]:
            holder[key] = before
    return record


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a project with a recorded campaign `evil` that has PLANTED in its texts, its tables, and reports."""
    place = tmp_path_factory.mktemp("project")
    folder = place / "results" / "recorded" / "evil"
    accepted: dict[tuple[str, ...], bool] = {}
    for path in SMALL.rglob("*.json"):
        target = folder / path.relative_to(SMALL)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = json.loads(path.read_text())
        for record in data.get("variants", {}).values():
            for name in {"rows", "lines", "timeline"} & set(record):
                record[name] = record[name][:ROWS]
            planted(record, accepted)
        if path.name != manifest.NAME:
            target.write_text(json.dumps(planted(data, accepted) if "variants" not in data else data))
    assert sum(accepted.values()) > 60
    campaign = door.read(folder / "campaign" / "h200.json", Campaign)
    manifest.write(folder, campaign.campaign, campaign.commit)
    families = catalog.load([PROJECT / "kernels"])
    sgemm = families["sgemm"]
    source = Source(folder, "recorded", campaign, folder)
    peaks = device.peaks(campaign.device, device.known_gpus(PROJECT))
    rows = make_rows(source, families, {"sgemm": tuple(sgemm.cases)}, {"sgemm": sgemm.variants}, peaks)
    tables = place / "results" / "tables"
    write_tables(rows, tables)
    noise = [row | source.labels() for row in floors.table_rows(samples.load(folder, counted=False))]
    write_table(noise, FLOORS, tables / "floors")
    judged = claims.judge_all({"sgemm": sgemm}, answers.read(tables))
    write_table([{**row, "reason": PLANTED, "claim": PLANTED} for row in judged], CLAIMS, tables / "claims")
    (place / "results" / "worklog").mkdir()
    (place / "results" / "worklog" / "sgemm.html").write_text(f"<p>{PLANTED} is 41.5 % faster</p>")
    write_ncu(place / "a.ncu-rep", [Launch(f"scale{PLANTED}", {"gpu__time_duration.sum": 2000.0})])
    export = Nsys(place / "a.sqlite", gpus=((f"NVIDIA{PLANTED}", 9, 0),))
    export.kernel(f"scale{PLANTED}", 1, 20, 30)
    export.write()
    (place / "a.log").write_text(
        (PROJECT / "tests" / "data" / "parsers" / "ptxas_sm90.log").read_text().replace("wide", PLANTED)
    )
    (place / "bad.log").write_text(f"ptxas info    : Used {PLANTED} registers\n")
    (place / "kernels").symlink_to(PROJECT / "kernels")
    return place


@pytest.mark.parametrize(
    "command",
    [
        "verify results/recorded/evil",
        "compare results/recorded/evil results/recorded/evil --all",
        "compare results/recorded/evil results/recorded/evil --all --json",
        "compare results/recorded/evil a.sqlite",
        "compare a.sqlite a.sqlite --all",
        "compare nothing-\x1b[31m results",
        "explain --all",
        "explain a.ncu-rep",
        "explain a.log",
        "claims",
        "claims results/tables",
        "published --family sgemm",
        "audit",
        "figures --list",
        "extract a.ncu-rep",
        "extract a.sqlite --format json",
        "extract a.ncu-rep --summary",
        "extract a.sqlite --summary",
        "extract a.log",
        "extract bad.log",
        "extract \x1b[31m",
        "record \x1b[31m",
    ],
)
def test_a_command_prints_no_hidden_character(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(project)
    main(command.split(" "))
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip()
    assert not HIDDEN.search(shown.out + shown.err)
    if "json" in command:
        json.loads(shown.out)


def test_a_command_that_forgets_about_hidden_characters_prints_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forgetful(_: object) -> int:
        print(PLANTED)
        sys.stderr.writelines([PLANTED])
        raise WarplogError(PLANTED)

    monkeypatch.setitem(commands._COMMANDS, "verify", forgetful)
    before = sys.stdout
    assert main(["verify", "results"]) == 1
    assert sys.stdout is before
    shown = capsys.readouterr()
    assert "owned" in shown.out
    assert "owned" in shown.err
    assert not HIDDEN.search(shown.out + shown.err)


def test_texts_of_a_campaign_are_shown_with_escapes_and_not_dropped(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    main(["extract", "a.ncu-rep", "--metric", "duration_us"])
    assert r"scale\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}()" in capsys.readouterr().out


def test_a_dry_run_of_a_recorded_campaign_prints_no_hidden_character(project: Path) -> None:
    shutil.copytree(PROJECT / "config", project / "config", dirs_exist_ok=True)
    options = ("-s", str(PROJECT / "workflow" / "Snakefile"), "-n", "--cores", "1", "--nocolor", "--config")
    done = snakemake_runs.run(
        project, *options, "mode=recorded", "recorded=evil", "families=sgemm", "commit=auto", environment={}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "owned" in done.stdout + done.stderr
    assert not HIDDEN.search(done.stdout + done.stderr)


def test_a_script_prints_and_logs_no_hidden_character(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with script.job(str(tmp_path / "job.log")):
        print(PLANTED, file=sys.stderr)
    assert (
        capsys.readouterr().err
        == (tmp_path / "job.log").read_text()
        == "\\u{1b}]0;owned\\u{7}\\u{9b}31m\\u{202e}\n"
    )
