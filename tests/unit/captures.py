"""Reports that others captured on many GPUs: in a folder beside the project, where somebody keeps them there."""

from pathlib import Path

import pytest

CAPTURES = Path(__file__).parents[3] / "shared" / "captures"
needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures here")


def captured(kind: str) -> list[Path]:
    """The captures whose names end so; none where there are no captures."""
    return sorted(CAPTURES.glob(f"*/*{kind}"))
