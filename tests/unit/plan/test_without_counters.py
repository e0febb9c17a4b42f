"""A campaign whose counters were denied: traced addresses explain its coalescing and its bank conflicts instead."""

import io
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from made_up_accesses import VARIANTS, made_up_accesses, untraced
from made_up_records import provenance
from shipped_families import FAMILIES
from small_campaign import FOLDER
from warplog import figures, worklog
from warplog.cli.main import main
from warplog.plan.files import Files
from warplog.plan.making import make_plan
from warplog.plan.parameters import Parameters
from warplog.records import door, stages
from warplog.records.campaign import Campaign
from warplog.records.check import Check
from warplog.records.extract import Extract
from warplog.records.family_file import FamilyRecord
from warplog.records.requested.accesses import Accesses
from warplog.records.verification import recorded
from warplog.tables import conclusions, view
from warplog.tables.conclusions import AccessLine
from warplog.track import identity, runs
from warplog.worklog import audit, explain
from warplog.worklog.cells import Cells

REPORT = Path(__file__).parents[3] / "workflow" / "report"
CAMPAIGN = door.read(FOLDER / "campaign" / "h200.json", Campaign)


@pytest.fixture(scope="module")
def tables(tmp_path_factory, project):
    """Returns the folder of the tables of the small campaign without counters, but with traced accesses."""
    folder = tmp_path_factory.mktemp("denied")
    records = folder / "records"
    shutil.copytree(FOLDER, records, ignore=shutil.ignore_patterns("*.ncu.json", "tables", "figures"))
    for family in ("sgemm", "transpose"):
        extract = FamilyRecord.read(stages.EXTRACT.at(records, gpu="h200", family=family), Extract)
        extract.variants = {
            name: structs.replace(
                entry, rows=tuple(row for row in entry.rows if row.tool != "ncu"), lines=(), loops=()
            )
            for name, entry in extract.variants.items()
        }
        extract.write()
        _trace(folder, records, family)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("include", "sgemm", "transpose"):
            shutil.copytree(project / "kernels" / name, folder / "kernels" / name)
        recorded.write(Path("results/recorded/small"), recorded.kept(records, []), CAMPAIGN)
        assert main(["record", "small", "--from-records"]) == 0
    return folder / "results" / "recorded" / "small" / "tables"


def _trace(folder, records, family):
    checks = FamilyRecord.read(stages.CHECK.at(records, gpu="h200", family=family), Check).variants
    traced = FamilyRecord(stages.ACCESSES.at(records, gpu="h200", family=family), Accesses, {})
    for name, check in checks.items():
        about = {
            "source_sha256": FAMILIES[family].variant(name).fingerprint(),
            "library_sha256": check.library_sha256,
            "provenance": structs.replace(provenance(), gpu_name=CAMPAIGN.gpu_name),
        }
        is_known = (family, name) in VARIANTS
        traced.put(
            made_up_accesses(folder, family, name, counted=False, **about)
            if is_known
            else untraced(family, name, **about)
        )
    traced.write()


@pytest.fixture(scope="module")
def pages(tables):
    """Returns the page of each family; as HTML it stands beside the tables, in whose folder it can be audited."""
    folder = tables.parents[3]
    (folder / "worklog").mkdir()
    shutil.copytree(tables, folder / "tables")
    picture = folder / "lanes_over_sectors@naive.png"
    shutil.copy(FOLDER / "figures" / "sgemm" / "ladder.png", picture)
    made = {}
    for family in ("sgemm", "transpose"):
        made[family] = worklog.gather(
            FAMILIES[family], view.load(tables, family), CAMPAIGN, [picture], REPORT
        )
        (folder / "worklog" / f"{family}.html").write_text(worklog.html(made[family], ""), encoding="utf-8")
    return made


def test_a_run_from_the_campaign_lists_its_accesses_before_it_analyses_them(tables, monkeypatch):
    monkeypatch.chdir(tables.parents[3])
    made = make_plan({"mode": "recorded", "recorded": "small"})
    assert Files(made).accesses_analysed() == ["results/tables/accesses.parquet"]
    live = make_plan({"mode": "live", "gpu": "h200"})
    assert Files(live).accesses_analysed() == [], "the analysis traces nothing"
    assert Parameters(Files(live)).accesses_listed() == ""
    shutil.copytree(tables, "results/tables")
    assert Parameters(Files(live)).accesses_listed(), (
        "what was traced on request is a reason to analyse again"
    )


def test_steps_name_the_accesses_that_changed_and_the_traced_case(tables):
    transpose, sgemm = (explain.markdown(view.load(tables, name)) for name in ("transpose", "sgemm"))
    assert ". Traced at 64: sectors per write of out 32 → 4." in transpose
    assert "Worse accesses, traced at 64: ways of bank conflicts in shared reads 1 → 32." in transpose
    assert ". Traced at 64: ways of bank conflicts in shared reads 32 → 1." in transpose
    assert "store to out at naive.cu:22: 32 sectors per request instead of 4 (4 B used of each)." in transpose
    assert ". Traced at 64: sectors per read of A 32 → 1." in sgemm
    assert "Counters were not captured" not in transpose + sgemm, "said once on the page, not at every step"


def test_every_number_of_the_pages_is_a_cell(pages, tables):
    said = io.StringIO()
    assert audit.audit(tables.parents[3], said).passed, said.getvalue()


