"""Which jobs rerun after a change, according to a dry run of the live workflow."""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import snakemake_runs
from copied_project import RestoredCopy, copy_project

VARIANTS = "variants=naive,blocktile_1d,autotuned,cublas"
LIVE = ("--config", "mode=live", "gpu=h200", "families=sgemm", VARIANTS)
OPTIONS = ("--cores", "2", "--quiet", "host", "--nocolor")


def run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(place / "workflow")}  # the package of the copy
    return snakemake_runs.run(place, *OPTIONS, *arguments, environment=environment)


def snakemake(place: Path, *arguments: str) -> str:
    done = run(place, *arguments)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def jobs(place: Path, *config: str) -> Counter[tuple[str, str]]:
    """Counts the jobs of a dry run by (rule, variant); variant is '' if the job has none."""
    text = snakemake(place, "-n", *LIVE, *config)
    found: Counter[tuple[str, str]] = Counter()
    for block in re.split(r"\n(?=(?:local)?rule )", text):
        rule = re.match(r"(?:local)?rule (\w+):", block)
        if rule:
            variant = re.search(r"wildcards:.*variant=(\w+)", block)
            found[rule[1], variant[1] if variant else ""] += 1
    return found


STUB = """\
from pathlib import Path

for output in map(Path, snakemake.output):
    if output.parent.name in ("figures", "latex") or output.name == "mechanisms":
        output.mkdir(exist_ok=True)
        output /= "drawn"
    output.write_text(repr(sorted(map(str, snakemake.input))))
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a copy of the project, with scripts that only write their outputs, after a run of the live workflow."""
    place = copy_project(tmp_path_factory.mktemp("live"), families=("sgemm",))
    for script in (place / "workflow" / "scripts").rglob("*.py"):
        script.write_text(STUB)
    snakemake(place, *LIVE)
    (place / "results" / "mlflow.db").touch()
    return place


