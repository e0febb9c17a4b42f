"""The server that performs tasks under faults, once per process, and the choice of the long runs."""

import shutil

import pytest
from faulty import Faults


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips the long runs unless `-m faults` asks for them."""
    if "faults" not in config.option.markexpr:
        for item in items:
            if item.get_closest_marker("faults"):
                item.add_marker(pytest.mark.skip(reason="takes minutes; run `pytest -m faults -n 0`"))


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("cc: not found")
    with Faults(tmp_path_factory.mktemp("faults") / "server") as server:
        yield server
