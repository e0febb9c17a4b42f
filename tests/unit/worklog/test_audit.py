"""The audit of pages: numbers as their cells pass, and whatever else a reader could take for a number is found."""

import io
import re
from dataclasses import fields, replace

import pandas as pd
import pytest

from made_up_tables import MadeUpTables, write
from warplog.cli.main import main as warplog
from warplog.core.errors import WarplogError
from warplog.tables.conclusions import NAN, Bound, cells, columns
from warplog.tables.files import write_parquet
from warplog.worklog import audit as auditing
from warplog.worklog.cells import Cells

EMPTY = {"str": "", "float": NAN, "int": -1, "bool": False}
NAMES = [column.name for column in fields(Bound)]
BOUND = replace(
    Bound(*(EMPTY[columns(Bound)[name].kind] for name in NAMES)),
    family="scale", variant="wide", kind="memory", rest_us=310.0, long_us=333.0, traffic=1.5,
)  # fmt: skip
OTHER = replace(BOUND, variant="a/b & c", rest_us=NAN)
SHOWN = '<data value="310.0" data-cell="bounds/scale/wide/rest_us">310.0 µs</data>'


@pytest.fixture
def folder(tmp_path):
    """A results folder with tables and no page."""
    made = MadeUpTables()
    made.variant("scale", "wide", 0, 1, "64 x 2")
    made.measured("scale", "wide", "64 x 2", 64, 310.0, 6.2e9, 1.5e9)
    made.counted("scale", "wide", "64 x 2", "k", 0, {"registers": 32.0}, unit="register")
    write(made.tables(), tmp_path / "tables")
    write_parquet([cells(BOUND), cells(OTHER)], columns(Bound), tmp_path / "tables" / "bounds")
    (tmp_path / "worklog").mkdir()
    return tmp_path


def audited(folder, body):
    page = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"></head>\n<body>{body}</body></html>\n'
    )
    (folder / "worklog" / "scale.html").write_text(page, encoding="utf-8")
    out = io.StringIO()
    return auditing.audit(folder, out), out.getvalue()


def test_a_number_that_is_shown_as_its_cell_passes(folder):
    measured, counted = (
        pd.read_parquet(folder / "tables" / f"{name}.parquet").to_dict("records")[0]
        for name in ("measurements", "metrics")
    )
    shown = [
        Cells("bounds", BOUND).traffic, Cells("bounds", OTHER).traffic, Cells("bounds", OTHER).rest_us,
        Cells("measurements", measured).median_us, Cells("metrics", counted).value,
    ]  # fmt: skip
    result, said = audited(folder, " ".join(cell.__html__() for cell in shown))
    assert result.passed
    assert said == "checked 4 numbers, 0 wrong, 0 texts with numbers of no cell\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('value="310.0"', 'value="311.0"'),
        ("310.0 µs<", "310 µs<"),
        ("310.0 µs<", "310.1 µs<"),
        ("310.0 µs<", "310.0 ms<"),
        ("310.0 µs<", "3\u00ad10.0 µs<"),
        ("310.0 µs<", "٣١٠.0 µs<"),
        ("310.0 µs<", "n/a<"),
        ('value="310.0"', ""),
        ('value="310.0"', 'value="x"'),
        ("wide/rest_us", "wide/long_us"),
        ("wide/rest_us", "wide/kind"),
        ("wide/rest_us", "wide/nothing"),
        ("wide/rest_us", "narrow/rest_us"),
        ("bounds/scale", "../bounds/scale"),
        ("bounds/", "nothing/"),
        ('data-cell="bounds/scale/wide/rest_us"', ""),
    ],
)
def test_a_number_that_differs_from_its_cell_is_found(folder, old, new):
    assert audited(folder, SHOWN)[0].passed
    assert old in SHOWN
    result, _ = audited(folder, SHOWN.replace(old, new))
    assert (len(result.wrong), len(result.bare)) == (1, 0)


def test_a_finding_names_page_line_section_text_and_cell(folder):
    _, said = audited(
        folder, f'<div id="rung-wide">\n<p>{SHOWN.replace("310.0 µs", "31 µs")}, or\nabout 7</p></div>'
    )
    assert said.splitlines() == [
        "scale.html:4: #rung-wide: 31 µs (310.0): bounds/scale/wide/rest_us is 310.0, shown as 310.0 µs",
        "scale.html:5: #rung-wide: , or about 7: has no cell",
        "checked 1 numbers, 1 wrong, 1 texts with numbers of no cell",
    ]


def test_the_value_may_be_written_with_character_references(folder):
    assert audited(folder, SHOWN.replace("310", "3&#49;0"))[0].passed


