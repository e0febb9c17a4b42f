"""Made-up rows of the tables of traced accesses: what the addresses of known kernels give, by hand."""

from dataclasses import replace
from typing import Any

import pandas as pd

from warplog.tables.view import FigureTables

CASE = "256"


def access(
    variant: str, line: int, kind: str, array: str, requests: int, taken: int, ideal: int, **more: Any
) -> dict[str, Any]:
    """An instruction that takes so many sectors per request; without an array, wavefronts of shared memory."""
    space = "global" if array else "shared"
    column = "sectors" if array else "wavefronts"
    row = {
        "family": "transpose", "variant": variant, "case": CASE, "status": "ok", "reason": "", "launch": 0,
        "file": f"{variant}.cu", "line": line, "text": f"  line {line};", "space": space, "kind": kind, "array": array,
        "requests": requests, f"traced_{column}": requests * taken, f"{column}_ideal": requests * ideal,
        "agreement": "not_counted",
    }  # fmt: skip
    row |= {"distinct_bytes": 128 * requests} if array else {"ways": taken // ideal}
    return row | more


def kernel(variant: str, **more: Any) -> dict[str, Any]:
    """The only kernel of a launch, all of whose 64 blocks were traced."""
    row = {
        "family": "transpose", "variant": variant, "case": CASE, "launch": 0, "kernel": "k", "blocks": 64,
        "traced_blocks": 64, "untraced": "", "block_bytes": 4096, "wave_blocks": 64, "wave_bytes": 262144,
        "wave_bytes_of_blocks": 262144,
    }  # fmt: skip
    return row | more


# Each of 2048 requests moves a row of 32 floats; shared memory is 32 banks wide, so that a column lies in one bank.
ACCESSES = (
    access("naive", 23, "load", "in", 2048, 4, 4),
    access("naive", 23, "store", "out", 2048, 32, 4),
    access("smem_conflict", 26, "load", "in", 2048, 4, 4),
    access("smem_conflict", 26, "store", "", 2048, 1, 1),
    access("smem_conflict", 32, "load", "", 2048, 32, 1),
    access("smem_conflict", 32, "store", "out", 2048, 4, 4),
    access("padded", 26, "load", "in", 2048, 4, 4),
    access("padded", 26, "store", "", 2048, 1, 1),
    access("padded", 32, "load", "", 2048, 1, 1),
    access("padded", 32, "store", "out", 2048, 4, 4),
)
KERNELS = tuple(kernel(name) for name in ("naive", "smem_conflict", "padded"))


def with_traces(
    tables: FigureTables, accesses: Any = ACCESSES, kernels: Any = KERNELS, is_counted: bool = False
) -> FigureTables:
    """The tables with traces of the present sources; unless `is_counted`, without what ncu counted."""
    sources = dict(zip(tables.variants["variant"], tables.variants["source_sha256"], strict=True))
    rows = [{"source_sha256": sources.get(row["variant"], ""), **row} for row in accesses]
    metrics = tables.metrics if is_counted else tables.metrics[tables.metrics["tool"] != "ncu"]
    return replace(
        tables,
        metrics=metrics.reset_index(drop=True),
        accesses=pd.DataFrame(rows),
        traced_kernels=pd.DataFrame(list(kernels)),
    )
