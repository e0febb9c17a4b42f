"""Text stays text in Markdown, and tables keep their columns."""

import pytest

from warplog.core.text import Table, escape_markdown, markdown_table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("lg_throttle _x_", r"lg_throttle \_x\_"),
        ("<b>&amp;", "&lt;b>&amp;amp;"),
        ("![i](u)", r"!\[i\](u)"),
        ("C:\\new *x* `y` ~z~ $w$", r"C:\\new \*x\* \`y\` \~z\~ \$w\$"),
        ("# no heading", r"\# no heading"),
        ("- no list", r"\- no list"),
        ("1. no list", r"1\. no list"),
        ("1.33 times", "1.33 times"),
        ("-1.5", "-1.5"),
        ("> no quotation", r"\> no quotation"),
        ("two\nlines\x00", "two lines"),
    ],
)
def test_text_that_markdown_shows_as_it_is(text, shown):
    assert escape_markdown(text) == shown


def test_columns_are_aligned_and_numbers_stand_to_the_right():
    table = Table(("variant", "us"), (("a", "1.5"), ("b|c", "1234.5")), frozenset({1}))
    assert markdown_table(table) == [
        "| variant |     us |",
        "| ------- | -----: |",
        "| a       |    1.5 |",
        r"| b\|c    | 1234.5 |",
    ]