@pytest.mark.parametrize(
    "text",
    [
        "<p>1.22x the speed</p>",
        "<p>about &#49;</p>",
        "<p>٣ times</p>",
        "<p>½ of it</p>",
        "<p>factor ²</p>",
        "<p>1\u00ad.\u00ad2</p>",
        "<p hidden>7</p>",
        "<figcaption>The 3 fastest</figcaption>",
        '<p title="1.22x">faster</p>',
        '<div aria-label="1.22x faster"></div>',
        '<img src="" alt="1.22x faster">',
        "<title>2 steps</title>",
        '<p class="named">wide2</p>',
        '<p class="authored">idea</p>7',
        '<p class="count">1.5</p>',
        '<p class="count">2 claims</p>',
        '<p class="count">٣</p>',
        '<p class="count">3 µs</p>',
        '<p class="a" class="name">7</p>',
        "<summary>in 3 steps</summary>",
        "<svg></svg>7",
        f"{SHOWN}7",
        "L1.5 and L21 of L2: 7",
        '<p class="axes">50 %</p>',
    ],
)  # fmt: skip
def test_a_number_without_a_cell_is_found(folder, text):
    result, said = audited(folder, text)
    assert (len(result.wrong), len(result.bare)) == (0, 1)
    assert not result.passed
    assert ": has no cell\n" in said


@pytest.mark.parametrize(
    "text",
    [
        '<p class="long authored">12 <b>µs</b>, says the author</p>',
        "<pre>x[3]</pre> <code>sm_90</code> <time>2026-11-20</time>",
        '<a class="name" href="#v2" title="wide2">wide2</a>',
        '<span class="count">2</span> claims',
        '<p class="axis"><b>50 %</b></p> L1/TEX (L2)',
        "<svg viewBox='0 0 9 9'><path d='M 1 1'/><text>9</text></svg>",
        "<script>var a = 7</script><style>a {top: 1px}</style>",
        '<i style="left:3.8%"></i><img src="data:image/png;base64,A1"><!-- 7 -->',
    ],
)
def test_texts_of_authors_code_names_pictures_and_counts_need_no_cell(folder, text):
    assert audited(folder, text)[0].passed


@pytest.mark.parametrize(
    "around", ['<p class="authored">{}</p>', "<pre>{}</pre>", '<span class="count">{}</span>']
)
def test_a_cell_in_an_exempt_text_is_checked_all_the_same(folder, around):
    assert audited(folder, around.format(SHOWN))[0].checked == 1
    assert audited(folder, around.format(SHOWN.replace(">310.0", ">311.0")))[0].wrong


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ('<div>\n<p class="authored">idea\n<p>1.22x</div>', "3: </div> closes <p>"),
        ("<b><i>x</b></i>", "1: </b> closes <i>"),
        ("<data>310.0 <b>µs</b></data>", "1: <b> in <data>"),
        ("<i>" * 300, "1: <i> in <i>"),
        ("<html></html>\n<p class='authored'>", "2: <p> is not closed"),
    ],
)
def test_a_page_whose_elements_are_not_closed_in_order_is_refused(folder, page, why):
    (folder / "worklog" / "scale.html").write_text(page)
    with pytest.raises(WarplogError, match=rf"scale.html:{re.escape(why)}; run `uv run snakemake worklog`"):
        auditing.audit(folder, io.StringIO())


def test_a_page_that_is_too_large_is_refused(folder, monkeypatch):
    monkeypatch.setattr(auditing, "_MOST_BYTES", 100)
    with pytest.raises(WarplogError, match=r"scale.html: \d+ bytes, over the limit of 100; run"):
        audited(folder, "x" * 100)


def test_the_command_fails_for_a_wrong_page_and_names_what_is_missing(folder, capsys):
    assert warplog(["audit", str(folder)]) == 1
    assert "worklog: no pages; run `uv run snakemake worklog`" in capsys.readouterr().err
    audited(folder, SHOWN)
    assert warplog(["audit", str(folder)]) == 0
    assert capsys.readouterr().out == "checked 1 numbers, 0 wrong, 0 texts with numbers of no cell\n"
    audited(folder, "7")
    assert warplog(["audit", str(folder)]) == 1
    (folder / "tables" / "bounds.parquet").unlink()
    audited_page = folder / "worklog" / "scale.html"
    audited_page.write_text(f"<p>{SHOWN}</p>")
    assert warplog(["audit", str(folder)]) == 1
    assert "bounds.parquet: no such table; run `uv run snakemake tables`" in capsys.readouterr().err
