"""The main command without a GPU: tables, figures and MLflow runs are made from the recorded campaign."""

import io
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shipped_families
import snakemake_runs
from copied_project import copy_project
from sass_builds import compilers
from shipped_families import EDITED, NEW
from warplog import figures, worklog
from warplog.core import store
from warplog.figures.shared import style
from warplog.plan.making import make_plan
from warplog.plan.parameters import REPORTED
from warplog.plan.selection import choose_figures
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.config import Config
from warplog.tables import view
from warplog.worklog.audit import audit
from warplog.worklog.html import html

PROJECT = Path(__file__).parents[2]
RECORDED = PROJECT / "results" / "recorded" / Config().recorded
FAMILIES = {
    name: family
    for name, family in shipped_families.FAMILIES.items()
    if not (family.draft or family.of_oracle)
}
# Of the variants that are not recorded yet, one is compiled here.
ADDED = set(sorted(NEW)[:1])
VARIANTS = [
    f"{family.name}/{variant.name}"
    for family in FAMILIES.values()
    for variant in family.variants
    if not variant.draft and (family.name, variant.name) not in NEW - ADDED
]
# What the main command shows here: two families with figures of their own, which have all other figures, too.
SHOWN = {name: FAMILIES[name] for name in ("overlap", "quantization")}
# Columns of `measurements` that may differ from the recorded table: the origin always does, `remarks` mention sources
# that were edited since, and notes on the agreement are not read from the sentences of a table.
TEXTS = ["origin", "remarks", "agreement_notes"]
# Numbers that are equal except for rounding: power is the slope of a fit, whose last digit depends on LAPACK, and
# energy is computed from it; the ncu time is a sum, which Python rounds after every term before 3.12, and once since.
LAST_DIGIT = ["sustained_power_w", "energy_j", "gflop_per_j", "pj_per_flop", "ncu_us"]

pytestmark = pytest.mark.timeout(600)  # the first test waits for the whole campaign


def arguments(*targets: str, **config: str) -> list[str]:
    settings = [f"{key}={value}" for key, value in {"mode": "recorded", **config}.items()]
    return ["--cores", "2", "--nocolor", *targets, "--config", *settings]


