"""The complete live workflow with its real scripts and workers, on a machine whose CPU stands in for the GPU."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import snakemake_runs
from copied_project import copy_project
from host_family import DRIVER, REFERENCE, YAML, pretended_path
from warplog.records import door
from warplog.records.build import Build
from warplog.records.check import Check
from warplog.records.family_file import FamilyRecord
from warplog.records.profile import Profile
from warplog.records.time import Time
from warplog.tables.files import as_parquet, read_table

PROJECT = Path(__file__).parents[2]
CONFIG = (
    *("kernel_folders=[host]", "families=scale", "campaign=host"),
    'profile={"ncu": false, "nsys": false}',
    'sanitize={"tools": ["racecheck"]}',
    'time={"processes": 2, "most_processes": 1, "max_samples": 10, "max_seconds": 0.2, "hot_seconds": 0.001}',
)
BODY = 'FILE* f = fopen("{log}", "a"); fputs("{name}\\n", f); fclose(f); {work}'
RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
PYTHON = """
def launch(arrays, scalars, stream):
    with open("{log}", "a") as file:
        file.write("module\\n")
    arrays["y"][:] = arrays["x"] * scalars["factor"]
"""
VARIANTS = {"right": RIGHT, "slow": RIGHT * 3, "bad": RIGHT + "a->y[0] += 1;", "deadly": "abort();"}
QUICK_DUELS = """
from warplog.duel import evidence
match._WINDOW_S = match._WINDOW_APART_S = 0.06
evidence.looks_within = lambda *_: 1
"""

STRICT = ("strict=true",)


def environment_of(place: Path) -> dict[str, str]:
    environment = {k: v for k, v in os.environ.items() if k != "MLFLOW_TRACKING_URI"}
    environment["PYTHONPATH"] = pretended_path(place)  # its package equals that of the copy
    environment["PATH"] = f"{place / 'site'}:{environment['PATH']}"
    return {**environment, "LD_LIBRARY_PATH": str(place / "site")}


def run(place: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=place, env=environment_of(place), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def snakemake(place: Path, *arguments: str, config: tuple[str, ...] = (), status: int = 0) -> str:
    environment = environment_of(place)
    options = ("--cores", "2", "--nocolor")
    done = snakemake_runs.run(
        place, *options, *arguments, "--config", *CONFIG, *config, environment=environment
    )
    assert done.returncode == status, done.stdout[-3000:] + done.stderr[-5000:]
    return done.stdout + done.stderr


SANITIZER = """#!/bin/sh
[ "$1" = --version ] && { echo "Version 2025.3.1"; exit; }
while [ "${1#--}" != "$1" ]; do shift 2; done
echo "========= COMPUTE-SANITIZER"
"$@"; status=$?
echo "========= ERROR SUMMARY: 0 errors"
exit $status
"""


def write(place: Path, name: str, work: str) -> None:
    text = BODY.format(log=place / "launched", name=name, work=work)
    (place / "host" / "scale" / f"{name}.cu").write_text(text)


def launched(place: Path) -> set[str]:
    """Returns the variants that were launched since the last call."""
    log = place / "launched"
    names = set(log.read_text().split()) if log.is_file() else set()
    log.unlink(missing_ok=True)
    return names


def measured(place: Path) -> pd.DataFrame:
    return pd.read_parquet(place / "results" / "tables" / "measurements.parquet")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a project with one family of C functions, after a run of the main command."""
    place = tmp_path_factory.mktemp("host")
    copy_project(place, families=())
    (place / "site").mkdir()
    pretended = (PROJECT / "tests" / "workflow" / "pretended_gpu.py").read_text()
    (place / "site" / "sitecustomize.py").write_text(f"{pretended}{QUICK_DUELS}os.umask(0o077)\n")
    family = place / "host" / "scale"
    family.mkdir(parents=True)
    entries = "".join(f"  - {{name: {name}, parent: right, idea: an idea}}\n" for name in list(VARIANTS)[1:])
    entries += "  - {name: module, language: cupy, parent: right, idea: in Python}\n"
    (family / "family.yaml").write_text(YAML.rstrip() + "\n" + entries)
    (family / "module.py").write_text(PYTHON.format(log=place / "launched"))
    (family / "module.py").chmod(0o600)
    (family / "reference.py").write_text(REFERENCE)
    for name, work in VARIANTS.items():
        write(place, name, work)
        (family / f"{name}.cu").chmod(0o600)  # as whoever has this umask has it; MLflow copies permissions
    (place / "output").write_text(snakemake(place))
    return place


