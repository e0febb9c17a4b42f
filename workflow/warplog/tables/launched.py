"""The kernel that a variant launched, and its resources: the longest one of a launch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from warplog.catalog.family import Family
from warplog.core.columns import Row
from warplog.metrics.kernels import compiled_kernel, longest_kernel
from warplog.records.build import KernelCode
from warplog.records.extract import Extract

if TYPE_CHECKING:
    import pandas as pd


def launched_columns(family: Family, kernels: Sequence[KernelCode], extract: Extract | None) -> Row:
    """Returns the columns of the table `variants` about the kernel that was launched.

    Its name comes from the capture of the headline case, else of the last profiled case that has one. Before there is a
    capture, it is the kernel with the most instructions in the machine code.

    Args:
        kernels: those of the build.
        extract: None without one.
    """
    name, registers = _captured(family, extract) if extract else ("", None)
    kernel = compiled_kernel(kernels, name, registers)
    if kernel is None:
        return {"kernel": name}
    stored, loaded = kernel.spill_store_bytes, kernel.spill_load_bytes
    return {
        "kernel": name or kernel.kernel,
        "registers_per_thread": kernel.registers_per_thread,
        "static_shared_bytes": kernel.static_shared_bytes,
        "spill_bytes": None if stored is None or loaded is None else stored + loaded,
    }


def spilled(metrics: "pd.DataFrame", total: float) -> tuple[int, int] | None:
    """Returns the bytes per thread that the launched kernel of a variant spills: stored and loaded; None if unknown.

    `metrics` are the variant's rows of the table `metrics`; `total` is its `spill_bytes`, which tells the launched
    kernel from the others of the build.
    """
    rows = metrics[
        metrics["metric"].isin(["spill_store_bytes", "spill_load_bytes"]) & metrics["value"].notna()
    ]
    for _, own in rows.groupby("kernel"):
        values = dict(zip(own["metric"], own["value"], strict=True))
        spills = tuple(int(values.get(f"spill_{kind}_bytes", 0)) for kind in ("store", "load"))
        if sum(spills) == total:
            return spills[0], spills[1]
    return None


def _captured(family: Family, extract: Extract) -> tuple[str, float | None]:
    """Returns the name of the longest kernel and its registers per thread; "" and None without a capture.

    nsys also times copies, which are no kernels.
    """
    traced = {kernel.kernel for kernel in extract.kernels}
    for tool in ("ncu", "nsys"):
        rows = [row for row in extract.rows if row.tool == tool and row.kernel]
        of_kernels = [row for row in rows if tool == "ncu" or row.kernel in traced]
        captured = {row.case for row in of_kernels}
        if cases := [case for case in family.profile_cases if case in captured]:
            case = family.headline_case if family.headline_case in cases else cases[-1]
            own = [row for row in of_kernels if row.case == case]
            longest = longest_kernel(map(asdict, own))
            values = {
                (row.kernel, row.launch): row.value for row in own if row.metric == "registers_per_thread"
            }
            return (longest[0], values.get(longest)) if longest else ("", None)
    return "", None
