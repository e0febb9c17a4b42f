"""The audit of pages: a page as written passes, and whatever is changed in it is found."""

import io
import math
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from msgspec import structs

from small_campaign import FOLDER as RECORDED
from warplog import worklog
from warplog.catalog.family import load_family
from warplog.cli.main import main as warplog
from warplog.core.columns import CLAIMS
from warplog.core.errors import WarplogError
from warplog.judge import claims
from warplog.judge.audit import audit
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.family_file import FamilyRecord
from warplog.records.time import Time
from warplog.tables import files, published, view

ROOT = Path(__file__).parents[3]


def written(folder, change=lambda rows: rows, expected="", root=""):
    """Writes the page of sgemm in the small campaign, with changed measurements, and returns its path.

    With what the variants are `expected` to do, it also has claims. `root` is the parent of the first step.
    """
    shutil.copytree(RECORDED / "tables", folder / "tables")
    variants = folder / "tables" / "variants.parquet"
    if expected:
        pd.read_parquet(variants).assign(expected=expected).to_parquet(variants)
    if root:
        rows = pd.read_parquet(variants)
        rows.loc[rows["variant"] == "naive", "parent"] = root
        rows.to_parquet(variants)
    table = folder / "tables" / "measurements.parquet"
    change(pd.read_parquet(table)).to_parquet(table)
    timed = set(FamilyRecord.read(RECORDED / "time" / "h200" / "sgemm.json", Time).variants)
    family = load_family(ROOT / "kernels" / "sgemm" / "family.yaml")
    family = structs.replace(
        family, variants=tuple(structs.replace(v, draft=v.name not in timed) for v in family.variants)
    )
    campaign = door.read(RECORDED / "campaign" / "h200.json", Campaign)
    pictures = sorted((RECORDED / "figures" / "sgemm").glob("*.png"))
    tables = view.load(folder / "tables", "sgemm")
    rows = published.rows(family, tables.measurements.to_dict("records"))
    pd.DataFrame(rows).to_parquet(folder / "tables" / "published.parquet")
    rows = list(claims.judge_all({"sgemm": family}, folder / "tables")) if expected else []
    files.write_table(rows, CLAIMS, folder / "tables" / "claims")
    tables = view.load(folder / "tables", "sgemm")
    page = worklog.gather(family, tables, campaign, pictures, ROOT / "workflow" / "report")
    path = folder / "worklog" / "sgemm.md"
    path.parent.mkdir()
    path.write_text(worklog.markdown(page, path.parent), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return written(tmp_path_factory.mktemp("results")).parents[1]


def audited(folder):
    out = io.StringIO()
    return audit(folder, out), out.getvalue()


def changed(results, tmp_path, old, new):
    """Copies the results and replaces the first occurrence of a text on the page."""
    folder = shutil.copytree(results, tmp_path / "results")
    page = folder / "worklog" / "sgemm.md"
    text = page.read_text(encoding="utf-8")
    assert old in text
    page.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder, text[: text.index(old)].count("\n") + 1


def test_a_page_as_it_was_written_passes_and_all_its_numbers_are_attributed(results):
    found, shown = audited(results)
    assert found.passed, shown
    assert found.checked > 800
    assert shown == f"checked {found.checked} numbers, 0 not attributable, 0 wrong\n"


@pytest.mark.parametrize(
    ("old", "new", "printed", "recomputed"),
    [
        ("**44.4 TFLOP/s** at 4096", "**45.5 TFLOP/s** at 4096", "45.5", "44.365"),
        ("**44.4 TFLOP/s** at 4096", "**44.4 GFLOP/s** at 4096", "44.4", "44365."),
        (
            "Factors in its favour: instr",
            "Factors against it: instr",
            "Factors against it",
            "Factors in its favour",
        ),
        ("(1.80x, mainly IADD3", "(1.80x, including IADD3", "including", "mainly"),
        ("(1.80x, mainly IADD3", "(1.90x, mainly IADD3", "1.90", "1.79"),
        ("Sectors per global load 16.5 → 2.5", "Sectors per global load 16.5 → 4.5", "4.5", "2.5"),
        ("At 4096, the fastest", "At 2048, the fastest", "2048", "4096"),
        (", vectorized the smallest", ", warptile the smallest", "warptile", "vectorized"),
        ("is warptile with", "is vectorized with", "vectorized", "warptile"),
        ("warptile with 44.4 TFLOP/s, 86.6 %", "warptile with 44.4 TFLOP/s, 68.7 %", "68.7", "86.63"),
        ("mainly through its 721 M", "mainly through its 721 G", "721 G", "7.21"),
        ("Bank conflicts cause 40 %", "Bank conflicts cause 41 %", "41", "39"),
        ("259 → 6.17 ms", "259 → 3.17 ms", "3.17", "6.1"),
        ("344 GB) fell as well", "344 GB) rose as well", "rose", "fell"),
        (
            "Traffic: device memory 8.52 GB → 4.33 GB",
            "Traffic: device memory 8.52 GB → 3.33 GB",
            "3.33 G",
            "4.3",
        ),
        ("data from global or local memory (long", "TMA loads (long", "TMA loads", "data from global"),
        ("largest stall is lg_throttle", "largest stall is barrier", "barrier", "lg_throttle"),
        (
            "It is bound by L1/TEX, at 98.3 % of its peak",
            "The busiest unit is L1/TEX, at 98.3 % of its peak",
            "close",
            "bound",
        ),
    ],
)
def test_a_planted_error_is_found_with_its_place(results, tmp_path, old, new, printed, recomputed):
    folder, line = changed(results, tmp_path, old, new)
    found, shown = audited(folder)
    assert not found.passed
    wrong = [one for one in found.wrong if one.printed == printed]
    assert wrong, shown
    assert (wrong[0].page, wrong[0].line) == ("sgemm.md", line)
    assert wrong[0].recomputed.startswith(recomputed)
    assert f"sgemm.md:{line}: printed {printed}, recomputed " in shown


def test_a_number_in_a_sentence_that_no_rule_knows_fails(results, tmp_path):
    folder, line = changed(
        results, tmp_path, "At 4096, the fastest variant", "It ran 17 times. At 4096, the fastest variant"
    )
    found, shown = audited(folder)
    assert [(one.printed, one.line) for one in found.unattributed] == [("17", line)]
    assert not found.wrong
    assert "1 not attributable, 0 wrong" in shown


def test_numbers_in_code_captions_and_parameters_are_no_results_but_parameters_are_checked(results, tmp_path):
    page = (results / "worklog" / "sgemm.md").read_text(encoding="utf-8")
    parameter = re.search(r"BM (\d+)", page)[0]
    folder, _ = changed(results, tmp_path, parameter, "BM 999")
    assert [one.printed for one in audited(folder)[0].wrong] == ["999"]


@pytest.mark.parametrize("cell", ["speed", "remainder", "SM activity, %"])
def test_every_number_in_a_table_is_checked(results, tmp_path, cell):
    page = (results / "worklog" / "sgemm.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| {cell} "))
    number = re.findall(r"\d+\.\d+", row)[-1]
    other = f"{float(number) * 1.1:.3f}"
    folder, line = changed(results, tmp_path, row, row.replace(number, other))
    assert [(one.printed, one.line) for one in audited(folder)[0].wrong] == [(other, line)]


