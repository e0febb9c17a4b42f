"""Reports that others captured on many GPUs: in the folder that the variable WARPLOG_CAPTURES names, if it does."""

import os
from pathlib import Path

import pytest

_NOWHERE = Path(__file__) / "missing"  # below a file, where nobody can make a folder
CAPTURES = Path(os.environ.get("WARPLOG_CAPTURES") or _NOWHERE)
needs_captures = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="WARPLOG_CAPTURES names no folder of reports"
)


def captured(kind: str) -> list[Path]:
    """The captures whose names end so; none where there are no captures."""
    return sorted(CAPTURES.glob(f"*/*{kind}"))
