"""CSV for people: no cell is executed by a spreadsheet or hides a character, and reading returns the original text.

Spreadsheets execute cells that start with `=`, `+`, `-` or `@`, also after a tab or line end (OWASP, "CSV Injection").
Such a cell gets an apostrophe in front, which spreadsheets do not show. Parquet and JSON hold the text itself.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warplog.core.text import HIDDEN

if TYPE_CHECKING:
    import pandas as pd

# The apostrophes are those of a text that looks like a neutralised cell; it gets one more. A number is harmless.
_EXECUTED = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
# Backslashes before an escape are doubled, so that text that looks like one stays distinct from it. A run of them is
# tried from its start only, so that the time is linear.
_ESCAPED = re.compile(r"(?<!\\)(\\*)u\{([0-9a-f]{1,6})\}")
_TO_ESCAPE = re.compile(rf"(?<!\\)(\\*)(?:({HIDDEN.pattern})|(u\{{[0-9a-f]{{1,6}}\}}))")


def as_cell(text: str) -> str:
    r"""Returns the text as a spreadsheet may read it; hidden characters become escapes such as `\u{202e}`."""
    shown = _TO_ESCAPE.sub(_escape, text)
    executed = _EXECUTED.match(shown) and not _NUMBER.fullmatch(shown)
    return f"'{shown}" if executed else shown


def from_cell(cell: str) -> str:
    """Returns the text that `as_cell` was given."""
    shown = cell[1:] if cell.startswith("'") and _EXECUTED.match(cell) else cell
    return _ESCAPED.sub(_restore, shown)


def _escape(match: re.Match[str]) -> str:
    backslashes, hidden, alike = match.groups()
    if hidden is not None:
        return rf"{backslashes * 2}\u{{{ord(hidden):x}}}"
    return f"{backslashes * 2}{alike}"


def _restore(match: re.Match[str]) -> str:
    count, code = len(match[1]), int(match[2], 16)
    if count % 2 == 0 or code > 0x10FFFF:
        return "\\" * (count // 2) + match[0][count:]
    return "\\" * (count // 2) + chr(code)


def csv_of_rows(rows: Sequence[Mapping[str, object]]) -> str:
    """Returns rows with the same keys as CSV; an empty line if there are no rows."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: as_cell(v) if isinstance(v, str) else v for key, v in row.items()} for row in rows)
    return text.getvalue()


def csv_of_table(table: "pd.DataFrame") -> str:
    """Returns a data frame as CSV, without its index."""
    return _mapped(table, as_cell).to_csv(index=False, lineterminator="\n")


def restored(table: "pd.DataFrame") -> "pd.DataFrame":
    """Returns a data frame that was read from CSV with the original texts."""
    return _mapped(table, from_cell)


def _mapped(table: "pd.DataFrame", change: Callable[[str], str]) -> "pd.DataFrame":
    changed: dict[str, pd.Series[Any]] = {}
    for name in table.select_dtypes(["object", "str", "category"]):
        texts = {value: change(value) for value in table[name].unique() if isinstance(value, str)}
        if any(old != new for old, new in texts.items()):
            changed[str(name)] = table[name].map(lambda value, texts=texts: texts.get(value, value))
    return table.assign(**changed)
