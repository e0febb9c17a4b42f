"""The oracle for people: its table as text, its summary line and exit status, and the run that makes it."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from warplog import device, layout, oracle
from warplog.errors import WarplogError
from warplog.tabular import printable

_COLUMNS = ("probe", "case", "quantity", "expected", "measured", "tolerance", "unit", "verdict", "reason")
_RIGHT_ALIGNED = ("expected", "measured")
_MOST_BYTES = 16 << 20
_MOST_REASON = 60


def read(folder: Path) -> list[dict[str, Any]]:
    """The rows of the table `oracle` in a folder of tables.

    Raises:
        WarplogError: there is no such table, or it is larger than 16 MiB or not a table.
    """
    import pandas as pd

    path = folder / "oracle.csv"
    if not path.is_file():
        raise WarplogError(f"{path}: is missing; run `snakemake oracle`")
    if path.stat().st_size > _MOST_BYTES:
        raise WarplogError(f"{path}: over {_MOST_BYTES} bytes; is it the oracle's table?")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except ValueError as error:
        raise WarplogError(f"{path}: cannot be read ({' '.join(str(error).split())})") from None
    lacking = [column for column in (*_COLUMNS, "gpu", "origin", "campaign") if column not in table]
    if lacking:
        raise WarplogError(f"{path}: has no column {lacking[0]!r}; run `snakemake oracle` again")
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def show(rows: Sequence[Mapping[str, Any]], out: TextIO) -> None:
    """An aligned table, what is wrong last, and the summary line; that alone where nothing was measured."""
    if rows and all(row["verdict"] == oracle.NOT_MEASURED and not row["measured"] for row in rows):
        reasons = {str(row["reason"]) for row in rows}
        why = reasons.pop() if len(reasons) == 1 else "each row of results/tables/oracle.csv says why"
        print(f"{summary(rows)}: {why}; this needs a GPU, or a recorded campaign that holds it", file=out)
        return
    order = {oracle.RIGHT: 0, oracle.NOT_MEASURED: 1, oracle.WRONG: 2}
    shown = sorted(rows, key=lambda row: order.get(str(row["verdict"]), 3))
    cells = [list(_COLUMNS), *([_cell(row, c) for c in _COLUMNS] for row in shown)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(_COLUMNS))]
    for line in cells:
        aligned = (
            text.rjust(width) if column in _RIGHT_ALIGNED else text.ljust(width)
            for text, width, column in zip(line, widths, _COLUMNS, strict=True)
        )
        print("  ".join(aligned).rstrip(), file=out)
    print(summary(rows), file=out)


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line: how many probes are right, wrong and not measured, and where they ran."""
    count = oracle.counts(str(row["verdict"]) for row in rows)
    words = [f"{count[oracle.RIGHT]} right, {count[oracle.WRONG]} wrong"]
    if count[oracle.NOT_MEASURED]:
        words.append(f"{count[oracle.NOT_MEASURED]} not measured")
    where = f"{rows[0]['gpu']}, {rows[0]['origin']}, campaign {rows[0]['campaign']}" if rows else "no probes"
    return f"oracle: {', '.join(words)} ({where})"


def exit_status(rows: Sequence[Mapping[str, Any]]) -> int:
    """1 where a verdict is wrong, else 0: what could not be measured is no error."""
    return 1 if any(row["verdict"] == oracle.WRONG for row in rows) else 0


def run(project: Path, out: TextIO) -> int:
    """Runs `snakemake oracle`; without a GPU shows the recorded tables instead. Its exit status.

    Raises:
        WarplogError: there is no GPU and no campaign recorded an oracle.
    """
    if device.detect() is not None:
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "oracle"]
        return 1 if subprocess.run(command, cwd=project, check=False).returncode else 0
    recorded = sorted((project / layout.RECORDED).glob("*/tables/oracle.csv"))
    if not recorded:
        raise WarplogError(
            f"no GPU here ({device.why_not()}), and no campaign in {layout.RECORDED} recorded the oracle;"
            " run it on a machine with a GPU"
        )
    status = 0
    for path in recorded:
        print(f"no GPU here ({device.why_not()}): recorded in {path.parent.relative_to(project)}", file=out)
        rows = read(path.parent)
        show(rows, out)
        status = max(status, exit_status(rows))
    return status


def _cell(row: Mapping[str, Any], column: str) -> str:
    text = printable(str(row[column]))
    return text if len(text) <= _MOST_REASON else f"{text[: _MOST_REASON - 1]}…"
