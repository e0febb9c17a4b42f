"""Windows Subsystem for Linux: the GPU is Windows', and so are its clocks and the permission to read its counters."""

from pathlib import Path

DEVICE = Path("/dev/dxg")
COUNTERS_REMEDY = (
    "on Windows, as an administrator: NVIDIA Control Panel, Desktop, Enable Developer Settings; then Developer,"
    " Manage GPU Performance Counters: allow access to all users"
)


def is_wsl() -> bool:
    """Returns whether the GPU is reached through Windows."""
    return DEVICE.exists()
