"""Says what in a file does not fit a JSON Schema: the file, the key, the value and the remedy."""

import difflib
import pickle
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache, reduce
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from warplog.core.errors import WarplogError
from warplog.core.files import read_bytes
from warplog.core.parsing import parse_yaml

_MOST_YAML_BYTES = 1 << 20
_DEEPEST = 200  # levels of a record; the validator follows 255
_MOST_MISFITS = 100  # are compared to find the one to report
# What PyYAML says of `idea: tiles: in shared memory`.
_UNQUOTED = re.compile("mapping values are not allowed|expected ',' or '}'")
_TYPES = {
    "object": "a mapping of keys to values",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "no value",
}


def load_yaml(path: Path) -> Any:
    """Returns the content of a YAML file.

    Raises:
        WarplogError: The file cannot be read, is larger than 1 MiB, or is not strict YAML (see `parse_yaml`).
    """
    try:
        text = read_bytes(path, _MOST_YAML_BYTES, "is it the right file?").decode()
        return pickle.loads(_parsed(text))  # noqa: S301 - this process made it
    except (yaml.YAMLError, ValueError) as error:
        said = " ".join(str(error).split()).replace(' in "<unicode string>",', " at")
        hint = "; a text with a comma or colon needs quotes" if _UNQUOTED.search(said) else ""
        raise WarplogError(f"{path}: is not valid YAML ({said}){hint}") from None


@lru_cache(maxsize=64)
def _parsed(text: str) -> bytes:
    """Returns a pickle of the document, since callers may change what they get, and `deepcopy` takes ten times as long.

    A process that makes several plans, such as one for each GPU model, reads the same families for each of them.
    """
    return pickle.dumps(parse_yaml(text))


def explain(data: Any, schema: Any, where: str) -> None:
    """Raises an error that says what in `data` does not fit a JSON Schema; returns if all of it does.

    Args:
        where: prefix of the error, usually the file.

    Raises:
        WarplogError: The data does not fit; the text describes the most deeply nested error.
    """
    import jsonschema_rs

    try:
        validator = jsonschema_rs.Draft202012Validator(schema)
        misfits = list(islice(validator.iter_errors(data), _MOST_MISFITS))
    except (
        ValueError,
        TypeError,
    ) as error:  # jsonschema_rs rejects what JSON cannot hold before it validates
        raise WarplogError(f"{where}: {_not_json(data) or error}") from None
    if misfits:
        raise WarplogError(f"{where}: {_explain(_deepest(misfits), data, schema)}")


def refuse_empty(data: Any, where: str, allowed: Collection[str]) -> None:
    """Raises an error for the first key without a value, except the keys in `allowed` and those below them.

    Args:
        data: the parsed content of a file that fits its type, in which a value may be left out with its key only.
        where: prefix of the error, usually the file.

    Raises:
        WarplogError: A key has no value.
    """
    if (path := _empty(data, allowed)) is not None:
        raise WarplogError(f"{where}: {_dotted(path, data)}: has no value; give it one, or remove the key")


def _empty(data: Any, allowed: Collection[str]) -> tuple[str | int, ...] | None:
    if data is None:
        return ()
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key not in allowed and (below := _empty(value, allowed)) is not None:
            return (key, *below)
    return None


def _deepest(misfits: Iterable[Any]) -> Any:
    """Returns the most deeply nested error; of several, an unknown key: its misspelling explains a missing one."""

    def order(misfit: Any) -> tuple[int, str, bool]:
        path = misfit.instance_path
        return -len(path), str(path), misfit.kind.name != "additionalProperties"

    return min(misfits, key=order)


def _explain(misfit: Any, data: Any, schema: Any) -> str:
    path, kind = misfit.instance_path, misfit.kind
    key, value = _dotted(path, data), _shorten(repr(_at(data, path)))
    match kind.name:
        case "additionalProperties":
            keys = _at(schema, misfit.schema_path[:-1]).get("properties", {})
            return f"{key}: {_unknown_key(kind.unexpected[0], _at(data, path), keys)}"
        case "unevaluatedProperties":
            return f"{key}: unknown key {kind.unexpected[0]!r}"
        case "anyOf":
            return _explain_alternatives(misfit, data, schema)
        case "type":
            return f"{key}: {_mistyped(value, kind.types)}"
        case "enum":
            return f"{key}: {value} is not one of {', '.join(map(str, kind.options))}"
        case "required":
            return f"{key}: the required key {kind.property!r} is missing"
        case "pattern" | "propertyNames":
            of_key = kind.name == "propertyNames"
            return f"{key}: {'the key ' * of_key}{_mismatched(kind.error if of_key else misfit, schema)}"
        case "maxLength":
            return f"{key}: {value} is longer than {kind.limit} characters"
        case "exclusiveMinimum":
            return f"{key}: expected a number larger than {kind.limit}, got {value}"
        case _:
            return f"{key}: {_shorten(misfit.message, 300)}"


