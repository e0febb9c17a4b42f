"""Published results appear next to this campaign's result for the same problem, in the same unit, with their source."""

import math
from pathlib import Path

import pytest

import shipped_families
from warplog.catalog.contract import Published
from warplog.cli import main
from warplog.records.config import Config
from warplog.tables import published

PROJECT = Path(__file__).parents[3]
TABLES = PROJECT / "results" / "recorded" / Config().recorded / "tables"
FAMILIES = shipped_families.FAMILIES
SGEMM = FAMILIES["sgemm"]


@pytest.fixture(scope="module")
def measured():
    return published.chosen(SGEMM, TABLES)[0]


@pytest.fixture(scope="module")
def rows(measured):
    return published.rows(SGEMM, measured)


def test_every_measurement_has_a_row_and_every_figure_of_its_variant_one(rows, measured):
    keys = {(r["variant"], r["case"]) for r in measured}
    assert {(r["variant"], r["case"]) for r in rows} == keys
    for variant in {r["variant"] for r in measured}:
        printed = [r for r in rows if r["variant"] == variant and r.get("published")]
        assert len(printed) == len(SGEMM.variant(variant).published)


def test_a_row_holds_ours_theirs_and_both_ratios_to_the_baseline(rows, measured):
    ours = next(r for r in measured if (r["variant"], r["case"]) == ("warptile", "4096"))
    row = next(r for r in rows if r["variant"] == "warptile" and r.get("published_gpu") == "RTX A6000")
    assert row["value"] == ours["gflops"]
    assert row["ratio_to_baseline"] == ours["ratio_to_baseline"]
    assert (row["case"], row["published_case"], row["published"]) == ("4096", "", 21779)
    assert row["published_ratio"] == pytest.approx(21779 / 23250)


def test_a_figure_stands_at_its_own_size(rows):
    by_case = {
        r["case"]: r.get("published") for r in rows if r["variant"] == "cublas" and r.get("published_case")
    }
    assert by_case == {"1024": 36900, "2048": 50200, "4096": 51200, "8192": 51100}


def test_without_the_sources_own_baseline_there_is_no_ratio(rows):
    other_gpu = [r for r in rows if r.get("published_gpu") == "RTX 4090"]
    assert len(other_gpu) == 7
    assert {r["published_ratio"] for r in other_gpu} == {None}


def test_units_are_made_the_same():
    family = FAMILIES["bf16_gemm"]
    row = {"family": "bf16_gemm", "variant": "wgmma_tma", "case": "4096", "status": "ok", "gflops": 400e3}
    rates = published.rows(family, [row])
    assert [(r["value"], r["unit"], r["published"]) for r in rates] == [
        (400.0, "TFLOP/s", 317),
        (400.0, "TFLOP/s", 376),
    ]
    assert math.isnan(
        published.ratio(family, Published(value=1, unit="TFLOP/s", gpu="H100", source="someone else"))
    )


def test_a_failed_variant_keeps_its_status(measured):
    row = {**measured[0], "status": "wrong", "gflops": math.nan}
    assert published.rows(SGEMM, [row])[0]["value"] is None
    table = published.table(SGEMM, [{**row, "case": "4096"}], (SGEMM.variant("naive"),))
    assert table.rows[0][:2] == ("naive", "wrong")


def test_the_page_shows_what_the_command_prints_for_the_recorded_campaign(capsys):
    """After another campaign: `warplog published <its tables> --into workflow/docs/published.md`."""
    assert main.main(["published", str(TABLES)]) == 0
    assert capsys.readouterr().out in (PROJECT / "workflow" / "docs" / "published.md").read_text()


def test_a_document_gets_the_tables_between_its_marks(tmp_path, capsys):
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- warplog published -->\nold\n<!-- end -->\nafter\n")
    command = ["published", str(TABLES), "--family", "sgemm"]
    assert main.main(command) == 0
    printed = capsys.readouterr().out
    for _ in range(2):
        assert main.main([*command, "--into", str(document)]) == 0
        text = document.read_text()
        assert text == f"before\n<!-- warplog published -->\n\n{printed}\n<!-- end -->\nafter\n"
    document.write_text("nothing of the kind")
    assert main.main([*command, "--into", str(document)]) == 1
    assert "page.md: has no lines <!-- warplog published -->" in capsys.readouterr().err
    assert document.read_text() == "nothing of the kind"


def test_a_family_that_is_not_there_is_an_error_of_one_line(capsys):
    assert main.main(["published", str(TABLES), "--family", "none"]) == 1
    assert "families: 'none' does not exist" in capsys.readouterr().err
