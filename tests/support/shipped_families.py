"""The families of the repository, read once."""

from pathlib import Path

from warplog.catalog.family import load

KERNELS = Path(__file__).parents[2] / "kernels"
FAMILIES = load([KERNELS])