def test_a_page_says_that_its_explanations_are_not_from_counters(pages):
    page = worklog.html(pages["transpose"], "")
    assert "Hardware counters were not captured." in page
    assert "Counters were not captured, so there is no explanation." not in page
    assert "From the addresses of one launch, not from hardware counters." in section(page, "naive")
    assert "Not traced: <span" in section(page, "cublas")


def test_a_table_of_accesses_is_open_only_if_one_takes_more_than_it_needs(pages):
    page = worklog.html(pages["transpose"], "")
    assert "<details open>\n<summary>Memory accesses, traced at" in section(page, "naive")
    assert "<details>\n<summary>Memory accesses, traced at" in section(page, "padded")
    assert ": all ideal</summary>" in section(page, "padded")


def test_a_figure_of_a_variant_is_beside_its_accesses(pages):
    page = pages["transpose"]
    assert {shown.name: [p.title for p in shown.pictures] for shown in page.sections if shown.pictures} == {
        "naive": ["Lanes over sectors of memory"]
    }
    assert not page.pictures
    assert 'alt="Lanes over sectors of memory"' in section(worklog.html(page, ""), "naive")


def test_markdown_and_latex_have_the_same_numbers(pages, tmp_path):
    lines = worklog.markdown(pages["transpose"], tmp_path).splitlines()
    assert [line.split("|")[2:6] for line in lines if line.startswith("| naive.cu:22 |")] == [
        [" load from in ", " 4 sectors ", " 4 ", " 32 B "],
        [" store to out ", " 32 sectors ", " 4 ", " 4 B "],
    ]
    rows = worklog.latex(pages["transpose"])["accesses"]
    assert "naive & 4 & 4 & 32 & 4 &  & 1.00x" in rows
    assert "& 16.5 & 1.00x" in rows


def test_atomics_have_a_column_where_there_are_any(pages, tables, tmp_path):
    page, lines = (
        pages["transpose"],
        conclusions.rows(view.load(tables, "transpose").access_lines, AccessLine),
    )
    add = replace(lines[0], kind="atomic", same_address=8192, same_address_lanes=32)
    shown = tuple(Cells(AccessLine.TABLE, line) for line in (add, *lines[1:3]))
    changed = replace(page, sections=(replace(page.sections[0], accesses=shown), *page.sections[1:]))
    for made in (worklog.html(changed, ""), worklog.markdown(changed, tmp_path)):
        assert made.count("on one address") == 1
        assert "8192 (32 of a request)" in re.sub("<.*?>", "", made)
    assert "on one address" not in worklog.html(page, "") + worklog.markdown(page, tmp_path)


def section(page, name):
    return page.partition(f'id="rung-{name}"')[2].partition('id="rung-')[0]


def test_the_figure_of_bank_conflicts_is_drawn_from_the_traces_and_says_so(tables):
    numbers = figures.data("bank_conflicts", view.load(tables, "transpose"))
    rows = numbers.set_index("variant")
    assert rows.loc["smem_conflict", ["case", "shared_wavefronts", "shared_conflict_ways"]].tolist() == [
        "64",
        4224,
        16.5,
    ]
    assert rows["gap"].to_dict() == {
        "naive": "no shared-memory access", "smem_conflict": "", "padded": "", "xor_swizzled": "", "vectorized": "",
        "written_in_order": "not traced", "cublas": "not traced",
    }  # fmt: skip
    assert rows["traced"].all()


@pytest.fixture(scope="module")
def elsewhere(tables):
    """Returns the tables of transpose if `padded` was traced at another case than the others."""
    own = view.load(tables, "transpose")
    is_padded = own.traced["variant"] == "padded"
    return replace(own, traced=own.traced.assign(case=own.traced["case"].where(~is_padded, "128")))


def test_a_variant_that_was_traced_at_another_case_is_named_with_it(elsewhere):
    page = worklog.gather(FAMILIES["transpose"], elsewhere, CAMPAIGN, [], REPORT)
    assert "a trace of every address of one launch at 64 or 128." in re.sub(
        "<.*?>", "", worklog.html(page, "")
    )
    assert " at 64, padded at 128: memory accesses by the traced addresses" in worklog.latex(page)["accesses"]
    gaps = figures.data("bank_conflicts", elsewhere).set_index("variant")["gap"]
    assert (gaps["padded"], gaps["cublas"]) == ("traced at another case", "not traced")


@pytest.mark.parametrize("family", ["sgemm", "transpose"])
def test_figures_of_counters_are_not_drawn(family, tables):
    own = view.load(tables, family)
    counted = [name for name, needed in figures.needs().items() if "counters" in needed]
    drawn = {name for name in counted if not figures.data(name, own).empty}
    assert drawn == ({"bank_conflicts"} if family == "transpose" else set()), "from the traces"


def test_a_run_in_mlflow_has_metrics_that_are_marked_as_traced(tables):
    by_variant = {
        run.variant: run for run in runs.runs(view.load(tables, "transpose"), identity.identified(CAMPAIGN))
    }
    points = {point.name: point.value for point in by_variant["smem_conflict"].points}
    assert (points["traced/store_sectors_per_request"], points["traced/shared_ways"]) == (4, 16.5)
    assert not [name for name in points if name.startswith("profile/shared")]
    assert by_variant["smem_conflict"].tags["traced_case"] == "64"
    assert "traced_case" not in by_variant["cublas"].tags
