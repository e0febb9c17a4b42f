"""What the tests share: where the project is, and which of them this machine can run."""

from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]


@pytest.fixture
def project() -> Path:
    return PROJECT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips GPU tests where there is no GPU, and says why; the longest file goes first, or all would wait for it."""
    from warplog.machine import device

    items.sort(key=lambda item: item.path.name != "test_end_to_end.py")
    reason = device.why_not()
    if reason:
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason=f"no GPU: {reason}"))
