"""The worklog as HTML, Markdown and LaTeX: each escapes hostile text, and LaTeX accepts the tables."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from worklog_pages import (
    CLAIM,
    FAMILY,
    HOSTILE,
    SAFE,
    Page,
    hot_line,
    told,
)

from warplog import worklog
from warplog.core.text import HIDDEN, Table
from warplog.records import remarks
from warplog.worklog.excerpt import Excerpt
from warplog.worklog.html import html
from warplog.worklog.latex import escape
from warplog.worklog.page import Picture, Summary


@pytest.fixture(scope="module")
def hostile(recorded):
    """A page on which every text from a user, a tool or a publication is hostile."""
    variants = recorded.variants.assign(idea=HOSTILE, credit=HOSTILE)
    rows = recorded.measurements.copy()
    rows.loc[rows["variant"] == "naive", ["status", "reason"]] = "crashed", HOSTILE
    elsewhere = remarks.cell([remarks.NotTuned(gpu=HOSTILE)])
    rows.loc[rows["variant"] == "warptile", "remarks"] = elsewhere
    rows.loc[rows["variant"] == "warptile", "agreement"] = HOSTILE
    figures = tuple(structs.replace(p, source=HOSTILE, gpu=HOSTILE) for p in FAMILY.variants[1].published)
    rungs = tuple(structs.replace(v, published=figures if v.published else ()) for v in FAMILY.variants)
    family = structs.replace(FAMILY, title=HOSTILE, summary=HOSTILE, variants=rungs)
    tables = replace(recorded, variants=variants, measurements=rows)
    claim = {**CLAIM, **dict.fromkeys(("claim", "source", "published", "verdict", "reason"), HOSTILE)}
    line = hot_line(recorded, 3, 0.5) | {"text": HOSTILE, "stall": HOSTILE}
    return told(tables, family, claims=[claim], lines=[line])


def test_hostile_text_is_text_in_html(hostile):
    seen = Page(html(hostile))
    assert "script" not in seen.tags
    assert seen.text.count("alert(1)") >= 20
    assert SAFE in seen.text


def test_hostile_sentences_are_text_too(page):
    rungs = tuple(replace(one, story=("a", HOSTILE), limits=(HOSTILE,)) for one in page.rungs)
    picture = replace(page.pictures[0], title=HOSTILE, caption=HOSTILE)
    seen = Page(html(replace(page, rungs=rungs, notes=(HOSTILE,), pictures=(picture,))))
    assert "script" not in seen.tags
    assert seen.text.count("alert(1)") == 2 * len(rungs) + 3


def test_hostile_text_is_text_in_markdown(hostile, tmp_path):
    source = worklog.markdown(hostile, tmp_path)
    assert "<script" not in source
    assert r"\| \~ \[u\](v) \*w\* \`q\`" in source
    for line in source.splitlines():
        if line.startswith("| ") and "alert" in line:
            assert len(re.findall(r"(?<!\\)\|", line)) in (5, 6, 8, 9)


def test_hostile_text_is_text_in_latex(hostile):
    source = worklog.latex(hostile, Path())
    assert r"\textbackslash{}input\{x\} a\_b \& 50 \% \$y\textasciicircum{}2\$ \#1 \{z\} \textbar{}" in source
    assert r"\input" not in source
    assert escape("[1ex] *") == "{[}1ex{]} {*}"  # behind the \\\\ of the row above
    assert "\nnew" not in source
    for line in source.splitlines():
        if line.endswith(r" \\"):
            assert not line.startswith(("[", "*"))
            bare = re.sub(r"\\[\\{}$&#%_]", "", line.removesuffix(r"\\"))
            assert not re.search(r"(?<!\\)[#%_^~]", bare), line
    plain = re.sub(r"\\[{}]", "", source)
    assert plain.count("{") == plain.count("}")


def test_no_page_hides_a_character(page, tmp_path):
    hidden = "fast\u202ewols\x1b[2J\u200b"
    excerpt = Excerpt(hidden, 1, f"// {hidden}\nint x;")
    rungs = tuple(
        replace(one, idea=hidden, badge=hidden, story=(hidden,), excerpt=excerpt) for one in page.rungs
    )
    summary = Summary(hidden, Table((hidden, "n"), ((hidden, "1"),), notes=(hidden,)))
    hostile = replace(
        page, title=hidden, lead=(hidden,), facts=((hidden, hidden),), rungs=rungs, summaries=(summary,)
    )
    shown = {html(hostile), worklog.markdown(hostile, tmp_path), worklog.latex(hostile, Path())}
    assert not [HIDDEN.findall(source) for source in shown if HIDDEN.search(source)]
    assert r"// fast\u{202e}wols\u{1b}[2J" in worklog.markdown(hostile, tmp_path)


def test_markdown_says_how_to_read_the_tables_before_the_first_of_them(page, tmp_path):
    source = worklog.markdown(page, tmp_path)
    key, first_step = source.index("## How to read the tables"), source.index("## 1. ")
    assert source.index("## The main path") < key < first_step


def test_latex_environments_close_and_rows_have_all_their_cells(page, hostile):
    for source in (worklog.latex(one, Path()) for one in (page, hostile)):
        opened, cells = [], 0
        for line in source.splitlines():
            if found := re.match(r"\\begin\{(table|tabularx?)\}(.*)", line):
                opened.append(found[1])
                # A column is one letter; what stands in braces describes it.
                columns = re.sub(r"\{\\linewidth\}|@\{\}|>\{.*?\\hspace\{0pt\}\}|[{}]", "", found[2])
                cells = len(columns) if found[1] != "table" else cells
                assert found[1] == "table" or set(columns) <= set("lrX")
            elif line.startswith(r"\begin{figure}"):
                opened.append("figure")
            elif found := re.match(r"\\end\{(\w+)\}", line):
                assert opened.pop() == found[1]
            elif line.endswith(r" \\"):
                assert len(re.findall(r"(?<!\\)&", line)) == cells - 1, line
        assert not opened
        labels = re.findall(r"\\label\{(.*)\}", source)
        assert (
            len(labels)
            == len(set(labels))
            == source.count(r"\begin{table}") + source.count(r"\begin{figure}")
        )


def test_latex_includes_each_figure_as_pdf_if_there_is_one_with_its_caption(page, tmp_path):
    drawn = tmp_path / "figures"
    drawn.mkdir()
    for name in ("ladder.png", "roofline.png", "roofline.pdf"):
        (drawn / name).touch()
    ladder = Picture("ladder", "Speed", "Bars of 50 %.", drawn / "ladder.png")
    roofline = Picture("roofline", "Roofline", "Points_and roofs.", drawn / "roofline.png")
    source = worklog.latex(replace(page, ladder=ladder, key=(), pictures=(roofline,)), tmp_path / "worklog")
    assert source.count(r"\begin{figure}[tbp]") == 2
    assert source.count(r"[width=\linewidth,height=0.45\textheight,keepaspectratio]") == 2
    found = re.findall(r"\\includegraphics.*?\{(.*?)\}\n\\caption\{(.*)\}\n\\label\{(.*)\}", source)
    assert found == [
        ("../figures/ladder.png", r"Speed. Bars of 50 \%.", "fig:sgemm-ladder"),
        ("../figures/roofline.pdf", r"Roofline. Points\_and roofs.", "fig:sgemm-roofline"),
    ]


def test_a_long_text_of_a_table_keeps_a_readable_width(page):
    long = [table for rung in page.rungs for table in (rung.claims, rung.printed) if table]
    cells = sum(len(cell) > 40 for table in long for row in table.rows for cell in row)
    assert html(page).count(' long"') >= cells > 0


def test_latex_says_first_which_packages_it_needs(page):
    head = "".join(line for line in worklog.latex(page, Path()).splitlines()[:3] if line.startswith("%"))
    assert r"\usepackage{booktabs,graphicx,tabularx,textcomp}" in head


def test_latex_breaks_what_is_wider_than_a_line_and_cuts_what_is_longer_than_a_page(page):
    many = tuple((f"variant_{n}", "word " * 60, str(n)) for n in range(40))
    wide = Summary("Wide", Table(("variant", "text", "n"), many, frozenset({2}), notes=("A note.",)))
    narrow = Summary("Narrow", Table(("variant", "n"), (("a", "1"), ("b", "2")), frozenset({1})))
    source = worklog.latex(replace(page, summaries=(wide, narrow), rungs=()), Path())
    parts = re.findall(r"\\caption\{Wide \((\d+) of (\d+)\)\}", source)
    assert len(parts) > 3
    assert parts == [(str(n), str(len(parts))) for n in range(1, len(parts) + 1)]
    assert all(source.count(rf"variant\_\allowbreak{{}}{n} &") == 1 for n in range(40))
    assert source.count("A note.") == 1
    assert "A note." in source.partition(r"\caption{Wide (2 of")[0], "a note stands below the first part"
    assert r"\begin{tabular}{@{}lr@{}}" in source.partition(r"\caption{Narrow}")[2]


def wide(page):
    """The page with tables of more and longer columns than a line holds, one of them of claims."""
    names = tuple(f"variant_with_a_long_name_{n}" for n in range(12))
    many = Table(("case", *names), (("4096x65536-bf16", *["1234.5"] * 12),), frozenset(range(1, 13)))
    titles = ("variant", *(f"threads per block and per SM {n}" for n in range(4)))
    long = Table(titles, (("cp_async_pipelined", *["9"] * 4),), frozenset(range(1, 5)))
    return replace(page, summaries=(Summary("Many", many), Summary("Long titles", long)))


def test_latex_stacks_long_titles_and_scales_a_table_of_many_columns(page):
    source = worklog.latex(wide(page), Path())
    captioned = [source.partition(rf"\caption{{{name}}}")[2] for name in ("Many", "Long titles")]
    first, second = (text.partition(r"\end{table}")[0] for text in captioned)
    assert r"\resizebox{\linewidth}{!}{%" in first
    assert r"\begin{tabular}[b]{@{}r@{}}variant\_\\with\_\\a\_\\long\_\\name\_\\0\end{tabular}" in first
    assert r"\begin{tabular}[b]{@{}r@{}}threads\\per\\block\\and\\per\\SM\\0\end{tabular}" in second
    assert r"\resizebox" not in second


def test_latex_has_claims_in_five_columns_and_each_note_once(recorded):
    page = told(recorded, claims=[CLAIM | {"reason": "note on naive: 4 samples"}])
    source = worklog.latex(page, Path())
    row = "C1: coalescing brings 6x (note on naive: 4 samples) & 4096 & 11.8 (\\textgreater{}= 5) & confirmed, exceeded"
    assert row.replace("\\\\", "\\") in source
    assert "& 6x; someone " in source
    assert len([step for step in page.rungs if step.factors]) > 2
    assert source.count("The product of all factors and the remainder") == 1
    assert source.count("the states selected (a warp issues)") == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_latex_sets_the_tables(page, hostile, tmp_path):
    for name, one in (("page", page), ("hostile", hostile), ("wide", wide(page))):
        text = (
            "\\documentclass{article}\n\\usepackage{booktabs,graphicx,tabularx,textcomp}\n\\begin{document}\n"
        )
        (tmp_path / f"{name}.tex").write_text(f"{text}{worklog.latex(one, tmp_path)}\\end{{document}}\n")
        command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", f"{name}.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout[-2000:]
        assert name == "hostile" or not re.findall("Overfull|too large", done.stdout)