def test_correct_kernels_have_times_and_others_a_status(place: Path) -> None:
    table = measured(place).set_index(["variant", "case"])
    assert set(table["origin"]) == {"live"}
    for name, status in (
        ("right", "ok"),
        ("slow", "ok"),
        ("bad", "wrong"),
        ("deadly", "crashed"),
        ("module", "ok"),
    ):
        assert set(table.loc[name, "status"]) == {status}, name
    assert (table.loc[["right", "slow", "module"], "median_us"] > 0).all()
    assert (table.loc[["right", "slow", "module"], "launch_host_us"] > 0).all()
    assert table.loc[["bad", "deadly"], "median_us"].isna().all()
    output = (place / "output").read_text()
    assert "live on pretended GPU" in output
    assert "scale/right  odd" not in output
    log = (place / "results" / "logs" / "check" / "host" / "scale.log").read_text()
    assert "check   scale/right  odd  ok" in log


def ending(output: str) -> list[str]:
    """Returns the lines after the empty one, with single spaces."""
    return [" ".join(line.split()) for line in output.rpartition("\n\n")[2].splitlines()]


def test_a_run_shows_a_line_per_stage_and_ends_with_its_result(place: Path) -> None:
    output = (place / "output").read_text()
    steps = [line for line in output.splitlines() if line.startswith("[")]
    assert [line.split("]")[0].strip("[ ") for line in steps] == [
        f"{i}/{len(steps)}" for i in range(1, len(steps) + 1)
    ]
    words = [" ".join(line.partition("]")[2].split()[:2]) for line in steps]
    assert {"build scale", "check scale", "time scale", "extract scale", "figures scale", "page scale"} < set(
        words
    )
    assert len(words) == len(set(words)), "one line each"
    assert len(output.splitlines()) < 40
    log = next((place / ".snakemake" / "log").glob("*.log")).read_text()
    assert "Building DAG of jobs" in log
    assert "rule check_family:" in log
    first, family, *rest = ending(output)
    assert first.startswith("host, live on pretended GPU; ")
    assert family.startswith("scale 3 of 5 ok ")
    assert " % of right at 64" in family
    assert any(line.startswith("wrong scale/bad ") for line in rest)
    assert any(line.startswith("crashed scale/deadly ") for line in rest)
    assert "results/logs/check/host/scale.log" in rest
    assert rest[-1] == "open results/index.html; all variants: results/summary.md"
    page = (place / "results" / "index.html").read_text()
    for address in ("worklog/scale.html", "figures/scale/ladder.png", "track/runs.html", "summary.md"):
        assert f'href="{address}"' in page
        assert (place / "results" / address).is_file()


def test_page_figures_and_runs_are_written(place: Path) -> None:
    results = place / "results"
    for name in ("worklog/scale.html", "figures/scale/ladder.png", "tables/claims.csv", "mlflow.db"):
        assert (results / name).stat().st_size > 0
    languages = pd.read_parquet(results / "tables" / "variants.parquet").set_index("variant")["language"]
    assert dict(languages) == {**dict.fromkeys(VARIANTS, "cuda"), "module": "cupy"}
    page = (results / "worklog" / "scale.md").read_text()
    assert "module (cupy)" in page
    assert "```python\ndef launch(arrays, scalars, stream):" in page
    record = FamilyRecord.read(results / "profile" / "host" / "scale.ncu.json", Profile).variants["right"]
    assert (record.status, record.reason) == ("skipped", "config: profile.ncu is off")


