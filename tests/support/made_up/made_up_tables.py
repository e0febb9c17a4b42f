"""Made-up tables, row by row, in the columns of results/tables: no machine measured these numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from warplog.core.columns import TABLES
from warplog.tables.files import as_frame
from warplog.tables.rows import add_ratios
from warplog.tables.view import FigureTables

GPU = {"gpu": "h200", "gpu_name": "NVIDIA H200"}
PEAKS = {
    **GPU, "arch": "sm_90", "sms": 132, "fp32_tflops_peak": 66.9, "dram_gbytes_per_s_peak": 4800.0,
    "max_sm_mhz": 1980.0, "source": "datasheet, at 1980 MHz",
}  # fmt: skip
WHEN = "2026-11-20T03:10:00Z"


@dataclass
class MadeUpTables:
    """The rows of each table, of one GPU and one campaign; a method adds what one record would."""

    origin: str = "recorded"
    campaign: str = "synthetic"
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in TABLES})

    @property
    def mark(self) -> dict[str, str]:
        return {**GPU, "origin": self.origin, "campaign": self.campaign}

    def variant(self, family: str, name: str, order: int, rungs: int, case: str, **facts: Any) -> None:
        """A rung of a ladder with the headline case `case`; `facts` are further columns."""
        row = {
            "family": family, "variant": name, "order": order, "rungs": rungs, "parent": "",
            "idea": f"the idea of {name}", "credit": "", "is_baseline": False, "headline_case": case,
            "profile_cases": case, "parameters": "{}", "registers_per_thread": 64, "static_shared_bytes": 0,
            "spill_bytes": 0, "source_sha256": "0" * 64, "size_label": "M = N = K (elements)",
        }  # fmt: skip
        self.rows["variants"].append({**row, **facts, **self.mark})

    def measured(
        self, family: str, name: str, case: str, size: int, us: float, flops: float, moved: float,
        **facts: Any,
    ) -> None:  # fmt: skip
        """A case with a median of `us` microseconds; without any number where `facts` has a bad status."""
        spread = 0.002 + 0.02 / np.log2(max(size, 2))
        numbers = {
            "median_us": us, "q1_us": us * (1 - spread), "q3_us": us * (1 + 2 * spread), "min_us": us * 0.98,
            "max_us": us * 1.1, "mean_us": us * 1.001, "samples": 40, "rel_spread": 3 * spread,
            "hot_us": us * 0.98, "hot_rel_spread": 0.002, "empty_us": 1.28, "sm_mhz": 1965.0 + len(name) % 16,
            "power_w": 520.0, "temperature_c": 48.0, "gflops": flops / us / 1e3,
            "gbytes_per_s": moved / us / 1e3, "max_error_over_tolerance": 0.2, "ncu_us": us,
        }  # fmt: skip
        row = {
            "family": family, "variant": name, "case": case, "size": size, "status": "ok", "reason": "",
            "remarks": "", "own_limits": "", "throttle_reasons": "", "agreement": "ok", "agreement_notes": "",
            "measured_at": WHEN, "source_sha256": "0" * 64,
            "baseline": "", "ratio_to_baseline": np.nan, "ratio_q1": np.nan, "ratio_q3": np.nan,
            **facts, **self.mark,
        }  # fmt: skip
        numbers = numbers if row["status"] == "ok" else dict.fromkeys(numbers, np.nan)
        self.rows["measurements"].append(row | numbers)

    def counted(
        self, family: str, name: str, case: str, kernel: str, launch: int, values: Mapping[str, float],
        **facts: Any,
    ) -> None:  # fmt: skip
        """The metrics of one kernel of a launch, by ncu unless `facts` names another tool."""
        for metric, value in values.items():
            row = {
                "family": family, "variant": name, "case": case, "kernel": kernel, "launch": launch,
                "metric": metric, "value": float(value), "unit": "", "reason": "", "tool": "ncu",
                "status": "missing" if np.isnan(value) else "ok", "tool_version": "2025.3",
            }  # fmt: skip
            self.rows["metrics"].append({**row, **facts, **self.mark})

    def event(
        self, family: str, name: str, case: str, what: str, stream: int, start_us: float, us: float,
        **facts: Any,
    ) -> None:  # fmt: skip
        """A kernel, or a copy (`what` is then its direction), on the timeline."""
        row = {
            "family": family, "variant": name, "case": case, "name": what, "stream": stream,
            "kind": "memcpy" if "-to-" in what else "kernel", "start_us": start_us, "duration_us": us,
            "launch": 0,
        }  # fmt: skip
        self.rows["timeline"].append({**row, **facts, **self.mark})

    def tables(self, **baselines: str) -> FigureTables:
        """The tables as figures read them; `baselines` are those of the families that have one."""
        for family, baseline in baselines.items():
            add_ratios([row for row in self.rows["measurements"] if row["family"] == family], baseline)
        frames = {
            name: pd.DataFrame(self.rows[name], columns=None if self.rows[name] else list(TABLES[name]))
            for name in ("measurements", "metrics", "timeline", "variants")
        }
        trace = pd.DataFrame(self.rows["power_trace"])
        return FigureTables(**frames, gpus=pd.DataFrame([PEAKS]), power_trace=trace)


def write(tables: FigureTables, folder: Path, suffix: str = "parquet") -> list[Path]:
    """Writes the tables with the documented columns and types, as the workflow does; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in TABLES.items():
        rows = getattr(tables, name, pd.DataFrame()).to_dict("records")
        rows = [
            {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()} for row in rows
        ]
        frame = as_frame(rows, columns, name)
        path = folder / f"{name}.{suffix}"
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path, index=False)
    return [folder / f"{name}.{suffix}" for name in TABLES]
