"""`warplog explain`: the page that it writes, and its errors."""

import re
from dataclasses import replace
from pathlib import Path

from warplog.cli import main
from warplog.worklog import explain

RECORDED = Path(__file__).parents[3] / "tests" / "data" / "recorded" / "h200-first" / "tables"


def test_the_command_writes_markdown_that_is_whole(capsys):
    assert main.main(["explain", str(RECORDED), "--family", "sgemm"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("# sgemm: why each step is faster or slower\n")
    rows = [line for line in told.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7, 8}
    assert re.search(r"\| warptile +\| near +\|", told)
    assert main.main(["explain", str(RECORDED)]) == 0
    assert "# sgemm: why each step" in capsys.readouterr().out


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
