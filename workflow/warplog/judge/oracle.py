"""Judge measurements of kernels whose results are known in advance, and print the verdicts."""

import math
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TextIO

from warplog.analysis.quantities import Quantities
from warplog.catalog.contract import Case, Probe
from warplog.catalog.family import Family
from warplog.core import paths
from warplog.core.columns import MEASUREMENTS, Cell, Row
from warplog.core.csv_text import csv_of_table, restored
from warplog.core.errors import WarplogError
from warplog.core.formula import evaluate
from warplog.core.paths import command
from warplog.core.schema import suggest
from warplog.core.text import printable
from warplog.machine import device
from warplog.metrics import METRICS, STALL_REASONS, dominant_state, occupancy, occupancy_limiter
from warplog.records.verification import manifest
from warplog.tables.files import as_rows, read_file

RIGHT, WRONG, NOT_MEASURED = "right", "wrong", "not_measured"
_STALL, _LIMITER, _BY_FORMULA = "dominant_stall", "occupancy_limiter", "occupancy_by_formula_pct"
RESOURCES = ("warps", "registers", "blocks", "barriers", "shared_memory")
_NAMES = {_STALL: tuple(r for r in STALL_REASONS if r != "selected"), _LIMITER: RESOURCES}
_LAUNCH = ("registers_per_thread", "block_threads", "shared_bytes_per_block")
_WORD = re.compile(r"[A-Za-z_]\w*")
_FUNCTIONS = {"min", "max", "ceil", "abs"}


@dataclass(frozen=True)
class Measured:
    """A number in its unit, or a name; if it is None, `reason` states why. `remark` is shown with the verdict."""

    value: float | str | None
    unit: str = ""
    reason: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Oracle:
    """Judges probes by the numbers of one campaign on a GPU of this compute capability."""

    quantities: Quantities
    compute_capability: tuple[int, int]

    def judge(self, families: Iterable[Family]) -> Iterator[Row]:
        """Yields one row per probe, variant and case: the columns of the table `oracle` except the origin.

        Raises:
            WarplogError: a probe names a quantity, stall reason or resource that does not exist.
        """
        for family in families:
            for probe in family.probes:
                _must_exist(family, probe)
                for variant in family.variants:
                    yield from (self._row(family, probe, variant.name, case) for case in probe.cases)

    def _row(self, family: Family, probe: Probe, variant: str, name: str) -> dict[str, Cell]:
        case = family.case(name)
        measured = self._measured(family.name, variant, case, probe)
        expected = self._expected(family, variant, case, probe)
        row: dict[str, Cell] = {
            "probe": probe.name,
            "family": family.name,
            "variant": variant,
            "case": name,
            "quantity": f"{probe.quantity} - {probe.minus}" if probe.minus else probe.quantity,
            "expected": _text(probe.expected if probe.quantity in _NAMES else expected.value),
            "measured": _text(measured.value),
            "tolerance": _tolerance(probe, measured.unit),
            "unit": measured.unit,
        }
        missing = measured if measured.value is None else expected
        if missing.value is None:
            return row | {"verdict": NOT_MEASURED, "reason": missing.reason}
        return row | _verdict(probe, expected.value, measured.value) | {"reason": measured.remark}

    def _measured(self, family: str, variant: str, case: Case, probe: Probe) -> Measured:
        here = self._find(family, variant, case.name, probe.quantity)
        if not probe.minus or not isinstance(here.value, float):
            return here
        there = self._find(family, variant, probe.minus, probe.quantity)
        if not isinstance(there.value, float):
            return there
        return Measured(here.value - there.value, here.unit)

    def _expected(self, family: Family, variant: str, case: Case, probe: Probe) -> Measured:
        if probe.quantity == _STALL:  # a GPU without this reason cannot show it
            share = self._find(family.name, variant, case.name, f"stall_{probe.expected}_pct")
            return Measured(None, reason=share.reason) if share.value is None else Measured(probe.expected)
        if probe.quantity in _NAMES:
            return Measured(probe.expected)
        values = dict(case.values)
        for name in set(_WORD.findall(str(probe.expected))) - _FUNCTIONS - set(values):
            quantity = self._find(family.name, variant, case.name, name)
            if not isinstance(quantity.value, float):
                return quantity
            values[name] = quantity.value
        where = f"{family.file}: probe {probe.name!r} at {case.name}"
        return Measured(float(evaluate(probe.expected, values, where)))

    def _find(self, family: str, variant: str, case: str, name: str) -> Measured:
        key = (family, variant, case)
        if name == _STALL:
            values, reason = self._values(key, [f"stall_{r}_pct" for r in STALL_REASONS])
            longest = dominant_state(values)  # the probes also cover not_selected
            share = values.get(f"stall_{longest}_pct", math.nan)
            return Measured(longest, reason=reason, remark=f"{share:.0f} % of a warp's cycles")
        if name == _LIMITER:
            values, reason = self._values(key, [f"occupancy_limit_{r}_blocks" for r in RESOURCES])
            limits = ", ".join(occupancy_limiter(values))
            return Measured(limits or None, reason=reason, remark=self._lift(key))
        if name == _BY_FORMULA:
            return self._by_formula(key)
        quantity = self.quantities.find(family, variant, case, name)
        return Measured(
            None if math.isnan(quantity.value) else quantity.value, quantity.unit, quantity.reason
        )

    def _values(self, key: tuple[str, str, str], names: Iterable[str]) -> tuple[dict[str, float], str]:
        """Returns the metrics of a launch that have a value, and the reason if there are none."""
        metrics = {name: self.quantities.find(*key, name) for name in names}
        values = {name: f.value for name, f in metrics.items() if not math.isnan(f.value)}
        return values, next(
            (f.reason for f in metrics.values() if f.reason), "all of these counters are zero"
        )

    def _launch(self, key: tuple[str, str, str]) -> tuple[int, int, int] | str:
        """Returns registers per thread, threads per block and shared bytes per block, or why they are missing.

        They are ncu's values; the shared memory that the driver reserves per block is subtracted.
        """
        metrics = [self.quantities.find(*key, name) for name in _LAUNCH]
        if lacking := next((f.reason for f in metrics if math.isnan(f.value)), ""):
            return lacking
        registers, threads, shared = (int(f.value) for f in metrics)
        limits = occupancy.LIMITS.get(self.compute_capability)
        return registers, threads, max(shared - (limits.reserved_shared_bytes if limits else 0), 0)

    def _by_formula(self, key: tuple[str, str, str]) -> Measured:
        launch = self._launch(key)
        if isinstance(launch, str):
            return Measured(None, reason=launch)
        try:
            limits = occupancy.theoretical(*launch, self.compute_capability)
        except WarplogError as error:
            return Measured(None, reason=str(error))
        return Measured(limits.occupancy_pct, "%")

    def _lift(self, key: tuple[str, str, str]) -> str:
        launch = self._launch(key)
        if isinstance(launch, str) or self.compute_capability not in occupancy.LIMITS:
            return ""
        return occupancy.lift(*launch, self.compute_capability)


