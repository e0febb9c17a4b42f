"""The subcommands `warplog docs` and `warplog schema`: the documentation and schemas that travel in the package."""

import argparse
import json
import os
import pydoc
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from warplog.core import paths
from warplog.core.errors import WarplogError

_ABOUT_SCHEMA = """\
Prints the JSON Schema of a file that you write (kernels/*/family.yaml, config/config.yaml, config/gpus.yaml), or of a
record of a stage in results/; without NAME, lists the names. Editors use the schema to complete keys and to show what
each one means; `warplog docs extending` says how.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds both subcommands to the parser."""
    docs = commands.add_parser("docs", help="show a page of the documentation")
    docs.description = "Prints a page of the documentation as Markdown; without PAGE, lists the pages."
    docs.epilog = "example: warplog docs own-kernels"
    docs.add_argument("page", nargs="?", metavar="PAGE", help="name of the page")
    docs.set_defaults(command="docs")
    schema = commands.add_parser(
        "schema", help="print the JSON Schema of family.yaml and other files, for editors"
    )
    schema.description, schema.epilog = _ABOUT_SCHEMA, "example: warplog schema family > family.schema.json"
    schema.add_argument(
        "name", nargs="?", metavar="NAME", help="family, config, gpus, or the record of a stage"
    )
    schema.add_argument(
        "--into",
        type=Path,
        metavar="FILE",
        help="write its keys, defaults and descriptions as a Markdown table into FILE, between the lines"
        " <!-- warplog schema NAME --> and <!-- end -->",
    )
    schema.set_defaults(command="schema")


def show(options: argparse.Namespace) -> int:
    """Prints the page, through a pager on a terminal; without one, the names and titles of all pages.

    Raises:
        WarplogError: there is no such page.
    """
    from warplog.core.schema import suggest

    existing = pages()
    if options.page is None:
        width = max(map(len, existing))
        for name, path in existing.items():
            print(f"{name:{width}}  {_title(path)}")
        return 0
    if options.page not in existing:
        raise WarplogError(f"{options.page}: no such page; {suggest(options.page, existing)}")
    text = existing[options.page].read_text(encoding="utf-8")
    pager = os.environ.get("PAGER") or shutil.which("less")
    if options.terminal and pager:
        pydoc.pipepager(text, pager)
    else:
        print(text, end="")
    return 0


def show_schema(options: argparse.Namespace) -> int:
    """Prints a schema as JSON, or writes its table into a document; without a name, prints the names.

    Raises:
        WarplogError: there is no such schema; the document cannot be read or written, or lacks a line between which the
            table goes.
    """
    from warplog.catalog.contract import FamilyFile
    from warplog.core.files import put_between
    from warplog.core.schema import suggest
    from warplog.machine.gpus import KnownGpus
    from warplog.records.config import Config
    from warplog.records.door import schema_of
    from warplog.records.stages import KINDS

    types: dict[str, type] = {"family": FamilyFile, "config": Config, "gpus": KnownGpus}
    types |= {kind.__name__.lower(): kind for kind in KINDS}
    if options.name is None:
        print("\n".join(types))
        return 0
    if options.name not in types:
        raise WarplogError(f"{options.name}: no such schema; {suggest(options.name, types)}")
    name = types[options.name].__name__
    schema = schema_of(types[options.name])
    if options.into:
        rows = _keys(schema, schema["$defs"][name])
        table = "".join(f"| `{key}` | {default} | {said} |\n" for key, default, said in rows)
        head = "| key | default | meaning |\n|---|---|---|\n"
        put_between(options.into, f"schema {options.name}", head + table)
    else:
        print(json.dumps(schema, indent=1))
    return 0


def _keys(schema: Any, node: Any, section: str = "") -> Iterator[tuple[str, str, str]]:
    """Yields name, default and description of each key of an object in a schema, with those of its sections."""
    for name, key in node["properties"].items():
        within = schema["$defs"].get(key.get("$ref", "").rpartition("/")[2])
        if within and "properties" in within:
            yield from _keys(schema, within, f"{section}{name}.")
        else:
            default = f"`{_as_yaml(key['default'])}`" if "default" in key else ""
            yield f"{section}{name}", default, key.get("description", "")


def _as_yaml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_yaml, value))}]"
    return value if isinstance(value, str) else json.dumps(value).removesuffix(".0")


def pages() -> Mapping[str, Path]:
    """Returns the pages of the documentation by name."""
    first = {"readme": paths.HOME / "README.md", "config": paths.HOME / "config" / "README.md"}
    return first | {path.stem: path for path in sorted((paths.WORKFLOW / "docs").glob("*.md"))}


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").rstrip()
