"""`warplog explain`: the page that it writes, and its errors."""

import re
from dataclasses import replace

import small_campaign
from warplog.cli import main
from warplog.worklog import explain

RECORDED = small_campaign.FOLDER / "tables"


def test_the_command_writes_markdown_that_is_whole(capsys):
    assert main.main(["explain", str(RECORDED), "--family", "sgemm", "--all"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("# sgemm: why each step is faster or slower\n")
    rows = [line for line in told.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7, 8}
    assert re.search(r"\| warptile +\| near +\|", told)
    assert main.main(["explain", str(RECORDED)]) == 0
    assert "# sgemm: why each step" in capsys.readouterr().out


def test_without_all_a_step_is_a_line_with_its_gain_and_at_most_three_short_reasons(capsys):
    assert main.main(["explain", str(RECORDED), "--family", "sgemm"]) == 0
    told = capsys.readouterr().out
    assert not [line for line in told.splitlines() if line.startswith("|")]
    steps = re.split(r"^- ", told.partition("\n\nAll factors")[0], flags=re.MULTILINE)[1:]
    assert [step.splitlines()[0] for step in steps[:2]] == [
        "**gmem_coalesced**: 11.5x as fast as naive", "**smem_tiled**: 1.46x as fast as gmem_coalesced",
    ]  # fmt: skip
    assert steps[0].splitlines()[1:] == [
        "  - sectors per global load 16.5 → 2.5 and sectors per global store 32 → 4",
        "  - less lg_throttle (room in the queue of global and local accesses): 259 → 6.17 ms",
        "  - traffic: device memory 8.52 GB → 4.33 GB",
    ]
    for step in steps:
        head, *reasons = step.strip().splitlines()
        assert len(reasons) <= 3, step
        assert ". " not in head, "one sentence"
        assert all(len(reason) < 160 for reason in reasons)
    assert "more mio" in told, "what a faster step costs is told too"
    assert told.rstrip().endswith("warplog explain --all")


def test_hostile_names_do_not_break_the_page(recorded):
    name = "a|b <script>\nc"
    variants = recorded.variants.replace({"variant": {"naive": name}, "parent": {"naive": name}})
    tables = replace(recorded, variants=variants)
    page = explain.markdown(tables)
    assert "<script>" not in page
    assert name not in page
    assert r"a\|b &lt;script> c" in page


def test_a_folder_without_tables_is_an_error_of_one_line(tmp_path, capsys):
    assert main.main(["explain", str(tmp_path)]) == 1
    assert "no such table" in capsys.readouterr().err
    (tmp_path / "variants.csv").write_text("name\nx\n")
    assert main.main(["explain", str(tmp_path)]) == 1
    assert "not a readable table" in capsys.readouterr().err
