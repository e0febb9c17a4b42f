"""The order in which families are introduced."""

from pathlib import Path

import pytest

from warplog.catalog import family as catalog
from warplog.catalog.order import introductions, order_files
from warplog.core.errors import WarplogError

KERNELS = Path(__file__).parents[3] / "kernels"


def test_every_shipped_family_is_introduced_and_each_only_once() -> None:
    shipped = [
        name for name, family in catalog.load([KERNELS]).items() if not family.draft and not family.of_oracle
    ]
    introduced = introductions(order_files([KERNELS]), shipped)
    assert sorted(introduced) == sorted(shipped)
    assert all(introduced.values())
    assert next(iter(introduced)) == "vector_add"


def test_families_that_no_file_names_follow_and_those_that_do_not_run_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text("scan: blocks\nsgemm: tiles\n")
    files = order_files([tmp_path, tmp_path / "none"])
    assert introductions(files, ["mine", "sgemm"]) == {"sgemm": "tiles", "mine": ""}
    assert list(introductions(files, ["mine", "sgemm"])) == ["sgemm", "mine"]


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text("- scan\n")
    with pytest.raises(WarplogError, match=r"order\.yaml"):
        introductions(order_files([tmp_path]), [])