@pytest.fixture(scope="module")
def copied(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> RestoredCopy:
    return RestoredCopy(finished, tmp_path_factory.mktemp("copy") / "copy")


@pytest.fixture
def place(copied: RestoredCopy) -> Iterator[Path]:
    """Returns a copy of the finished project, with its modification times."""
    yield copied.place
    copied.restore()


def test_finished_workflow_has_nothing_to_do(place: Path) -> None:
    assert "Nothing to be done" in snakemake(place, "-n", *LIVE)


def test_edited_kernel_reruns_only_its_own_jobs(place: Path) -> None:
    path = place / "kernels" / "sgemm" / "naive.cu"
    path.write_text(path.read_text() + "\n// edited\n")
    found = jobs(place)
    assert {key for key in found if key[1]} == {("build_variant", "naive")}
    # A measuring job gets all variants of the family and measures those that changed (test_measure.py).
    rules = {rule for rule, variant in found if not variant}
    assert rules == {
        *("check_family", "time_family", "profile_ncu", "profile_nsys", "extract_family"),
        *("check", "time", "profile", "extract", "summarize", "all"),
        *(
            "make_tables",
            "judge_floors",
            "judge_claims",
            "analyse",
            "plot_family",
            "plot_savings",
            "write_worklog",
            "log_mlflow",
            "log_figures",
        ),
    }


def test_touched_kernel_with_equal_content_reruns_nothing(place: Path) -> None:
    (place / "kernels" / "sgemm" / "naive.cu").touch()
    assert "Nothing to be done" in snakemake(place, "-n", *LIVE)


def test_new_parameter_reruns_its_variant_only(place: Path) -> None:
    path = place / "kernels" / "sgemm" / "family.yaml"
    text = path.read_text()
    assert text.count("BM: 64, BN: 64, BK: 8, TM: 8}") > 0
    path.write_text(text.replace("BM: 64, BN: 64, BK: 8, TM: 8}", "BM: 64, BN: 64, BK: 8, TM: 4}", 1))
    assert {variant for _, variant in jobs(place) if variant} == {"blocktile_1d"}


def test_edited_descriptions_rerun_tables_pages_and_figures_and_no_measurement(place: Path) -> None:
    """Of each key, test_descriptive_keys.py shows that no build or measurement depends on it."""
    path = place / "kernels" / "sgemm" / "family.yaml"
    text, described = (
        path.read_text(),
        ("title", "summary", "size_label", "idea", "credit", "claim", "published"),
    )
    for key in described:
        assert re.search(rf"\b{key}: ", text), key
    edited = re.sub(r"\b(title|summary|size_label|idea|credit|claim): (['\"]?)", r"\1: \2also ", text)
    path.write_text(
        re.sub(r"value: ([0-9.]+), unit: GFLOP/s", r"value: 2\1, unit: GFLOP/s", edited) + "\n# edited\n"
    )
    rules = {rule for rule, _ in jobs(place)}
    assert {"make_tables", "plot_family", "write_worklog"} <= rules
    assert rules <= {
        *("make_tables", "judge_claims", "judge_floors", "plot_family", "write_worklog", "summarize"),
        *("analyse", "plot_savings", "log_mlflow", "log_figures", "all"),
    }


def test_changed_timing_settings_rerun_timing_and_no_build(place: Path) -> None:
    rules = {rule for rule, _ in jobs(place, 'time={"max_samples": 50}')}
    assert "time_family" in rules
    assert not {"build_variant", "check_family", "profile_ncu"} & rules


def test_another_campaign_measures_everything_again(place: Path) -> None:
    rules = {rule for rule, _ in jobs(place, "campaign=second")}
    assert {"check_family", "time_family", "profile_ncu"} <= rules
    assert "build_variant" not in rules


def test_a_missing_record_is_made_even_if_the_campaign_changes(place: Path) -> None:
    lost = place / "results" / "time" / "h200" / "sgemm.json"
    lost.unlink()
    snakemake(place, str(lost.relative_to(place)), *LIVE, "campaign=second")
    assert lost.is_file()


def test_new_variant_adds_its_own_jobs(place: Path) -> None:
    folder = place / "kernels" / "sgemm"
    shutil.copy(folder / "naive.cu", folder / "mine.cu")
    path = folder / "family.yaml"
    entry = "  - {name: mine, parent: naive, idea: a copy, parameters: {BLOCK: 32}}\n"
    path.write_text(path.read_text().replace("  - name: cublas\n", f"{entry}  - name: cublas\n"))
    assert {variant for _, variant in jobs(place, f"{VARIANTS},mine") if variant} == {"mine"}


def test_edited_timing_core_reruns_timing_and_no_kernel_build(place: Path) -> None:
    path = place / "workflow" / "warplog" / "measure" / "worker" / "timer.cu"
    path.write_text(path.read_text() + "\n// edited\n")
    rules = {rule for rule, _ in jobs(place)}
    assert {"build_timer", "time_family"} <= rules
    assert not {"build_variant", "check_family", "profile_ncu", "extract_family"} & rules


def test_edited_code_reruns_nothing_as_long_as_its_stages_keep_their_versions(place: Path) -> None:
    for module in ("machine/clocks.py", "figures/ladder.py"):
        path = place / "workflow" / "warplog" / module
        path.write_text(path.read_text() + "\n# edited\n")
    assert "Nothing to be done" in snakemake(place, "-n", *LIVE)


@pytest.mark.parametrize(
    ("rule", "also", "others"),
    [
        ("time_family", {"make_tables"}, {"check_family", "profile_ncu", "build_variant"}),
        ("profile_ncu", {"extract_family", "make_tables"}, {"time_family", "profile_nsys"}),
        ("plot_family", {"write_worklog", "log_figures"}, {"make_tables", "log_mlflow", "summarize"}),
        ("write_worklog", set(), {"plot_family", "make_tables", "log_figures"}),
    ],
)
def test_a_new_version_of_a_stage_reruns_it_and_what_depends_on_it(
    place: Path, rule: str, also: set[str], others: set[str]
) -> None:
    path = place / "workflow" / "warplog" / "records" / "stages.py"
    text, count = re.subn(
        rf'(rule="{rule}",(?:(?!rule=).)*?version=)\d+', r"\g<1>99", path.read_text(), flags=re.S
    )
    assert count == 1
    path.write_text(text)
    rules = {rule for rule, _ in jobs(place)}
    assert {rule, *also} <= rules
    assert not others & rules


def test_parameter_searches_run_only_if_requested(place: Path) -> None:
    dry_run = snakemake(place, "-n", "tune", *LIVE)
    rules = set(re.findall(r"^(?:local)?rule (\w+):", dry_run, re.MULTILINE))
    assert rules == {"tune_variant", "plot_tuning", "tune"}
    assert "variant=autotuned" in dry_run
    snakemake(place, "tune", *LIVE)
    assert "Nothing to be done" in snakemake(place, "-n", "tune", *LIVE)
    assert "Nothing to be done" in snakemake(place, "-n", *LIVE)


def test_a_misspelt_key_is_refused_with_a_suggestion(place: Path) -> None:
    done = run(place, "-n", "--config", "varaints=naive")
    assert done.returncode == 1
    assert "unknown key 'varaints'; did you mean 'variants'?" in done.stdout + done.stderr
