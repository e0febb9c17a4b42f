"""The door of records: text becomes a typed value here, checked once, and a typed value becomes text.

msgspec decides what fits. What does not is explained by JSON Schema, which is derived from the same types, so that an
error names file, key, value and remedy.
"""

import json
import re
from inspect import cleandoc
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from warplog.core import schema, store
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.parsing import parse_json
from warplog.core.paths import own_command
from warplog.records.fields import VERSION

_MOST_BYTES = 64 << 20
_T = TypeVar("_T")
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def decode(data: object, kind: type[_T], where: str) -> _T:
    """Returns parsed JSON or YAML as a value of the type `kind`.

    Args:
        where: prefix of the error, usually the file.

    Raises:
        WarplogError: The data does not fit; the text names the most deeply nested key, its value and what was expected.
    """
    try:
        return msgspec.convert(data, kind)
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        schema.explain(data, schema_of(kind), where)
        raise WarplogError(f"{where}: {error}") from None


def read(path: Path, kind: type[_T]) -> _T:
    """Returns the record in a JSON file.

    Raises:
        WarplogError: The file is missing, larger than 64 MiB, not strict JSON (see `parse_json`), or does not fit.
    """
    return decode(read_record(path), kind, str(path))


def read_yaml(path: Path, kind: type[_T]) -> _T:
    """Returns the content of a YAML file as a value of the type `kind`.

    Raises:
        WarplogError: The file cannot be read, is larger than 1 MiB, not strict YAML (see `parse_yaml`) or does not fit.
    """
    return decode(schema.load_yaml(path), kind, str(path))


def read_json(path: Path) -> Any:
    """Returns the parsed content of a JSON file.

    Raises:
        WarplogError: The file is missing, larger than 64 MiB, or not strict JSON (see `parse_json`).
    """
    try:
        return parse_json(store.read(path, _MOST_BYTES, "is it the right file?"))
    except (ValueError, RecursionError) as error:
        raise WarplogError(f"{path}: is not a JSON record ({error}); delete it and run again") from None


def read_record(path: Path) -> Any:
    """Returns the parsed content of a record's file, which must be in the present format.

    Raises:
        WarplogError: As for `read_json`, or an earlier or a later release wrote it.
    """
    data = read_json(path)
    version = data.get("schema") if isinstance(data, dict) else None
    if isinstance(version, int) and version != VERSION:
        if version > VERSION:
            raise WarplogError(f"{path}: was written by a later release of warplog; update warplog")
        remedy = f"`{own_command('migrate FOLDER')}`, with the results folder or recorded campaign, carries it over"
        raise WarplogError(f"{path}: was written by an earlier release of warplog; {remedy}")
    return data


def plain(value: object) -> Any:
    """Returns a typed value as JSON holds it: dicts, lists, texts and numbers."""
    return msgspec.to_builtins(value)


def as_json(value: object, indent: int | None = None) -> str:
    """Returns a typed value as JSON.

    Raises:
        ValueError: A number is not finite.
    """
    text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False)
    return text if indent is None else msgspec.json.format(text, indent=indent)


def write(path: Path, value: object) -> None:
    """Writes a record as JSON atomically: `path` holds either the old or the complete new content.

    Raises:
        WarplogError: The value does not fit its own type, a number is not finite, the disk is full or the folder is
            not writable.
    """
    data = plain(value)
    decode(data, type(value), str(path))
    write_text(path, as_json(value, indent=1) + "\n")


def schema_of(kind: Any) -> Any:
    """Returns the JSON Schema of a type; keys have the descriptions under `Attributes:` in the docstrings."""
    document = msgspec.json.schema(kind)
    for node in document.get("$defs", {}).values():
        text, _, attributes = cleandoc(node.get("description", "")).partition("\nAttributes:\n")
        node["description"] = text.strip()
        for name, said in _ATTRIBUTE.findall(attributes):
            if name in node.get("properties", ()):
                node["properties"][name].setdefault("description", " ".join(said.split()))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}
