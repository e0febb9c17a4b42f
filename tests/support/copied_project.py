"""Copies of the project for tests that run its workflow."""

import shutil
from collections.abc import Collection
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def copy_project(place: Path, *more: str, families: Collection[str] | None = None) -> Path:
    """Copies the workflow, kernels and settings to `place`, with compiled modules; all families, or those named."""
    kernels = [f"kernels/{name}" for name in (*families, "include")] if families is not None else ["kernels"]
    for name in ("workflow", *kernels, "config", "profiles", *more):
        # A module that is being compiled has a temporary name.
        shutil.copytree(PROJECT / name, place / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    shutil.copy(PROJECT / "Snakefile", place)
    return place