def _must_exist(family: Family, probe: Probe) -> None:
    numbers = [name for name, column in MEASUREMENTS.items() if column.kind in ("int", "float")]
    quantities = [*numbers, *METRICS, *_NAMES, _BY_FORMULA]
    if probe.quantity.removeprefix("total_") not in quantities:
        hint = suggest(probe.quantity, quantities)
        raise WarplogError(f"{family.file}: probe {probe.name!r}: no quantity {probe.quantity!r}; {hint}")
    names = _NAMES.get(probe.quantity)
    if names is not None and probe.expected not in names:
        hint = suggest(str(probe.expected), names)
        raise WarplogError(
            f"{family.file}: probe {probe.name!r}: {probe.quantity} {probe.expected!r}; {hint}"
        )


def _verdict(probe: Probe, expected: float | str | None, measured: float | str | None) -> dict[str, Cell]:
    if not isinstance(expected, float) or not isinstance(measured, float):
        right = str(expected) in str(measured).split(", ")  # lists all resources with the lowest limit
        return {"deviation": None, "verdict": RIGHT if right else WRONG}
    deviation = measured - expected
    allowed = probe.relative * abs(expected) + probe.absolute
    right = deviation >= -allowed if probe.at_least else abs(deviation) <= allowed
    return {"deviation": deviation, "verdict": RIGHT if right else WRONG}


def _tolerance(probe: Probe, unit: str) -> str:
    if probe.at_least:
        return "at least"
    parts = [f"{100 * probe.relative:g} %"] if probe.relative else []
    parts += [f"{probe.absolute:g} {'points' if unit == '%' else unit}".strip()] if probe.absolute else []
    return " + ".join(parts) or "exact"


def _text(value: float | str | None) -> str:
    return f"{value:.12g}" if isinstance(value, float) else value or ""


def counts(verdicts: Iterable[str]) -> Mapping[str, int]:
    """Returns the number of rows that are right, wrong and not measured."""
    listed = list(verdicts)
    return {verdict: listed.count(verdict) for verdict in (RIGHT, WRONG, NOT_MEASURED)}