def snakemake(place: Path, *targets: str, store: str = "", **config: str) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(PROJECT / "workflow")  # equal to that of the clone, and imported already
    environment["WARPLOG_SHARP"] = "1"  # the size of a report and its pictures are as users get them
    environment.pop("MLFLOW_TRACKING_URI", None)
    if store:
        environment["MLFLOW_TRACKING_URI"] = store
    done = snakemake_runs.run(place, *arguments(*targets, **config), environment=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def clone(place: Path) -> Path:
    """Copies the project with its recorded campaign."""
    return copy_project(place, str(RECORDED.relative_to(PROJECT)))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a clone with the tables of all families."""
    place = clone(tmp_path_factory.mktemp("tables"))
    (place / "output.txt").write_text(
        snakemake(place, "tables", families=",".join(FAMILIES), variants=",".join(VARIANTS))
    )
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a clone in which the main command ran once, for the families SHOWN."""
    place = clone(tmp_path_factory.mktemp("clone"))
    snakemake(place, families=",".join(SHOWN))
    return place


def measurements(place: Path) -> pd.DataFrame:
    return pd.read_parquet(place / "results" / "tables" / "measurements.parquet")


def compiled(place: Path) -> set[tuple[str, str]]:
    """Returns the variants whose build is not the recorded one."""
    rows = pd.read_parquet(place / "results" / "tables" / "variants.parquet")
    live = rows[rows["build_origin"] != "recorded"]
    return set(zip(live["family"], live["variant"], strict=True))


def test_one_line_reports_that_the_recorded_campaign_is_used(everything: Path) -> None:
    found = [
        line
        for line in (everything / "output.txt").read_text().splitlines()
        if "using the recorded campaign" in line
    ]
    assert found
    assert "NVIDIA H200" in found[0]
    assert "commit" in found[0]


def test_tables_hold_the_recorded_numbers_and_state_their_origin(everything: Path) -> None:
    table = measurements(everything)
    assert set(table["origin"]) == {"recorded"}
    recorded = pd.read_parquet(RECORDED / "tables" / "measurements.parquet")
    assert set(recorded["origin"]) == {"live"}
    assert set(table["family"]) == set(FAMILIES)
    new = [key in NEW for key in zip(table["family"], table["variant"], strict=True)]
    assert set(table.loc[new, "status"]) <= {"missing"}
    old = table.loc[[not one for one in new]].reset_index(drop=True)
    if "processes" in recorded:
        assert set(old.columns) == set(recorded.columns)
    else:  # a campaign of one process, whose long hot runs are its sustained times
        names = {"hot_power_w": "sustained_power_w", "hot_sm_mhz": "sustained_sm_mhz"}
        recorded = recorded.rename(columns=names)
        assert set(recorded.columns) < set(old.columns)
        assert set(old["processes"].dropna()) == {1}
    exact = [name for name in recorded.columns if name not in (*TEXTS, *LAST_DIGIT)]
    pd.testing.assert_frame_equal(old[exact], recorded[exact], check_exact=True)
    pd.testing.assert_frame_equal(old[LAST_DIGIT], recorded[LAST_DIGIT], rtol=1e-12, atol=0)


def test_recorded_builds_are_used_and_nothing_else_is_compiled(everything: Path) -> None:
    metrics = pd.read_parquet(everything / "results" / "tables" / "metrics.parquet")
    built = metrics[metrics["tool"].isin(["ptxas", "cuobjdump"])]
    assert set(built["family"]) == set(FAMILIES)
    assert set(metrics.loc[~metrics.index.isin(built.index), "origin"]) == {"recorded"}
    assert compiled(everything) == EDITED | ADDED
    folders = (everything / "results" / "build").glob("*/*/*/record.json")
    assert {(path.parts[-3], path.parts[-2]) for path in folders} == EDITED | ADDED


def test_claims_are_judged(everything: Path) -> None:
    rows = pd.read_parquet(everything / "results" / "tables" / "claims.parquet")
    expected = {(f.name, claim.id) for f in FAMILIES.values() for claim in f.claims}
    assert set(zip(rows["family"], rows["id"], strict=True)) == expected
    sgemm = rows[rows["family"] == "sgemm"].set_index("id")
    assert sgemm.loc["B1", "verdict"] == "confirmed"
    assert sgemm.loc["D20", "verdict"] == "confirmed", (
        "the first launch is in the records, if not in the tables"
    )
    measures = zip(rows["family"], rows["measure"].fillna(""), strict=True)
    about_new = np.array(  # they wait for the next recording
        [any((family, word) in NEW for word in re.findall(r"\w+", measure)) for family, measure in measures]
    )
    assert (rows.loc[~about_new, "verdict"] != "not_measurable").mean() > 0.8
    assert (rows.loc[about_new, "verdict"] == "not_measurable").all()
    assert set(rows["origin"]) == {"recorded"}
    columns = pd.read_csv(everything / "results" / "tables" / "columns.csv")
    assert set(columns.loc[columns["table"] == "claims", "column"]) == {"id", *rows.columns}


def test_every_figure_that_shows_something_has_its_three_files(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    expected = {
        f"{family}/{name}"
        for family, names in choose_figures(SHOWN, FAMILIES, {"accesses": SHOWN}).items()
        for name in figures.with_variants(names, (variant.name for variant in FAMILIES[family].variants))
        if len(figures.data(name, view.load(place / "results" / "tables", family)))
    }
    assert {"overlap/overlap", "quantization/throughput_vs_size"} <= expected
    assert not expected & {"overlap/throughput_vs_size", "quantization/timeline"}
    folder = place / "results" / "figures"
    for suffix in ("png", "svg", "csv"):
        found = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob(f"*/*.{suffix}")}
        assert found == expected
    for path in folder.glob("*/*.svg"):
        text = path.read_text()
        assert "NVIDIA H200" in text, path
        assert "recorded" in text, path


def test_figures_of_another_family_are_laid_out(everything: Path) -> None:
    tables = view.load(everything / "results" / "tables", "transfer")
    for name in choose_figures({"transfer": FAMILIES["transfer"]}, FAMILIES)["transfer"]:
        if (rows := figures.data(name, tables)).empty:
            continue
        figure = figures.module(name).draw(rows, style.look(tables))
        figure.draw_without_rendering()
        assert "NVIDIA H200" in figure.get_supxlabel()


def test_every_family_has_its_worklog_and_published_results(place: Path, everything: Path) -> None:
    folder = place / "results" / "worklog"
    assert {p.name for p in folder.iterdir()} == {f"{f}.{s}" for f in SHOWN for s in ("html", "md")}
    latex = place / "results" / "latex"
    assert all({"ladder.tex", "speeds.tex"} <= {p.name for p in (latex / f).iterdir()} for f in SHOWN)
    assert all("recorded" in path.read_text() for path in folder.glob("*.md"))
    table = pd.read_parquet(everything / "results" / "tables" / "published.parquet")
    printed = table[table["published"].notna()]
    assert {"naive", "warptile", "cublas"} <= set(printed["variant"])
    assert set(printed["published_source"]) > {"S. Boehm, How to optimize a CUDA matmul kernel"}


def test_mlflow_runs_equal_the_tables(place: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{place}/results/mlflow.db")
    experiments = {e.name: e for e in client.search_experiments() if e.name.startswith("warplog/")}
    assert set(experiments) == {f"warplog/{family}" for family in SHOWN}
    experiment = experiments["warplog/quantization"]
    runs = client.search_runs([experiment.experiment_id])
    table = measurements(place)
    table = table[table["family"] == "quantization"]
    assert len(runs) == table["variant"].nunique()
    for run in runs:
        assert run.data.tags["origin"] == "recorded"
        rows = table[(table["variant"] == run.data.tags["variant"]) & (table["status"] == "ok")]
        points = {
            m.step: m.value for m in client.get_metric_history(run.info.run_id, "perf/achieved_tflop_per_s")
        }
        assert points == pytest.approx(dict(zip(rows["size"], rows["gflops"] / 1000, strict=True)))


@pytest.fixture(scope="module")
def report(place: Path) -> Path:
    """Returns Snakemake's report on the families SHOWN."""
    snakemake(place, "--report", "report.html", families=",".join(SHOWN))
    return place / "report.html"


def test_a_report_on_all_families_has_less_than_10_megabytes(place: Path, report: Path) -> None:
    pattern = [f"{name}.png" for name in REPORTED]
    shown = [path for family in SHOWN for path in (place / "results/figures" / family).glob("*.png")]
    rest = report.stat().st_size - embedded(path for path in shown if path.name in pattern)
    reported = [path for path in shown if path.name in pattern]
    drawn = make_plan({"mode": "recorded"}).drawn.values()
    all_pictures = sum(name in REPORTED for names in drawn for name in names)
    pictures = embedded(reported) / len(reported) * all_pictures
    assert 0 < rest < rest + pictures < 10e6


def embedded(pictures: Iterable[Path]) -> int:
    """Returns the bytes of pictures as base64."""
    return sum(4 * math.ceil(path.stat().st_size / 3) for path in pictures)


def test_the_report_opens_on_the_ladders(report: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("needs Chromium or Chrome in PATH")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with playwright.sync_playwright() as running:
        page = running.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        page.goto(report.as_uri())
        page.wait_for_function(
            "n => [...document.querySelectorAll('img.ladder')].filter(one => one.naturalWidth > 100).length == n",
            arg=len(SHOWN),
        )
        assert page.locator("img.ladder").first.bounding_box()["y"] < page.viewport_size["height"] / 2
        page.locator("img.ladder").first.click()
        page.get_by_text("Speed of the variants of overlap").wait_for()


def test_second_run_does_nothing(place: Path) -> None:
    assert "Nothing to be done" in snakemake(place, families=",".join(SHOWN))


def test_an_edited_record_of_the_recorded_campaign_stops_the_run_with_one_line(everything: Path) -> None:
    path = everything / RECORDED.relative_to(PROJECT) / "records" / "check.tar.xz"
    content = path.read_bytes()
    members = {name: data.replace(b'"ok"', b'"wrong"') for name, data in store.members(path).items()}
    path.write_bytes(store.pack(members))
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "workflow")}
    done = snakemake_runs.run(everything, *arguments("tables"), environment=environment)
    path.write_bytes(content)
    assert done.returncode != 0
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("error: ")]
    assert "check.tar.xz: was changed after it was written; restore it (git checkout" in line
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.nvcc
def test_a_killed_run_resumes_where_it_stopped(tmp_path: Path) -> None:
    compilers()
    copy = copy_project(tmp_path, families=("transpose",))
    builds = copy / "results" / "build" / "sm_90" / "transpose"
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "workflow")}
    variants = [variant.name for variant in FAMILIES["transpose"].variants[:3]]
    chosen = {"mode": "live", "gpu": "h200", "families": "transpose", "variants": ",".join(variants)}
    command = [snakemake_runs.interpreter(), "-m", "snakemake", *arguments("build", **chosen)]
    running = subprocess.Popen(
        command, cwd=copy, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while (
        len(list(builds.glob("*/launcher.cu"))) <= 2
    ):  # the third starts when one of the first two has finished
        assert running.poll() is None
        time.sleep(0.02)
    running.kill()
    running.wait()
    done = {path: path.stat().st_mtime_ns for path in builds.glob("*/record.json")}
    assert len(done) < len(variants)
    output = snakemake(copy, "build", **chosen)
    assert {path.parent.name for path in builds.glob("*/record.json")} == set(variants)
    finished = [path for path, changed in done.items() if path.stat().st_mtime_ns == changed]
    assert finished, output


def test_the_pages_pass_the_audit(place: Path) -> None:
    snakemake(place, "audit", families=",".join(SHOWN))
    assert ", 0 wrong, 0 texts with numbers of no cell\n" in (place / "results/logs/audit.log").read_text()


def test_the_page_of_a_family_under_the_power_limit_passes_the_audit(everything: Path) -> None:
    results = everything / "results"
    tables = view.load(results / "tables", "power")
    campaign = door.read(RECORDED / "campaign" / "h200.json", Campaign)
    page = worklog.gather(FAMILIES["power"], tables, campaign, [], PROJECT / "workflow" / "report")
    (results / "worklog").mkdir()
    assert "power" in worklog.markdown(page, results / "worklog")
    assert "tab:power-ladder" in worklog.latex(page)["ladder"]
    (results / "worklog" / "power.html").write_text(html(page))
    shown = io.StringIO()
    assert audit(results, shown).passed, shown.getvalue()


def test_a_lost_store_is_filled_again(place: Path) -> None:
    (place / "results" / "mlflow.db").unlink()
    output = snakemake(place, families=",".join(SHOWN))
    assert (place / "results" / "mlflow.db").is_file()
    assert "MLflow" in output
    assert "figures" not in output
    assert "Nothing to be done" in snakemake(place, families=",".join(SHOWN))


def test_another_store_is_filled_too(place: Path) -> None:
    output = snakemake(place, "track", families=",".join(SHOWN), store="sqlite:///results/other.db")
    assert "MLflow" in output
    assert (place / "results" / "other.db").is_file()


@pytest.mark.nvcc
def test_an_edited_source_is_compiled_and_marked_as_different_from_the_recorded_one(place: Path) -> None:
    compilers()
    path = place / "kernels" / "sgemm" / "naive.cu"
    path.write_text(path.read_text() + "\n// edited\n")
    of_sgemm = ",".join(name for name in VARIANTS if name.startswith("sgemm/"))
    snakemake(place, "tables", families="sgemm", variants=of_sgemm)
    table = measurements(place)
    edited = table["variant"] == "naive"
    assert all("earlier_source" in r for r in table[edited & (table["status"] == "ok")]["remarks"])
    earlier = set(table[table["remarks"].str.contains("earlier_source")]["variant"])
    assert earlier == {name for family, name in EDITED if family == "sgemm"} | {"naive"}
    assert compiled(place) == {key for key in EDITED | ADDED if key[0] == "sgemm"} | {("sgemm", "naive")}