def _unknown_key(name: str, mapping: Any, keys: Iterable[str]) -> str:
    """Returns the words about a key; one without a value and with spaces is the rest of an unquoted text."""
    torn = mapping[name] is None and " " in name
    return f"unknown key {name!r}; {'a text with a comma needs quotes' if torn else suggest(name, keys)}"


def _mismatched(misfit: Any, schema: Any) -> str:
    """Returns "'90': expected ...", in the words that the schema has for a pattern as its `$comment`."""
    node = _at(schema, misfit.schema_path[:-1])
    listed = f"one of {', '.join(map(str, node.get('enum', ())))}"
    expected = node.get("$comment") or (f"what matches {node['pattern']}" if "pattern" in node else listed)
    return f"{_shorten(repr(misfit.instance))}: expected {expected}"


def _explain_alternatives(misfit: Any, data: Any, schema: Any) -> str:
    """Explains the alternative that comes closest; if all have another type, names the types."""
    path, alternatives = misfit.instance_path, misfit.kind.context
    if tag := _at(schema, misfit.schema_path[:-1]).get("discriminator"):
        place = [*path, tag["propertyName"]]
        alternatives = [
            misfits for misfits in alternatives if place not in [inner.instance_path for inner in misfits]
        ]
        if not alternatives:
            value, tags = _shorten(repr(_at(data, place))), sorted(tag["mapping"])
            return f"{_dotted(place, data)}: {value} is not one of {', '.join(tags)}"
    misfits = [inner for alternative in alternatives for inner in alternative]
    # A mapping is no misspelled name: an alternative of its type says more than a list of names.
    other = ("type", "enum") if isinstance(_at(data, path), dict) else ("type",)
    close = [inner for inner in misfits if inner.kind.name not in other or inner.instance_path != path]
    if close:
        return _explain(_deepest(close), data, schema)
    types = [name for inner in misfits for name in inner.kind.types]
    return f"{_dotted(path, data)}: {_mistyped(_shorten(repr(_at(data, path))), types)}"


def _mistyped(value: str, types: Iterable[str]) -> str:
    """Returns a phrase such as "expected a number, got 'long'"."""
    named = dict.fromkeys(types)
    expected = " or ".join(_TYPES[name] for name in named if name != "integer" or "number" not in named)
    return f"expected {expected}, got {'no value' if value == 'None' else value}"


def _not_json(data: object, path: Sequence[str | int] = ()) -> str:
    """Names the first key or value that YAML can hold and JSON cannot, such as a date; "" if there is none."""
    if len(path) > _DEEPEST:
        return f"nested deeper than {_DEEPEST} levels"
    if data is None or isinstance(data, str | float | int):
        return ""
    if not isinstance(data, dict | list | tuple):
        return f"{_dotted(path)}: {_shorten(repr(data))} is a {type(data).__name__}; quote it to make it text"
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(data, dict) and not isinstance(key, str):
            return f"{_dotted(path)}: the key {key!r} is not text; quote it"
        if problem := _not_json(value, (*path, key)):
            return problem
    return ""


def _at(data: Any, path: Sequence[str | int]) -> Any:
    return reduce(_item, path, data)


def _item(data: Any, key: str | int) -> Any:
    """Returns an item; jsonschema_rs gives a key such as "1024" as a number."""
    if isinstance(data, dict) and key not in data:
        key = next(name for name in data if name.isdecimal() and int(name) == key)
    return data[key]


def _dotted(path: Sequence[str | int], data: Any = None) -> str:
    """Returns a path such as `variants.tiled.idea`: an entry of a list by its name, if no other in `data` has it."""
    parts = []
    for part in path:
        names = (
            [entry.get("name") for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
        )
        data = _item(data, part) if data is not None else None
        name = data.get("name") if isinstance(data, dict) else None
        shown = _shorten(name) if isinstance(name, str) and names.count(name) == 1 else str(part)
        parts.append(shown if shown.isprintable() else repr(shown))
    return ".".join(parts) or "(top level)"


def suggest(name: str, candidates: Iterable[str]) -> str:
    """Returns "did you mean '…'?", or lists the known names if none is similar."""
    names = sorted(candidates)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names) or '(none)'}"


def _shorten(text: str, most: int = 80) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
