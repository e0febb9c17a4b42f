"""The configuration: its defaults are those that are shipped, and an error names the key and what was expected."""

import json
from pathlib import Path

import pytest
from msgspec import Struct

from warplog.core import schema
from warplog.core.errors import WarplogError
from warplog.records import door
from warplog.records.config import Config


def test_the_shipped_file_holds_the_defaults(project: Path) -> None:
    assert schema.load_yaml(project / "config" / "config.yaml") == json.loads(door.as_json(Config()))


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


def test_the_readme_describes_every_key(project: Path) -> None:
    text = (project / "config" / "README.md").read_text()
    for key in Config.__struct_fields__:
        section = getattr(Config(), key)
        names = (
            [f"{key}.{field}" for field in section.__struct_fields__]
            if isinstance(section, Struct)
            else [key]
        )
        for name in names:
            assert f"`{name}`" in text
