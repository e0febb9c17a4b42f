"""The families of the repository, read once."""

from pathlib import Path

from warplog.catalog.family import load

KERNELS = Path(__file__).parents[2] / "kernels"
FAMILIES = load([KERNELS])

# What the recorded campaign that serves without a GPU lacks until the next recording, as (family, variant): sources
# that were edited since, and new variants.
EDITED: set[tuple[str, str]] = set()
NEW: set[tuple[str, str]] = {
    ("costs", variant)
    for variant in (
        *("nothing", "few_blocks", "launches", "barrier", "mbarrier", "mbarrier_all_lanes"),
        *("fence", "shared_add", "global_add", "global_add_float"),
    )
}
# What compute-sanitizer reports in it.
FOUND: set[tuple[str, str, str]] = set()
