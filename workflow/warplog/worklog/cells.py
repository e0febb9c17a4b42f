"""Numbers on pages: each is a cell of a table, rounded by one rule, and marked in HTML with its place.

`<data value="1.2914" data-cell="steps/sgemm/warptile/speedup">1.29x</data>` lets the audit look up the cell, compare
the value, and round it again.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from warplog.core.columns import TABLES as DESCRIBED
from warplog.core.columns import Cell, Row
from warplog.core.numbers import LARGE_GFLOPS, rate_digits, short_number
from warplog.tables.conclusions import BY_UNIT, Conclusion, cells, units
from warplog.tables.conclusions import TABLES as CONCLUSIONS

MINUS = "\u2212"
NOT_KNOWN = "n/a"
# The columns that tell the rows of a table apart.
KEYS: Mapping[str, tuple[str, ...]] = {
    "measurements": ("family", "variant", "case"),
    "metrics": ("family", "variant", "case", "kernel", "launch", "metric"),
    "lines": ("family", "variant", "case", "kernel", "launch", "file", "line"),
    "variants": ("family", "variant"),
    "gpus": ("gpu",),
    "claims": ("family", "id"),
    "launches": ("family", "variant", "case"),
    "published": ("family", "variant", "case", "published_source", "published_gpu", "published_case"),
    **{kind.TABLE: kind.KEYS for kind in CONCLUSIONS},
}
# Units that the name of the quantity says: "sectors per global load 2.5", "instructions 6.6 G".
_SAID = (
    *(
        "barrier",
        "block",
        "blocks",
        "conflict",
        "inst",
        "instructions",
        "launch",
        "register",
        "sector",
        "thread",
        "warp",
    ),
    *(
        "wave",
        "wavefront",
        "request",
        "sector/request",
        "wavefront/request",
        "inst/cycle",
        "cycle/inst",
        "ratio",
        "index",
    ),
)
SHARE = "share"  # of 1, shown in percent
_SHARES = ("ratio_to_baseline", "published_ratio", "sample_share", "instruction_share", "off")
# Columns of other tables whose unit is in the column `unit` of the row.
_BY_ROW: Mapping[str, tuple[str, ...]] = {
    "metrics": ("value",),
    "published": ("value", "published"),
    "claims": ("measured",),
}
_UNITS = {kind.TABLE: units(kind) for kind in CONCLUSIONS}


def shown(value: float, unit: str) -> str:
    """Returns a number with its unit, rounded to three significant digits (times: four or five) by its unit.

    "1.29x", "308.8 µs", "3.088 ms", "79.8 %", "1755 MHz", "1.11 GB", "54.2 TFLOP/s", "285 M"; "n/a" for NaN.
    """
    if math.isnan(value):
        return NOT_KNOWN
    text = _magnitude(abs(value), unit)
    return f"{MINUS}{text}" if value < 0 and any(digit in text for digit in "123456789") else text


def _magnitude(value: float, unit: str) -> str:
    if unit == "x":
        return f"{f'{value:#.3g}'.rstrip('.')}x" if value < 1e4 else f"{short_number(value)}x"
    if unit == "us":
        if value >= 1e3:
            return f"{value / 1e3:.2f} ms" if value >= 1e4 else f"{value / 1e3:.3f} ms"
        return f"{value:.1f} µs" if value >= 100 else f"{value:.2f} µs"
    if unit == "ns" and value >= 1e4:
        return _magnitude(value / 1e3, "us")
    if unit in ("MHz", "W", "degC"):
        return f"{value:.0f} {'°C' if unit == 'degC' else unit}"
    if unit == "GFLOP/s" and value >= LARGE_GFLOPS:
        return f"{rate_digits(value / 1e3)} TFLOP/s"
    if unit.endswith("/s"):
        return f"{rate_digits(value)} {unit}"
    if unit in ("B", "byte"):
        return f"{short_number(value)}B" if value >= 1e4 else f"{value:.0f} B"
    if unit == SHARE:
        return f"{short_number(100 * value)} %"
    return short_number(value) if unit in _SAID else f"{short_number(value)} {unit}".strip()


@dataclass(frozen=True)
class Number:
    """A number with its unit and its place: the table, the values of its keys, and the column."""

    value: float
    unit: str
    place: str

    def __str__(self) -> str:
        """Returns the rounded number with its unit."""
        return shown(self.value, self.unit)

    def __html__(self) -> str:
        """Returns the same as an element that names its cell; templates insert it."""
        from markupsafe import escape

        if math.isnan(self.value):
            return NOT_KNOWN
        return f'<data value="{self.value!r}" data-cell="{escape(self.place)}">{escape(str(self))}</data>'

    def __bool__(self) -> bool:
        """Returns whether the number is known, and a limit on both sides."""
        return math.isfinite(self.value)


class Cells:
    """A row of a table whose numbers are shown with their places.

    `row.speedup` is a Number, `row.word` a text; what is missing is "".

    An unknown name is an AttributeError, so that a template with a wrong name fails.
    """

    def __init__(self, table: str, row: Row | Conclusion) -> None:
        self._table = table
        self._row: Row = cells(row) if isinstance(row, Conclusion) else row

    def __getattr__(self, name: str) -> "Number | Cell":
        """Returns a number or a text of the row."""
        try:
            value = self._row[name]
        except KeyError:
            raise AttributeError(f"{self._table} has no column {name!r}") from None
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return Number(float(value), self._unit(name), self._place(name))

    def __getitem__(self, name: str) -> "Number | Cell":
        """Returns the same as `row.name`, where a template has the name in a variable."""
        return getattr(self, name)  # type: ignore[no-any-return]

    def raw(self, name: str) -> Cell:
        """Returns a value as it is in the table."""
        return self._row[name]

    def _unit(self, name: str) -> str:
        if self._table in _UNITS:
            unit = _UNITS[self._table].get(name, "")
        else:
            unit = DESCRIBED[self._table][name].unit if self._table in DESCRIBED else ""
        if unit == BY_UNIT or name in _BY_ROW.get(self._table, ()):
            return str(self._row["unit"])
        return SHARE if name in _SHARES else unit

    def _place(self, name: str) -> str:
        keys = (str(self._row[key]) for key in KEYS[self._table])
        return "/".join(quote(part, safe="") for part in (self._table, *keys, name))


def place_of(text: str) -> tuple[str, tuple[str, ...], str]:
    """Returns table, keys and column of a place."""
    table, *keys, column = (unquote(part) for part in text.split("/"))
    return table, tuple(keys), column
