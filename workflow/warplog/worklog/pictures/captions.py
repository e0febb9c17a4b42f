"""The caption of a figure on a page: of the sentences in its .rst file, those that apply to the family."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from warplog.plotting.highlight import MOST
from warplog.tables.series import series
from warplog.tables.view import FigureTables

Applies = Callable[[FigureTables], bool]


def caption(source: Path, tables: FigureTables) -> str:
    """Returns the caption in an .rst file as plain text, without sentences about what the family does not have."""
    text = source.read_text(encoding="utf-8") if source.is_file() else ""
    lines = [line for line in text.splitlines() if not line.startswith("..")]
    plain = re.sub(r"``|\*([^*]+)\*", r"\1", " ".join(" ".join(lines).split()))
    sentences = re.split(r"(?<=\.) (?=[A-Z])", plain.replace("|family|", tables.family))
    left_out = [start for start, applies in CONDITIONS.get(source.stem, {}).items() if not applies(tables)]
    return " ".join(one for one in sentences if not one.startswith(tuple(left_out)))


def _executes(*opcodes: str) -> Applies:
    """Returns whether a profiled kernel executes one of these opcodes."""
    names = [f"inst_{opcode}" for opcode in opcodes]

    def applies(tables: FigureTables) -> bool:
        rows = tables.metrics
        return bool((rows["metric"].isin(names) & (rows["value"] > 0)).any())

    return applies


def _has_region(name: str) -> Applies:
    return lambda tables: bool((tables.tracks["region"] == name).any()) if len(tables.tracks) else False


def _has_long_ladder(tables: FigureTables) -> bool:
    return bool(len(tables.variants) > MOST)


def _joined(tables: FigureTables) -> set[str]:
    """Returns the cases that a line joins."""
    rows = tables.measurements
    return set(series(dict(zip(rows["case"], rows["size"], strict=True)), tables.case))


def _has_lines(tables: FigureTables) -> bool:
    return bool(_joined(tables))


def _has_cases_outside(tables: FigureTables) -> bool:
    joined = _joined(tables)
    return bool(joined) and bool(set(tables.measurements["case"]) - joined)


def _has_failures(tables: FigureTables) -> bool:
    return not tables.measurements["status"].isin(["ok", "unsupported"]).all()


def _has_sustained(tables: FigureTables) -> bool:
    return "sustained_us" in tables.measurements and bool(tables.measurements["sustained_us"].notna().any())


# By figure, how a sentence of its caption begins, and when it applies.
CONDITIONS: Mapping[str, Mapping[str, Applies]] = {
    "bank_conflicts": {"A kernel whose reads by wgmma": _executes("hgmma")},
    "ladder": {"A dashed outline": _has_sustained, "A variant that failed": _has_failures},
    "memory_chart": {"Tensor cores that read": _executes("hgmma", "utmaldg")},
    "roofline": {"In a long ladder": _has_long_ladder},
    "swim_lanes": {
        "If blocks hand over": _has_region("handover"),
        "Where warps are specialised": lambda tables: (
            len(tables.tracks) > 0 and bool((tables.tracks["role"] == "producer").any())
        ),
    },
    "throughput_vs_size": {
        "Open markers": _has_cases_outside,
        "In a long ladder": _has_long_ladder,
        "A line that still rises": _has_lines,
        "A line ends": _has_lines,
        "Shapes that have no order": lambda tables: not _has_lines(tables),
        "A cross marks": _has_failures,
    },
}
