"""`warplog explain`: the steps of the pages in Markdown, from the tables alone, and its errors."""

import re
import shutil
from dataclasses import replace

import pytest

import small_campaign
from warplog.cli import main
from warplog.tables.conclusions import Step, rows
from warplog.worklog import explain
from warplog.worklog.cells import shown

RECORDED = small_campaign.FOLDER / "tables"


@pytest.fixture
def steps():
    """What is printed of each variant of sgemm: its line, and those below it."""

    def printed(text):
        parts = re.split(r"^- \*\*(\w+)\*\*: ", text, flags=re.MULTILINE)[1:]
        return {name: lines.splitlines() for name, lines in zip(parts[::2], parts[1::2], strict=True)}

    return printed


def test_a_step_is_a_line_with_its_gain_and_interval_then_causes_costs_and_what_bounds_it(
    recorded, steps, capsys
):
    assert main.main(["explain", str(RECORDED), "--family", "sgemm"]) == 0
    text = capsys.readouterr().out
    lines = steps(text)
    assert list(lines) == list(small_campaign.STEPS)
    for step in rows(recorded.steps, Step):
        ends = f"({shown(step.low, 'x')} to {shown(step.high, 'x')})"
        assert lines[step.variant][0].startswith(
            f"{shown(step.speedup, 'x')} as fast as {step.parent} {ends}: "
        )
    head, cause, bound = lines["gmem_coalesced"]
    assert head.endswith("sectors per global load 16.5 → 2.5, sectors per global store 32 → 4.")
    assert cause.startswith(
        "  - Why it is faster: waiting for room in the queue of global and local accesses 25"
    )
    assert bound.startswith("  - No unit is at its peak; the busiest is at 68.8 % (the LSU pipe)")
    assert any(line.startswith("  - What it costs: ") for line in lines["smem_tiled"])
    assert lines["cublas"][0] == "51.2 TFLOP/s"
    assert text.rstrip().endswith("warplog explain --all")


def test_with_all_a_step_has_everything_that_changed_and_occupancy_traffic_and_remainder(steps, capsys):
    assert main.main(["explain", str(RECORDED), "--all"]) == 0
    text = capsys.readouterr().out
    assert "# transpose: why each step is faster or slower" in text
    lines = "\n".join(steps(text.partition("# transpose")[0])["vectorized"])
    assert "  - Occupancy is " in lines
    assert "the compulsory " in lines
    assert re.search(r"^    - mean SM clock [\d,]+ MHz → [\d,]+ MHz \(\d", lines, re.MULTILINE)


def test_hostile_names_do_not_break_the_page(recorded):
    name = "a|b <script>\nc"
    renamed = {column: {"naive": name} for column in ("variant", "parent", "against")}
    tables = {
        table: getattr(recorded, table).replace(renamed)
        for table in ("variants", "measurements", "places", "steps", "verdicts", "changes", "bounds")
    }
    page = explain.markdown(replace(recorded, **tables))
    assert "<script>" not in page
    assert name not in page
    assert page.count(r"a\|b &lt;script> c") == 2


def test_a_variant_without_a_time_has_its_status(recorded, steps):
    is_it = recorded.measurements["variant"] == "naive"
    failed = recorded.measurements.assign(
        status=recorded.measurements["status"].mask(is_it, "wrong"),
        median_us=recorded.measurements["median_us"].mask(is_it),
    )
    places = recorded.places.assign(
        speed=recorded.places["speed"].mask(recorded.places["variant"] == "naive")
    )
    assert steps(explain.markdown(replace(recorded, measurements=failed, places=places)))["naive"] == [
        "wrong"
    ]


def test_a_folder_without_tables_is_an_error_of_one_line_and_so_is_one_without_conclusions(tmp_path, capsys):
    assert main.main(["explain", str(tmp_path)]) == 1
    assert "no such table" in capsys.readouterr().err
    folder = shutil.copytree(RECORDED, tmp_path / "tables")
    for name in ("ladder", "steps"):
        (folder / f"{name}.parquet").unlink()
    assert main.main(["explain", str(folder), "--family", "sgemm"]) == 1
    assert "sgemm: the table `ladder` is missing" in capsys.readouterr().err
