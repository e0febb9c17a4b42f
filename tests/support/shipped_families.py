"""The families of the repository, read once."""

from pathlib import Path

from warplog.catalog.family import load

KERNELS = Path(__file__).parents[2] / "kernels"
FAMILIES = load([KERNELS])

# What the recorded campaign that serves without a GPU lacks until the next recording, as (family, variant): sources
# that were edited since, and new variants.
EDITED: set[tuple[str, str]] = set()
NEW: set[tuple[str, str]] = {
    *(("precision_gemm", variant) for variant in ("wmma", "wgmma", "wgmma_raw_tf32", "cublas")),
    *(("skinny_gemm", variant) for variant in ("padded_tile", "swapped", "swapped_narrow", "gemv", "cublas")),
    *(("skinny_gemm", variant) for variant in ("split_k", "split_k_cluster")),
}
# What compute-sanitizer reports in it.
FOUND: set[tuple[str, str, str]] = set()
