"""Cells of CSV tables: no spreadsheet executes one, no character is hidden, and reading returns the original."""

import io
import sys
import unicodedata

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplog.core.csv_text import as_cell, csv_of_rows, csv_of_table, from_cell, restored
from warplog.core.errors import WarplogError, as_one_line
from warplog.core.text import HIDDEN, visible
from warplog.judge import claims

TRIGGERS = tuple("=+-@\t\r\n")
TEXTS = st.text(alphabet=st.sampled_from("'=+-@\t\r\n\\u{}202e\u202e\x1b,\"9.a \U000e0041"), max_size=12)


@pytest.mark.parametrize(
    "text", ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3+cmd", "@SUM(A1)", "\t=1+1", "\n=1", "＝1+1", "'=1"]
)
def test_a_formula_becomes_text_and_comes_back(text):
    cell = as_cell(text)
    assert cell.startswith("'")
    assert from_cell(cell) == text


@pytest.mark.parametrize(
    "text", ["-5", "+1.5e-3", "-.5", "naive", "", "'quoted'", "a = b", r"C:\users", "3 %"]
)
def test_numbers_and_plain_text_stay_as_they_are(text):
    assert as_cell(text) == from_cell(text) == text


def test_hidden_characters_are_shown_and_come_back():
    assert as_cell("\r=1") == r"\u{d}=1"
    assert as_cell("a\u202eb\x1b[2J") == r"a\u{202e}b\u{1b}[2J"
    assert from_cell(as_cell(r"literally \u{202e}")) == r"literally \u{202e}"


@given(st.one_of(st.text(), TEXTS))
def test_every_text_comes_back_from_a_cell_that_is_safe(text):
    cell = as_cell(text)
    assert from_cell(cell) == text
    assert not HIDDEN.search(cell)
    assert not cell.startswith(TRIGGERS) or not cell.lstrip("+-").startswith(TRIGGERS)
    assert not cell.startswith(TRIGGERS) or cell[1:2] in set("0123456789.")


def test_a_table_and_rows_are_neutralised_and_read_back():
    table = pd.DataFrame({"variant": ["naive", "=cmd|' /C calc'!A0"], "us": [-1.5, 2.0]})
    text = csv_of_table(table)
    assert text == csv_of_rows(table.to_dict("records"))
    assert text.splitlines()[1:] == ["naive,-1.5", "'=cmd|' /C calc'!A0,2.0"]
    pd.testing.assert_frame_equal(restored(pd.read_csv(io.StringIO(text))), table)


def test_the_hidden_characters_are_those_of_unicode():
    categories = {chr(code): unicodedata.category(chr(code)) for code in range(sys.maxunicode + 1)}
    unicode = {c for c, kind in categories.items() if kind in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n", "\t"}
    ours = {c for c in categories if HIDDEN.fullmatch(c)}
    assert unicode <= ours
    assert {categories[c] for c in ours - unicode} <= {"Cn"}, "newer than this Python's version of Unicode"


def test_line_ends_tabs_and_spaces_stay_visible():
    assert visible("a\n\tb\u00a0µ − ×") == "a\n\tb\u00a0µ − ×"
    assert visible("\u2066x\u2069") == r"\u{2066}x\u{2069}"


def test_an_error_and_a_claim_cannot_move_the_cursor(capsys):
    hidden = "kernel\u202e\x1b[2J"
    with pytest.raises(SystemExit), as_one_line():
        raise WarplogError(f"{hidden}: wrong")
    claim = {
        "family": hidden,
        "id": "C1",
        "claim": hidden,
        "verdict": hidden,
        "unit": hidden,
        "condition": hidden,
    }
    claims.show(
        [
            {
                **claim,
                "measured": 1.0,
                "published": hidden,
                "evidence": hidden,
                "reason": hidden,
                "about": hidden,
            }
        ],
        sys.stdout,
    )
    shown = capsys.readouterr()
    assert not HIDDEN.search(shown.err + shown.out)
    assert shown.err == "error: kernel  [2J: wrong\n"
