"""The caption of a figure on a page: of the sentences in its .rst file, those that apply to the family."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from warplog import figures
from warplog.figures.shared.highlight import LONG
from warplog.tables import regimes
from warplog.tables.files import as_rows
from warplog.tables.series import series
from warplog.tables.view import FigureTables

Applies = Callable[[FigureTables], bool]
_KEPT = 0.95  # of the compulsory bytes: a kernel that moves fewer leaves results in L2


def caption(source: Path, tables: FigureTables) -> str:
    """Returns the caption in an .rst file as plain text, without sentences about what the family does not have."""
    text = source.read_text(encoding="utf-8") if source.is_file() else ""
    lines = [line for line in text.splitlines() if not line.startswith("..")]
    plain = re.sub(r"``|\*([^*]+)\*", r"\1", " ".join(" ".join(lines).split()))
    sentences = re.split(r"(?<=\.) (?=[A-Z])", plain.replace("|family|", tables.family))
    left_out = [start for start, applies in CONDITIONS.get(source.stem, {}).items() if not applies(tables)]
    return " ".join(sentence for sentence in sentences if not sentence.startswith(tuple(left_out)))


def _executes(*opcodes: str) -> Applies:
    """Returns whether a profiled kernel executes one of these opcodes."""
    names = [f"inst_{opcode}" for opcode in opcodes]

    def applies(tables: FigureTables) -> bool:
        rows = tables.metrics
        return bool((rows["metric"].isin(names) & (rows["value"] > 0)).any())

    return applies


def _hands_over(tables: FigureTables) -> bool:
    return len(tables.tracks) > 0 and bool((tables.tracks["region"] == "handover").any())


def _has_long_ladder(tables: FigureTables) -> bool:
    return bool(len(tables.variants) > LONG)


def _has_lines(tables: FigureTables) -> bool:
    rows = tables.measurements
    return bool(series(dict(zip(rows["case"], rows["size"], strict=True)), tables.case))


def _has_open_marks(tables: FigureTables) -> bool:
    rows = figures.data("throughput_vs_size", tables)
    return _has_lines(tables) and bool((rows["drawn"] & rows["alone"]).any())


def _ends_early(tables: FigureTables) -> bool:
    return _has_lines(tables) and bool((tables.measurements["status"] == "unsupported").any())


def _shows_peak(tables: FigureTables) -> bool:
    rows = figures.data("throughput_vs_size", tables)
    return bool((rows["peak"] <= 4 * rows["rate"].max()).any())


def _keeps_results(tables: FigureTables) -> bool:
    """Returns whether speeds are in GB/s and a kernel moves fewer bytes than the algorithm has to."""
    rows = tables.metrics[
        (tables.metrics["metric"] == "dram_bytes") & (tables.metrics["case"] == tables.case)
    ]
    moved = rows.groupby("variant")["value"].sum()
    least = tables.variants.set_index("variant").get("bytes", moved)
    fewer = (moved < _KEPT * least.reindex(moved.index)).any()
    return tables.quantity().column == "gbytes_per_s" and bool(fewer)


def _has_baseline(tables: FigureTables) -> bool:
    return not figures.data("ladder", tables)["reference"].str.startswith("the fastest").any()


def _has_processes(tables: FigureTables) -> bool:
    return regimes.has_processes(as_rows(tables.ladder(tables.case)))


def _not(applies: Applies) -> Applies:
    return lambda tables: not applies(tables)


def _has_dashed_roof(tables: FigureTables) -> bool:
    return bool((figures.data("roofline", tables)["kind"] == "clock").any())


def _has_measured_roof(name: str = "") -> Applies:
    return lambda tables: bool(
        figures.data("roofline", tables)["label"].str.endswith(f"{name} measured".strip()).any()
    )


def _has_copies(tables: FigureTables) -> bool:
    events = tables.timeline
    return bool(((events["kind"] == "memcpy") & (events["case"] == tables.profiled_case)).any())


def _shows(*texts: str, idle: bool = False) -> Applies:
    """Returns whether the memory charts have an arrow without traffic (`idle`), or one of these texts."""

    def applies(tables: FigureTables) -> bool:
        charts = figures.module("memory_chart").charts(figures.data("memory_chart", tables))
        arrows = [arrow for chart in charts for arrow in chart.arrows]
        lines = [line for chart in charts for box in chart.boxes for line in box.lines]
        shown = " ".join([*lines, *(text for arrow in arrows for text in (arrow.above, arrow.below))])
        return (idle and any(arrow.is_idle for arrow in arrows)) or any(text in shown for text in texts)

    return applies


def _has_failures(tables: FigureTables) -> bool:
    return not tables.measurements["status"].isin(["ok", "unsupported"]).all()


def _has_outline(tables: FigureTables) -> bool:
    return bool(figures.data("ladder", tables)["percent_long"].notna().any())


def _swings(tables: FigureTables) -> bool:
    return bool(figures.module("power_trace").swings(tables.power_trace))


def _leaves_clusters_idle(tables: FigureTables) -> bool:
    return bool(figures.data("tile_schedule", tables)["clusters"].nunique() > 1)


def _stores_by_tma(tables: FigureTables) -> bool:
    return bool(tables.traced_kernels["untraced"].fillna("").str.contains("UTMASTG").any())


# By figure, how a sentence of its caption begins, and when it applies.
CONDITIONS: Mapping[str, Mapping[str, Applies]] = {
    "bank_conflicts": {"No counter covers reads by wgmma": _executes("hgmma")},
    "ladder": {
        "Percentages refer to the baseline": _has_baseline,
        "Without a baseline": _not(_has_baseline),
        "Whiskers show": _has_processes,
        "With a single process": _not(_has_processes),
        "A dashed outline": _has_outline,
        "A variant that failed": _has_failures,
    },
    "memory_chart": {
        "A grey arrow": _shows(idle=True),
        "A counter that was not recorded": _shows("n/a"),
        "Tensor cores read": _executes("hgmma"),
        "The TMA unit writes": _executes("utmaldg"),
        "Generic loads": _shows("generic loads"),
    },
    "owners": {"The trace does not see": _stores_by_tma},
    "power_trace": {"Dips come": _swings},
    "roofline": {
        "Copies by the TMA unit": _executes("utmaldg", "utmastg"),
        "A launch that also copies": _has_copies,
        "L2 has no roof": _not(_has_measured_roof("L2")),
        "A roof called measured": _has_measured_roof(),
        "Coloured are the main path": _has_long_ladder,
        "A dashed roof": _has_dashed_roof,
    },
    "swim_lanes": {
        "If blocks hand over": _hands_over,
        "Where warps are specialised": lambda tables: (
            len(tables.tracks) > 0 and bool((tables.tracks["role"] == "producer").any())
        ),
    },
    "tile_order": {"The trace does not see": _stores_by_tma},
    "tile_schedule": {"The second number": _leaves_clusters_idle},
    "throughput_vs_size": {
        "GB/s counts": _keeps_results,
        "The horizontal line": _shows_peak,
        "Open markers": _has_open_marks,
        "Coloured are the main path": _has_long_ladder,
        "A variant whose line still rises": _has_lines,
        "A line ends": _ends_early,
        "Cases that are no series": _not(_has_lines),
        "A cross marks": _has_failures,
    },
}
