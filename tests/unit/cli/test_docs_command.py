"""`warplog docs`, `schema` and `help`, and what `run` hands to Snakemake."""

import argparse
import json
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from warplog.cli import documents, main, running

PROJECT = Path(__file__).parents[3]
PAGES = [*sorted((PROJECT / "workflow" / "docs").glob("*.md")), PROJECT / "config" / "README.md"]


def test_without_a_page_all_pages_are_listed_with_their_titles(capsys):
    assert main.main(["docs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == {"readme", "config", *(path.stem for path in PAGES[:-1])}
    assert any(line.split(maxsplit=1) == ["own-kernels", "Bring your own kernels"] for line in lines)


def test_a_page_is_printed_as_it_is(capsys):
    assert main.main(["docs", "reading"]) == 0
    assert capsys.readouterr().out.strip() == (PROJECT / "workflow/docs/reading.md").read_text().strip()


def test_a_misspelled_page_is_an_error_with_the_name(capsys):
    assert main.main(["docs", "readin"]) == 1
    assert "readin: no such page; did you mean 'reading'?" in capsys.readouterr().err


def test_the_wheel_holds_every_page():
    with (PROJECT / "pyproject.toml").open("rb") as file:
        included = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for path in documents.pages().values():
        name = path.relative_to(PROJECT)
        (source,) = (source for source in included if name.is_relative_to(source))
        assert included[source] == f"warplog/workflow/{source.removeprefix('workflow/')}"


@pytest.mark.parametrize(
    ("name", "file"), [("family", "kernels/sgemm/family.yaml"), ("config", "config/config.yaml")]
)
def test_a_schema_is_json_that_describes_the_files(capsys, name, file):
    assert main.main(["schema", name]) == 0
    schema = json.loads(capsys.readouterr().out)
    validator = jsonschema_rs.Draft202012Validator(schema)
    written = yaml.safe_load((PROJECT / file).read_text())
    validator.validate(written)
    assert not validator.is_valid(written | {"surprise": 1})


def test_the_schema_of_a_family_describes_its_keys_and_what_each_kind_of_argument_needs(capsys):
    assert main.main(["schema", "family"]) == 0
    text = capsys.readouterr().out
    types = json.loads(text)["$defs"]
    assert types["FamilyFile"]["properties"]["check_cases"]["description"].startswith("problems for the corr")
    assert types["VariantEntry"]["properties"]["name"]["$comment"].startswith("up to 64 small letters")
    assert all("description" in key or "$ref" in key for key in types["FamilyFile"]["properties"].values())
    validator = jsonschema_rs.Draft202012Validator(json.loads(text))
    written = yaml.safe_load((PROJECT / "kernels" / "sgemm" / "family.yaml").read_text())
    for argument, fits in (
        ({"name": "s", "kind": "workspace", "bytes": "4*M"}, True),
        ({"name": "s", "kind": "workspace", "dtype": "uint8"}, False),
        ({"name": "s", "kind": "input", "dtype": "float32"}, False),
    ):
        assert validator.is_valid(written | {"arguments": [argument]}) is fits


def test_schema_alone_lists_what_it_prints_and_each_can_be_printed(capsys):
    assert main.main(["schema"]) == 0
    names = capsys.readouterr().out.split()
    assert {"family", "config", "time"} <= set(names)
    for name in names:
        assert main.main(["schema", name]) == 0
        jsonschema_rs.Draft202012Validator(json.loads(capsys.readouterr().out))


def test_help_is_a_command_too(capsys):
    for arguments, words in ((["help"], "commands:"), (["help", "explain"], "usage: warplog explain")):
        with pytest.raises(SystemExit) as ended:
            main.main(arguments)
        assert ended.value.code == 0
        assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "own", "rest"),
    [
        (["run", "--config", "variants=naive"], ["run"], ["--config", "variants=naive"]),
        (["run", "repo", "--cores", "8", "-n"], ["run", "repo", "--cores", "8"], ["-n"]),
        (["run", "--cores=8", "--", "--config", "a=b"], ["run", "--cores=8"], ["--config", "a=b"]),
        (["run", "--", "tables"], ["run"], ["tables"]),
        (["run", "-n", "--", "tables"], ["run"], ["-n", "--", "tables"]),
        (["run", "--help"], ["run", "--help"], []),
    ],
)
def test_options_that_run_does_not_have_are_snakemakes(given, own, rest):
    assert running.parted(given) == (own, rest)


def test_run_knows_each_of_its_own_options():
    (commands,) = (
        action for action in main.make_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    own = {word for action in commands.choices["run"]._actions for word in action.option_strings}
    assert own == set(running.OWN)