def limited(rows):
    """Measurements of several processes, of which one variant is limited by power when sustained."""
    rows = rows.assign(processes=3.0, set_mhz=1980.0, limited_by="", sustained_us=math.nan)
    rows["process_min_us"], rows["process_max_us"] = rows["median_us"] * 0.999, rows["median_us"] * 1.002
    hit = (rows["variant"] == "warptile") & (rows["case"] == "4096")
    rows.loc[hit, "sustained_us"] = rows.loc[hit, "median_us"] * 1.25
    rows.loc[hit, "limited_by"] = "power"
    return rows.assign(sustained_sm_mhz=1500.0, sustained_power_w=695.0)


def test_long_runs_and_processes_are_checked(tmp_path):
    path = written(tmp_path, limited)
    found, shown = audited(tmp_path)
    assert found.passed, shown
    text = path.read_text(encoding="utf-8")
    assert (
        "limited by power: set SM clock 1980 → 1500 MHz at 695 W; 3.872 ms a launch, 1.25x the time at rest"
        in text
    )
    for old, new in (
        ("1500 MHz", "1600 MHz"),
        ("limited by power:", "limited by temperature:"),
        ("3.872", "3.782"),
        ("TFLOP/s** sustained", "TFLOP/s** back to back"),
        ("1.25x the time", "1.52x the time"),
        ("the time at rest", "the time with a cold L2"),
    ):
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        assert len(audited(tmp_path)[0].wrong) == 1, old
    path.write_text(re.sub("median of 3 processes", "median of 5 processes", text, count=1), encoding="utf-8")
    assert [one.printed for one in audited(tmp_path)[0].wrong] == ["5"]


