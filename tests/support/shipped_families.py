"""The families of the repository, read once."""

from pathlib import Path

from warplog.catalog.family import load

KERNELS = Path(__file__).parents[2] / "kernels"
FAMILIES = load([KERNELS])

# What the recorded campaign that serves without a GPU lacks until the next recording, as (family, variant): sources
# that were edited since, and new variants.
EDITED: set[tuple[str, str]] = set()
NEW_FAMILIES: tuple[str, ...] = ("causes",)
NEW: set[tuple[str, str]] = {
    (name, variant.name) for name in NEW_FAMILIES for variant in FAMILIES[name].variants
}
# What compute-sanitizer 2025.3 reports although no source here is at fault, see workflow/docs/recording.md.
FOUND = {
    ("epilogue", "three_passes", "initcheck"),
    ("epilogue", "one_pass", "initcheck"),
    ("reduction", "cg_block", "racecheck"),
    ("skinny_gemm", "cublas", "racecheck"),
}