_COLUMNS = ("probe", "case", "quantity", "expected", "measured", "tolerance", "unit", "verdict", "reason")
_RIGHT_ALIGNED = ("expected", "measured")
_MOST_BYTES = 16 << 20
_MOST_REASON = 60


def read_verdicts(folder: Path) -> list[dict[str, Cell]]:
    """Returns the rows of the table `oracle` in a folder of tables.

    Raises:
        WarplogError: the table is missing, larger than 16 MiB, or not a table.
    """
    import pandas as pd

    path, packed = folder / "oracle.csv", folder / "oracle.parquet"
    if not path.is_file() and packed.is_file():  # a recorded campaign
        text = StringIO(csv_of_table(read_file(packed)))
        return as_rows(restored(pd.read_csv(text, dtype=str, keep_default_na=False)))
    if not path.is_file():
        raise WarplogError(f"{path}: is missing; run `{command('oracle')}`")
    if path.stat().st_size > _MOST_BYTES:
        raise WarplogError(f"{path}: larger than {_MOST_BYTES >> 20} MiB, so not the table of the oracle")
    try:
        table = restored(pd.read_csv(path, dtype=str, keep_default_na=False))
    except ValueError as error:
        raise WarplogError(f"{path}: not readable as CSV ({' '.join(str(error).split())})") from None
    lacking = [column for column in (*_COLUMNS, "gpu", "origin", "campaign") if column not in table]
    if lacking:
        raise WarplogError(f"{path}: has no column {lacking[0]!r}; run `{command('oracle')}` again")
    return as_rows(table)


def show_verdicts(rows: Sequence[Row], out: TextIO) -> None:
    """Prints a table, wrong rows last, and the summary; only the summary if nothing was measured."""
    if rows and all(row["verdict"] == NOT_MEASURED and not row["measured"] for row in rows):
        reasons = {str(row["reason"]) for row in rows}
        why = reasons.pop() if len(reasons) == 1 else "the reasons are in results/tables/oracle.csv"
        print(
            f"{summary(rows)}: {printable(why)}; the oracle needs a GPU, or a recorded campaign that holds it",
            file=out,
        )
        return
    order = {RIGHT: 0, NOT_MEASURED: 1, WRONG: 2}
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


def summary(rows: Sequence[Row]) -> str:
    """Returns one line: how many probes are right, wrong and not measured, and where they ran."""
    count = counts(str(row["verdict"]) for row in rows)
    words = [f"{count[RIGHT]} right, {count[WRONG]} wrong"]
    if count[NOT_MEASURED]:
        words.append(f"{count[NOT_MEASURED]} not measured")
    where = f"{rows[0]['gpu']}, {rows[0]['origin']}, campaign {rows[0]['campaign']}" if rows else "no probes"
    return f"oracle: {', '.join(words)} ({where})"


def exit_status(rows: Sequence[Row]) -> int:
    """Returns 1 if a verdict is wrong, else 0; a probe that could not be measured is not an error."""
    return 1 if any(row["verdict"] == WRONG for row in rows) else 0


def run_oracle(project: Path, out: TextIO) -> int:
    """Runs `snakemake oracle` and returns its exit status; without a GPU prints the recorded tables instead.

    Raises:
        WarplogError: the project has no oracle; or there is no GPU, and no recorded campaign holds the oracle or one
            is not as its manifest says.
    """
    if device.detect() is not None:
        if not (project / "kernels" / "oracle").is_dir():
            raise WarplogError(
                f"{project}/kernels/oracle: is missing; run it in a checkout of warplog, which has it"
            )
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "oracle"]
        return 1 if subprocess.run(command, cwd=project, check=False).returncode else 0
    recorded = sorted((project / paths.RECORDED).glob("[!.]*/tables/oracle.parquet"))
    if not recorded:
        raise WarplogError(
            f"no GPU found ({device.why_not()}), and no campaign in {paths.RECORDED} holds the oracle;"
            " run it on a machine with a GPU"
        )
    status = 0
    for path in recorded:
        manifest.check(path.parents[1])
        print(f"no GPU found ({device.why_not()}): recorded in {path.parent.relative_to(project)}", file=out)
        rows = read_verdicts(path.parent)
        show_verdicts(rows, out)
        status = max(status, exit_status(rows))
    return status


def _cell(row: Row, column: str) -> str:
    text = printable(str(row[column]))
    return text if len(text) <= _MOST_REASON else f"{text[: _MOST_REASON - 1]}…"
