"""The configuration: what is shipped changes no default, its page follows from it, and errors name the key."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct

from warplog.cli import main
from warplog.core import schema
from warplog.core.errors import WarplogError
from warplog.records import door
from warplog.records.config import Config


def test_the_shipped_file_changes_no_default(project: Path) -> None:
    shipped = schema.load_yaml(project / "config" / "config.yaml")
    assert door.decode(shipped, Config, "config/config.yaml") == Config()


def test_a_section_that_is_given_partly_is_completed() -> None:
    given = door.decode({"time": {"processes": 5}}, Config, "config")
    assert (given.time.processes, given.time.max_samples) == (5, Config().time.max_samples)
    assert given.check == Config().check


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"famlies": "all"}, "did you mean 'families'?"),
        ({"time": {"min_sample": 3}}, "time: unknown key 'min_sample'; did you mean 'min_samples'?"),
        ({"time": {"processes": "x"}}, "config: time.processes: expected a whole number, got 'x'"),
        ({"mode": "alive"}, "mode: 'alive' is not one of auto, live, recorded"),
        ({"check": {"rounds": 0}}, "check.rounds: 0 is less than the minimum of 1"),
        ({"recorded": "../secrets"}, "recorded: '../secrets': expected up to 64 small letters, digits and -"),
        ({"sanitize": {"tools": ["memcheck", "memcheck"]}}, "sanitize.tools: "),
        ({"gpu": [0, 0]}, "gpu: "),
        ({"figures": {"width_in": None}}, "figures.width_in: expected a number, got no value"),
    ],
)
def test_what_does_not_fit_is_named(config: dict[str, object], words: str) -> None:
    with pytest.raises(WarplogError) as error:
        door.decode(config, Config, "config")
    assert words in str(error.value)


def test_the_readme_has_the_table_of_the_keys(project: Path, tmp_path: Path) -> None:
    """After a change to Config: `uv run warplog schema config --into config/README.md`."""
    readme = project / "config" / "README.md"
    copy = tmp_path / "README.md"
    shutil.copy(readme, copy)
    assert main.main(["schema", "config", "--into", str(copy)]) == 0
    assert copy.read_text() == readme.read_text()
    rows = re.findall(r"^\| `([\w.]+)` \| (?:`(.*)`)? ?\| (.+) \|$", readme.read_text(), re.MULTILINE)
    defaults: dict[str, Any] = {}
    for name, default, _ in rows:
        section, _, key = name.rpartition(".")
        within = defaults.setdefault(section, {}) if section else defaults
        if default:
            within[key] = yaml.safe_load(default)
    assert door.decode(defaults, Config, "config/README.md") == Config()
    assert [name for name, *_ in rows] == list(keys(Config()))


def keys(values: Struct, section: str = "") -> Iterator[str]:
    for name in values.__struct_fields__:
        value = getattr(values, name)
        yield from keys(value, f"{name}.") if isinstance(value, Struct) else [section + name]