def test_second_run_does_nothing_and_shows_the_result_again(place: Path) -> None:
    output = snakemake(place)
    assert "Nothing to be done" in output
    assert ending(output) == ending((place / "output").read_text())


def test_plans_and_other_questions_show_no_result(place: Path) -> None:
    for option in ("--dry-run", "--list", "--dag", "--summary", "--unlock"):
        assert "pretended GPU\n  scale" not in snakemake(place, option), option


def test_strict_fails_as_long_as_a_variant_is_not_ok_also_with_nothing_else_to_do(place: Path) -> None:
    for _ in range(2):
        output = snakemake(place, config=STRICT, status=1)
        assert "error: strict: not ok: scale/bad (wrong) and scale/deadly (crashed)" in output
        assert "scale 3 of 5 ok" in " ".join(ending(output))
        assert "did not come to its end" not in output


def test_with_a_strict_umask_no_result_can_be_read_by_others(place: Path) -> None:
    files = [path for path in (place / "results").rglob("*") if path.is_file()]
    assert len(files) > 50
    assert [path for path in files if path.stat().st_mode & 0o077] == []


def test_only_an_edited_kernel_is_measured_again(place: Path) -> None:
    launched(place)
    checks = place / "results" / "check" / "host" / "scale.json"
    kept = FamilyRecord.read(checks, Check).variants["slow"]
    write(place, "bad", RIGHT)
    snakemake(place, "tables")
    assert launched(place) == {"bad"}
    assert FamilyRecord.read(checks, Check).variants["slow"] == kept
    assert set(measured(place).set_index("variant").loc["bad", "status"]) == {"ok"}
    output = snakemake(place, "tables")
    assert "Nothing to be done" in output
    assert "scale 4 of 5 ok" in " ".join(ending(output))


def test_only_an_edited_module_is_measured_again(place: Path) -> None:
    launched(place)
    module = place / "host" / "scale" / "module.py"
    module.write_text(module.read_text() + "\n# another comment\n")
    snakemake(place, "time")
    assert launched(place) == {"module"}
    output = snakemake(place, "time")
    assert "Nothing to be done" in output
    assert ending(output)[0] == "of 5 variants: 5 compiled, 4 checked, 4 timed"
    assert "results/index.html shows an earlier evaluation, of " in ending(output)[-1]


def test_only_a_lost_record_is_made_again(place: Path) -> None:
    launched(place)
    path = place / "results" / "time" / "host" / "scale.json"
    record = FamilyRecord.read(path, Time)
    del record.variants["right"]
    record.write()
    snakemake(place, str(path.relative_to(place)), "--forcerun", "time_family")
    assert launched(place) == {"right"}
    assert set(FamilyRecord.read(path, Time).variants) == {*VARIANTS, "module"}


def test_a_campaign_with_keys_of_the_release_before_goes_on_without_measuring(place: Path) -> None:
    """As Snakemake noted the parameters of its jobs; after an edit of the reference, checks are repeated."""
    records = [place / "results" / stage / "host" / "scale.json" for stage in ("check", "time")]

    def with_keys_of_before() -> None:
        launched(place)
        for path in records:
            path.write_text(re.sub('(?<="inputs_sha256": ")[0-9a-f]{64}', "0" * 64, path.read_text()))
        for path in builds:
            path.write_text(re.sub('(?<="inputs_sha256": ")[0-9a-f]{64}', "", path.read_text()))

    builds = list((place / "results" / "build").glob("*/scale/*/record.json"))
    seconds = {path: door.read(path, Build).seconds for path in builds}
    with_keys_of_before()
    output = run(place, sys.executable, "-m", "warplog", "migrate", "results")
    assert "  check     scale: 5 entries keep their measurements" in output
    assert "  time      scale: 5 entries keep their measurements" in output
    assert "  build     5 builds are kept" in output
    snakemake(place, "time", "--forcerun", "build_variant", "check_family", "time_family")
    assert launched(place) == set()
    assert seconds == {path: door.read(path, Build).seconds for path in builds}
    with_keys_of_before()
    for path in records:
        os.utime(path, (before := time.time() - 60, before))
    (place / "host" / "scale" / "reference.py").touch()
    output = run(place, sys.executable, "-m", "warplog", "migrate", "results")
    assert "  check " not in output
    assert "  time      scale: 5 entries keep their measurements" in output
    snakemake(place, "check", "--forcerun", "check_family")
    assert launched(place) >= {"right", "slow", "bad"}


