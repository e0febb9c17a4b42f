"""The worklog as Markdown and LaTeX: the same rows, hostile text escaped, and LaTeX that sets them within the page."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from worklog_pages import CLAIM, FAMILY, HOSTILE, hot_line, uncharted

import small_campaign
from warplog import worklog
from warplog.core.text import HIDDEN
from warplog.records import remarks
from warplog.tables.conclusions import NAN, Place, cells, rows
from warplog.worklog.cells import Cells, Number, shown
from warplog.worklog.code.listing import Change, Code, Line
from warplog.worklog.latex import escape
from warplog.worklog.page import Picture
from warplog.worklog.texts import environment, words


@pytest.fixture(scope="module")
def hostile(recorded):
    """A page on which every text from a user, a tool or a publication is hostile."""
    variants = recorded.variants.assign(idea=HOSTILE, credit=HOSTILE)
    measured = recorded.measurements.copy()
    elsewhere = remarks.cell([remarks.NotTuned(gpu=HOSTILE)])
    measured.loc[measured["variant"] == "warptile", "remarks"] = elsewhere
    figures = tuple(structs.replace(p, source=HOSTILE, gpu=HOSTILE) for p in FAMILY.variants[1].published)
    kept = tuple(structs.replace(v, published=figures if v.published else ()) for v in FAMILY.variants)
    family = structs.replace(FAMILY, title=HOSTILE, summary=HOSTILE, variants=kept)
    bounds = recorded.bounds.assign(ceiling=HOSTILE, kind="near", stall=HOSTILE, limiters=HOSTILE)
    tables = replace(recorded, variants=variants, measurements=measured, bounds=bounds)
    more = {"family": "sgemm", "cases": "", "about": ""}
    claim = {
        **more,
        **CLAIM,
        **dict.fromkeys(("claim", "kernels", "source", "published", "verdict", "reason"), HOSTILE),
    }
    line = hot_line(recorded, 3, 0.5) | {"family": "sgemm", "text": HOSTILE, "stall": HOSTILE}
    page = uncharted(tables, family, claims=[claim], lines=[line])
    return replace(page, ladder=Picture("ladder", HOSTILE, HOSTILE, Path("ladder.png")))


def test_markdown_has_every_variant_in_the_order_of_the_ladder_with_its_speed_and_code(
    page, recorded, tmp_path
):
    source = worklog.markdown(page, tmp_path)
    heads = re.findall(r"^## \d+\. (\w+)", source, re.MULTILINE)
    places = sorted(rows(recorded.places, Place), key=lambda place: place.order)
    assert heads == [place.variant for place in places]
    for place in places:
        assert f"**{shown(place.speed, place.unit)}** at 4096" in source
    step = source.partition("## 2. gmem_coalesced")[2].partition("\n## ")[0]
    assert "**11.5x as fast as naive (" in step
    assert "| sectors per global load | 16.5 | 2.5 |" in step
    assert "```diff\n" in step
    assert "\n+    const int col = " in step
    assert source.index("## The main path") < source.index("## 1. ")


def test_markdown_links_the_figures_from_where_it_lies(page, tmp_path):
    picture = replace(page.ladder, path=tmp_path / "figures" / "sgemm" / "ladder.png")
    source = worklog.markdown(replace(page, ladder=picture), tmp_path / "worklog")
    assert "![Ladder](<../figures/sgemm/ladder.png>)" in source


def test_names_between_backticks_are_code_in_markdown(page, tmp_path):
    source = worklog.markdown(replace(page, summary="`rounds` of *`a b`*"), tmp_path)
    assert source.splitlines()[2] == r"`rounds` of \*\`a b\`\*"


def test_hostile_text_is_text_in_markdown(hostile, tmp_path):
    source = worklog.markdown(hostile, tmp_path)
    assert "<script" not in source
    assert r"\| \~ \[u\](v) \*w\* \`q\`" in source
    titles = 0
    for line in source.splitlines():
        if line.startswith("| "):
            cells = len(re.findall(r"(?<!\\)\|", line))
            titles = titles or cells
            assert cells == titles, line
        else:
            titles = 0


def test_code_ends_no_block_and_hides_no_character(page, tmp_path):
    line = Line("a.cu", 1, "/* ```` \u202e */")
    section = replace(page.sections[0], code=Code((Change("same", line),)), idea="fast\u202ewols\x1b[2J")
    source = worklog.markdown(replace(page, sections=(section,)), tmp_path)
    assert "\n`````cuda\n/* ```` \\u{202e} */\n`````\n" in source
    assert not HIDDEN.search(source)


def test_a_macro_of_the_words_is_escaped_once_and_a_number_is_its_text(recorded):
    (place, *_) = rows(recorded.places, Place)
    assert cells(place)["variant"] == "naive"
    assert str(words(escape).status("not_run_50%")) == r"not run 50\%"
    template = environment(escape).from_string("{% macro m(x) %}{{ x }}{% endmacro %}<{{ m(a) }}, {{ b }}>")
    assert template.render(a="5_%", b=Number(79.84, "%", "t/k/c")) == r"<5\_\allowbreak{}\%, 79.8 \%>"


def test_each_table_and_each_figure_is_a_file(page):
    files = worklog.latex(page)
    figures = {f"figure-{picture.name}" for picture in (page.ladder, *page.key, *page.pictures)}
    assert set(files) == {"ladder", "speeds", "resources", *figures}
    labels = re.findall(r"\\label\{(.*)\}", "".join(files.values()))
    assert len(labels) == len(set(labels)) == len(files)
    assert (
        "\\includegraphics[width=\\linewidth,height=0.45\\textheight,keepaspectratio]{sgemm/roofline}\n"
        in (files["figure-roofline"])
    )


def test_the_tables_hold_the_numbers_of_the_rows(page, recorded):
    files = worklog.latex(page)
    for place in rows(recorded.places, Place):
        name = place.variant.replace("_", r"\_\allowbreak{}")
        (row,) = (line for line in files["ladder"].splitlines() if f" & {name} & " in line)
        assert f" & {shown(place.speed, place.unit).removesuffix(' TFLOP/s')} & " in row
    (row,) = (line for line in files["ladder"].splitlines() if "& gmem" in line)
    assert (
        r"& 1 & sectors per global load 16.5 $\rightarrow$ 2.5 & 5.75 & 11.5x & 11.2 to 11.9 & near: LSU pipe"
        in row
    )
    assert r"cublas & 0.519 & 3.39" in files["speeds"], "in the unit of the fastest"


def test_a_variant_without_a_time_has_a_dash_and_its_status(page):
    first, *others = page.sections
    place = Cells("ladder", {"family": "sgemm", "variant": "naive", "unit": "TFLOP/s", "speed": NAN})
    failed = replace(first, place=place, badges=("crashed",), over=None, step=None, bound=None)
    timed = {
        case: {n: r for n, r in variants.items() if n != first.name} for case, variants in page.timed.items()
    }
    files = worklog.latex(replace(page, sections=(failed, *others), timed=timed))
    assert "1 & naive &  &  & crashed &" in files["ladder"]
    assert re.search(r"^naive( & --)+ \\\\$", files["speeds"], re.MULTILINE)


def test_hostile_text_is_text_in_latex(hostile):
    for source in worklog.latex(hostile).values():
        assert r"\input" not in source
        assert "\nnew" not in source
        for line in source.splitlines():
            if line.endswith(r" \\"):
                assert not line.startswith(("[", "*"))
                bare = re.sub(r"\\[\\{}$&#%_]", "", line.removesuffix(r"\\"))
                assert not re.search(r"(?<!\\)[#%_^~]", bare), line
        plain = re.sub(r"\\[{}]", "", source)
        assert plain.count("{") == plain.count("}")
    assert escape("[1ex] *") == "{[}1ex{]} {*}"  # behind the \\\\ of the row above


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
def test_latex_sets_every_table_and_figure_within_the_page(page, hostile, tmp_path, columns):
    figures = small_campaign.FOLDER / "figures"
    for name, variant in (
        ("page", replace(page, ladder=page.ladder, key=(), pictures=())),
        ("hostile", hostile),
    ):
        body = "\n\\clearpage\n".join(worklog.latex(variant).values())
        (tmp_path / f"{name}.tex").write_text(
            f"\\documentclass[{columns}]{{article}}\n\\usepackage[T1]{{fontenc}}\n"
            "\\usepackage{array,booktabs,graphicx}\n"
            f"\\graphicspath{{{{{figures}/}}}}\n\\begin{{document}}\n{body}\\end{{document}}\n"
        )
        command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", f"{name}.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout[-2000:]
        assert name == "hostile" or not re.findall("Overfull|too large", done.stdout)
