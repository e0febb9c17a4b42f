"""Every available report, truncated at 200 places, is refused in one line that names the file, or gives the same rows.

A compiler log and a SASS dump do not state their number of kernels: truncated between two kernels, they give
the remaining kernels with all values.
"""

from pathlib import Path

import pytest

from captures import CAPTURES
from warplog.core.errors import WarplogError
from warplog.parsers.reports import read_any

DATA = Path(__file__).parents[2] / "data" / "parsers"
KINDS = (".ncu-rep", ".csv", ".txt", ".sqlite", ".log", ".sass")
PLACES = 200
REPORTS = [
    *sorted(path for path in DATA.iterdir() if path.name.endswith((".ncu-rep", "_sm90.log", "_sm90.txt"))),
    *sorted(path for path in CAPTURES.rglob("*") if path.suffix in KINDS),
]


def read(path):
    """Returns the rows of a report without their source, and the error ("" if there is none)."""
    try:
        return [row._replace(source="") for row in read_any(path)], ""
    except WarplogError as error:
        return None, str(error)


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.name)
def test_no_cut_passes_for_the_whole_report(report, tmp_path):
    data = report.read_bytes()
    whole, _ = read(report)
    assert whole
    cut = tmp_path / report.name
    for place in range(PLACES):
        cut.write_bytes(data[: len(data) * place // PLACES])
        rows, error = read(cut)
        if rows is None:
            assert error.startswith(str(cut))
            assert "\n" not in error
        elif report.stem.endswith("_sm90"):
            kernels = {row.kernel for row in rows}
            assert rows == [row for row in whole if row.kernel in kernels] != []
        else:
            assert rows == whole
