"""Rows of the tables of mechanisms about steps of the small campaign: no model computed these numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from warplog.tables.conclusions import NAN, Conclusion, Forecast, Reason, UnitTime, cells, columns
from warplog.tables.files import as_frame

PREDICTED = Reason(
    "sgemm", "gmem_coalesced", "naive", "4096", "coalescing", "predicted", *(250e3, 150e3, 350e3), 251.9e3,
    "global_load_sectors_per_request,global_store_sectors_per_request",
)  # fmt: skip
LOSS = replace(
    PREDICTED, variant="smem_tiled", parent="gmem_coalesced", mechanism="barriers", predicted_us=-500.0,
    low_us=-700.0, high_us=-300.0, measured_us=-510.0, rests_on="inst_bar",
)  # fmt: skip
ACCOUNTED = replace(
    LOSS, variant="blocktile_1d", parent="smem_tiled", mechanism="load_overlap", word="accounted",
    measured_us=7952.0, rests_on="changes/long_scoreboard,instructions/text",
)  # fmt: skip
UNDECIDED = replace(
    LOSS, variant="blocktile_2d", parent="blocktile_1d", mechanism="none", word="not_in_evidence", rests_on="launches",
)  # fmt: skip
UNKNOWN = replace(
    UNDECIDED, variant="vectorized", parent="blocktile_2d",
    rests_on="l1_wavefronts,l2_requests_from_sms,ceilings/launch_us",
    **dict.fromkeys(("predicted_us", "low_us", "high_us"), NAN),
)  # fmt: skip
SMALL = replace(
    PREDICTED, variant="warptile", parent="vectorized", mechanism="none", rests_on="", least_pct=5.0,
    **dict(zip(("predicted_us", "low_us", "high_us", "measured_us"), (150.0, 110.0, 190.0, 120.0), strict=True)),
)  # fmt: skip
REASONS = (PREDICTED, LOSS, ACCOUNTED, UNDECIDED, UNKNOWN, SMALL)
UNITS = (
    UnitTime("sgemm", "gmem_coalesced", "naive", "4096", "l2", 100e3, 90e3, 7e3),
    UnitTime("sgemm", "gmem_coalesced", "naive", "4096", "l1", 260e3, 9e3, 249e3),
    UnitTime("sgemm", "gmem_coalesced", "naive", "4096", "dram", 9.0, 8.0, 1.0),
)
CONFLICTS = Forecast(
    "sgemm", "vectorized", "4096", "bank_conflicts", 4000.0, 1000.0, *(1.333, 1.2, 1.5), "issue", "vectorized.cu:76"
)  # fmt: skip
FORECASTS = (
    CONFLICTS,
    replace(CONFLICTS, mechanism="tail", speedup=1.1, low=1.05, high=NAN, line="", bound="l1"),
    replace(CONFLICTS, mechanism="barriers", speedup=1.05),
    replace(CONFLICTS, mechanism="fences", speedup=1.02),
)


def table(rows: Sequence[Conclusion], **origin: Any) -> pd.DataFrame:
    """Returns the table of these rows."""
    kind = type(rows[0])
    return as_frame([cells(row) | origin for row in rows], columns(kind), kind.TABLE)


def tables() -> dict[str, pd.DataFrame]:
    """Returns the three tables by their names."""
    kinds = (REASONS, UNITS, FORECASTS)
    return {rows[0].TABLE: table(rows, gpu="h200", campaign="synthetic") for rows in kinds}
