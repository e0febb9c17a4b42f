"""Rows of the table `ceilings`: no machine measured these numbers."""

from dataclasses import replace

import pandas as pd

from warplog.tables.conclusions import NAN, Ceiling, cells, columns
from warplog.tables.files import as_frame

DRAM = Ceiling(
    "memory", "stream", "512Mi", "dram_gbytes_per_s", "reading device memory", "gbytes_per_s(stream)",
    *(4000.0, 3990.0, 4010.0), "GB/s", *(100.0, NAN), "met", "", "",
)  # fmt: skip
L2 = replace(DRAM, ceiling="l2_gbytes_per_s", about="reading L2", value=8000.0)
FP32 = replace(DRAM, family="ilp", ceiling="fp32_tflops", unit="TFLOP/s", value=60.0)


def ceilings(*rows: Ceiling) -> pd.DataFrame:
    """Returns the table of these rows, by default of all."""
    made = [cells(row) | {"gpu": "h200", "campaign": "synthetic"} for row in rows or (DRAM, L2, FP32)]
    return as_frame(made, columns(Ceiling), "ceilings")