def test_every_variant_is_sanitized_and_a_crash_affects_no_other(place: Path) -> None:
    site = place / "site"
    (site / "driver.c").write_text(DRIVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", site / "libcuda.so.1", site / "driver.c"], check=True)
    tool = site / "compute-sanitizer"
    tool.write_text(SANITIZER)
    tool.chmod(0o755)
    output = snakemake(place, "sanitize")
    assert "compute-sanitizer over 5 variants: 4 ok, 1 crashed" in output
    table = pd.read_csv(place / "results" / "tables" / "sanitize.csv").set_index("variant")
    assert set(table.loc[["deadly"], "status"]) == {"crashed"}
    assert set(table.loc[["right", "slow", "bad", "module"], "status"]) == {"ok"}


def test_on_request_open_steps_duel_and_every_right_variant_is_traced(place: Path) -> None:
    file = place / "results" / "tables" / "steps.parquet"
    steps = read_table(file.parent, "steps")
    steps["word"] = steps["variant"].map({"slow": "SAME"}).fillna("FASTER")
    file.write_bytes(as_parquet(steps))
    rules = (
        "build_tracer",
        "trace_accesses",
        "list_accesses",
        "duel_steps",
        "list_duels",
        "accesses",
        "duels",
    )
    snakemake(place, "accesses", "duels", "--allowed-rules", *rules)  # the table stays as it is
    (duel,) = pd.read_csv(place / "results" / "tables" / "duels.csv").itertuples()
    assert (duel.variant, duel.against, duel.status) == ("slow", "right", "ok")
    assert duel.low_pct < duel.gain_pct < duel.high_pct
    table = pd.read_csv(place / "results" / "tables" / "accesses.csv").set_index("variant")
    assert set(table.loc[["right", "slow", "module"], "status"]) == {"ok"}
    assert table.loc["right", "traced_sectors"] == 32
    assert table.loc["deadly", "status"] == "skipped"
    assert table.loc["deadly", "reason"].startswith("its check has status crashed")
    assert "trace_accesses" not in snakemake(place, "accesses", "--dry-run")


def test_the_same_code_is_compared_with_itself(place: Path) -> None:
    launched(place)
    assert "floor to use:" in snakemake(place, "aa")
    assert launched(place) >= {"right", "slow"}
    rounds = sorted((place / "results" / "aa").glob("round*/time/host/scale.json"))
    assert [FamilyRecord.read(path, Time).variants["right"].status for path in rounds] == ["ok"] * 3
    assert "Nothing to be done" in snakemake(place, "aa")


def test_a_kernel_that_does_not_compile_is_named_at_the_end_of_each_run(place: Path) -> None:
    write(place, "slow", "int x = ;")
    for _ in range(2):
        first, *rest = ending(snakemake(place, "build"))
        assert first.startswith("of 5 variants: 4 compiled, ")
        assert rest[0] == "compile error scale/slow error: expected expression"
        assert rest[1] == "results/build/sm_90/scale/slow/compile.log"
    output = snakemake(place, "build", config=STRICT, status=1)
    assert "error: strict: not ok: scale/slow (compile error)" in output


def test_a_failed_job_is_shown_with_its_family_and_log_and_what_is_known(place: Path) -> None:
    script = place / "workflow" / "scripts" / "measure" / "check_family.py"
    script.write_text('raise RuntimeError("planted")\n')
    output = snakemake(place, "check", "--forcerun", "check_family", status=1)
    assert "RuntimeError: planted" in output
    assert re.search(r"\[\d/\d\] +check +scale +failed +results/logs/check/host/scale.log", output), output
    assert "CalledProcessError" not in output
    assert "the run did not come to its end" in " ".join(ending(output))
