"""Small pages for tests in the formats of ncu and nsys: CSV with quotes everywhere, tables with dashes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st

from warplog.core.errors import WarplogError
from warplog.parsers.reports import read_any

FIXED = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream")
SHAPE = ("Block Size", "Grid Size", "Device", "CC")
DETAILS = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
RULES = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
SPEED = "GPU Speed Of Light Throughput"
LAST = {
    SPEED: "Compute (SM) Throughput",
    "Memory Workload Analysis": "Mem Pipes Busy",
    "Launch Statistics": "Waves Per SM",
    "Scheduler Statistics": "Eligible Warps Per Scheduler",
    "Occupancy": "Achieved Active Warps Per SM",
}
Value = tuple[str, str, str, str]


def csv_line(cells: Sequence[str]) -> str:
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"


def _about(number: int, kernel: str, cc: str) -> list[str]:
    return [str(number), "77", "app", "127.0.0.1", kernel, "1", "7", "(256, 1, 1)", "(8, 4, 1)", "0", cc]


def raw_page(
    launches: Sequence[tuple[str, Mapping[str, str]]], units: Mapping[str, str], cc: str = "9.0"
) -> str:
    """Returns a raw page; launches are (kernel, printed value by counter)."""
    names = list(dict.fromkeys(name for _, counters in launches for name in counters))
    fixed = (*FIXED, *SHAPE)
    lines = [csv_line((*fixed, *names)), csv_line(["" for _ in fixed] + [units.get(n, "") for n in names])]
    for number, (kernel, counters) in enumerate(launches):
        lines.append(csv_line(_about(number, kernel, cc) + [counters.get(name, "") for name in names]))
    return "".join(lines)


def details_page(launches: Sequence[tuple[str, Sequence[Value]]], cc: str = "9.0", rule: bool = True) -> str:
    """Returns a details page; launches are (kernel, rows of section, label, unit and value).

    With `rule`, a rule follows each launch. The last section gets the row that ends it, without a value, as ncu
    prints metrics that a chip does not count.
    """
    lines = [csv_line((*FIXED, *SHAPE, *DETAILS, *(RULES if rule else ())))]
    for number, (kernel, values) in enumerate(launches):
        about = _about(number, kernel, cc)
        section = values[-1][0] if values else ""
        for value in (*values, *([(section, LAST[section], "%", "")] if section in LAST else [])):
            lines.append(csv_line(about + list(value)).replace("\n", ",\n" if rule else "\n"))
        if rule:
            said = 'This "kernel" is limited,\nsomehow.'
            lines.append(csv_line([*about, SPEED, "", "", "", "SOLBottleneck", "OPT", said, "global", "9.5"]))
    return "".join(lines)


def text_page(launches: Sequence[tuple[str, Sequence[Value]]], cc: str = "9.0", titled: bool = True) -> str:
    """Returns the same as terminal output of ncu; without `titled`, in the format used before 2022."""
    lines = ["[77] app@127.0.0.1"]
    ruler = "    " + " ".join(("-" * 40, "-" * 16, "-" * 20))
    for kernel, values in launches:
        if titled:
            lines.append(f"  {kernel} (8, 4, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC {cc}")
        else:
            lines.append(f"  {kernel}, 2020-Nov-03 10:11:12, Context 1, Stream 7")
        for section in dict.fromkeys(value[0] for value in values):
            lines += [f"    Section: {section}", ruler]
            if titled:
                lines += [f"    {'Metric Name':<40} {'Metric Unit':>16} {'Metric Value':>20}", ruler]
            lines += [
                f"    {name:<40} {unit:>16} {value:>20}"
                for in_, name, unit, value in values
                if in_ == section
            ]
            lines += [ruler, "    OPT   Some advice, 5.0% of it, on several", "          lines."]
    return "\n".join(lines) + "\n"


def refused(path: Path, content: bytes) -> bool:
    """Returns whether reading this content raises an error, which must be one line; otherwise it must have rows."""
    path.write_bytes(content)
    try:
        return not read_any(path) and pytest.fail("nothing was read")
    except WarplogError as error:
        return len(str(error).splitlines()) == 1 or pytest.fail(str(error))


def damaged(page: str, data: st.DataObject, letters: bytes) -> bytes:
    """Returns the page with up to five bytes replaced."""
    content = bytearray(page.encode())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.sampled_from(letters))
    return bytes(content)