def test_what_was_got_beside_an_expectation_is_checked(tmp_path):
    path = written(tmp_path / "results", expected="6 times faster, or 0.1 us; less at 8192")
    found, shown = audited(tmp_path / "results")
    assert found.passed, shown
    text = path.read_text(encoding="utf-8")
    elsewhere = re.search(r"; \*\*(\S+)x\*\* at 8192(?=; \d+ claims|\.)", text)
    for new in (elsewhere[0].replace(elsewhere[1], "77.7"), elsewhere[0].replace("8192", "1024")):
        path.write_text(text.replace(elsewhere[0], new, 1), encoding="utf-8")
        assert audited(tmp_path / "results")[0].wrong, new
    got = re.search(
        r"Got: \*\*(\S+)x\*\* the speed of naive \(4096, at rest\);[^;]*; (\d+) claims confirmed, (\d+) refuted[^.]*\.",
        text,
    )
    for old, new in (
        (got[1], "99.9"),
        ("speed of naive (4096", "speed of warptile (4096"),
        ("(4096, at rest);", "(2048, at rest);"),
        ("(4096, at rest);", "(4096);"),
        (f"{got[2]} claims", f"{int(got[2]) + 1} claims"),
        (f"{got[3]} refuted", f"{int(got[3]) + 1} refuted"),
    ):
        path.write_text(text.replace(got[0], got[0].replace(old, new)), encoding="utf-8")
        assert audited(tmp_path / "results")[0].wrong, (old, new)


def beyond_its_limit(rows):
    """Measurements of which one variant leaves out the largest case by a limit of its own."""
    hit = (rows["variant"] == "naive") & (rows["case"] == "8192")
    rows.loc[hit, ["status", "reason"]] = "unsupported", "needs M to be at most 4096"
    rows.loc[hit, ["median_us", "gflops", "ratio_to_baseline"]] = math.nan
    return rows


def test_sizes_that_were_not_run_are_checked(tmp_path):
    path = written(tmp_path, beyond_its_limit)
    found, shown = audited(tmp_path)
    assert found.passed, shown
    text = path.read_text(encoding="utf-8")
    for old, new in (
        ("| not run |", "| unsupported |"),
        ("M at most 4096 (naive)", "M at most 2048 (naive)"),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        assert len(audited(tmp_path)[0].wrong) == 1, old


def test_the_command_fails_for_a_wrong_page_and_names_what_is_missing(results, tmp_path, capsys):
    assert warplog(["audit", str(results)]) == 0
    assert "0 not attributable, 0 wrong" in capsys.readouterr().out
    folder, _ = changed(results, tmp_path, "44.4 TFLOP/s", "54.5 TFLOP/s")
    assert warplog(["audit", str(folder)]) == 1
    (tmp_path / "empty").mkdir()
    assert warplog(["audit", str(tmp_path / "empty")]) == 1
    assert "empty/worklog: no pages; run `uv run snakemake worklog`" in capsys.readouterr().err
    (folder / "worklog" / "sgemm.md").rename(folder / "worklog" / "gone.md")
    with pytest.raises(WarplogError, match="gone: no such family"):
        audited(folder)


def test_the_audit_shares_no_code_with_the_pages():
    judge = ROOT / "workflow" / "warplog" / "judge"
    for path in (*judge.glob("audit*.py"), *judge.glob("rules/*.py"), judge / "evidence.py"):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"from warplog\.(worklog|figures|tables)", source), path.name


def test_options_of_the_compiler_are_quoted_from_the_tables(results, tmp_path):
    folder, _ = changed(results, tmp_path, "based on naive", "based on naive; compiled with -DTILE=37")
    assert [found.printed for found in audited(folder)[0].unattributed] == ["37"]
    table = folder / "tables" / "variants.parquet"
    pd.read_parquet(table).assign(compile="-DTILE=37").to_parquet(table)
    assert audited(folder)[0].unattributed == []


def test_a_main_path_that_begins_with_the_baseline_is_checked(tmp_path):
    path = written(tmp_path / "page", root="cublas")
    found, shown = audited(tmp_path / "page")
    assert found.passed, shown
    text = path.read_text(encoding="utf-8")
    assert "In 7 steps, the main path leads from cublas" in text
    path.write_text(text.replace("In 7 steps", "In 6 steps", 1), encoding="utf-8")
    assert [one.printed for one in audited(tmp_path / "page")[0].wrong] == ["6"]
