"""Every report at hand, cut at 200 places: each cut is refused in one line that names the file, or changes nothing.

A compiler's log and a SASS dump do not say how many kernels they hold: of these, a cut between two kernels leaves
whole kernels with all of their values.
"""

from pathlib import Path

import pytest

from captures import CAPTURES
from warplog.core.errors import WarplogError
from warplog.parsers.reports import read_any

ROOT = Path(__file__).parents[2]
KINDS = (".ncu-rep", ".csv", ".txt", ".sqlite", ".log", ".sass")
PLACES = 200
REPORTS = [
    *sorted((ROOT / "results" / "recorded").rglob("*.ncu-rep")),
    *sorted((ROOT / "tests" / "data" / "parsers").glob("*_sm90.*")),
    *sorted(path for path in CAPTURES.rglob("*") if path.suffix in KINDS),
]


def read(path):
    """Its rows without their source, or the error."""
    try:
        return [{**row, "source": ""} for row in read_any(path)], ""
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
        elif report.parent.name == "parsers":
            kernels = {row["kernel"] for row in rows}
            assert rows == [row for row in whole if row["kernel"] in kernels] != []
        else:
            assert rows == whole
