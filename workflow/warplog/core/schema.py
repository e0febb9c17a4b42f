"""Closed schemas at every door: what is wrong is named by file, key, value and remedy."""

import difflib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from warplog.core.errors import WarplogError
from warplog.core.records import read_bytes

FOLDER = Path(__file__).with_name("schemas")
_MOST_YAML_BYTES = 1 << 20
_TYPES = {
    "object": "keys with values",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}


def _read(name: str) -> Any:
    return yaml.safe_load((FOLDER / f"{name}.schema.yaml").read_text())


@cache
def _says_whether(name: str) -> Any:
    """A hundred times as fast as the one that says what is wrong."""
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(_read(name))


@cache
def _says_what(name: str) -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(_read(name))


def read_yaml(path: Path, schema: str) -> Any:
    """The content of a YAML file that fits the schema.

    Raises:
        WarplogError: unreadable, over 1 MiB, not YAML, or not of the schema; the text names the key.
    """
    try:
        data = yaml.safe_load(read_bytes(path, _MOST_YAML_BYTES, "is it a YAML file of ours?").decode())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise WarplogError(f"{path}: is not valid YAML ({' '.join(str(error).split())})") from None
    check(data, schema, str(path))
    return data


def check(data: Any, schema: str, where: str) -> None:
    """Raises WarplogError with the first misfit between `data` and `<schema>.schema.yaml`."""
    with suppress(ValueError):  # of what JSON has no word for, such as a key that is a number
        if _says_whether(schema).is_valid(data):
            return
    misfits = _says_what(schema).iter_errors(data)
    misfit = min(misfits, key=lambda e: (-len(e.path), str(e.path)), default=None)
    if misfit is not None:
        raise WarplogError(f"{where}: {_explain(misfit)}")


def _explain(misfit: Any) -> str:
    key = ".".join(str(part) for part in misfit.absolute_path) or "(top level)"
    if misfit.validator == "additionalProperties":
        known = list(misfit.schema.get("properties", {}))
        unknown = [k for k in misfit.instance if k not in known]
        return f"{key}: unknown key {unknown[0]!r}; {suggest(str(unknown[0]), known)}"
    if misfit.validator in ("anyOf", "oneOf") and misfit.context:
        if all(e.validator == "type" and e.instance is misfit.instance for e in misfit.context):
            return f"{key}: {_mistyped(misfit.instance, [t for e in misfit.context for t in _listed(e)])}"
        return f"{key}: {_shorten(misfit.instance)} fits none of the forms: " + "; ".join(
            sorted({_shorten(e.message, 120) for e in misfit.context})
        )
    if misfit.validator == "type":
        return f"{key}: {_mistyped(misfit.instance, _listed(misfit))}"
    return f"{key}: {_shorten(misfit.message, 300)}"


def _listed(misfit: Any) -> list[str]:
    """The types that would fit."""
    types = misfit.validator_value
    return [types] if isinstance(types, str) else list(types)


def _mistyped(value: object, wanted: Iterable[str]) -> str:
    """ "'long' where a number is wanted"."""
    what = " or ".join(dict.fromkeys(_TYPES.get(name, name) for name in wanted))
    return f"{'nothing' if value is None else _shorten(repr(value))} where {what} is wanted"


def suggest(name: str, known: Iterable[str]) -> str:
    """'did you mean …?' or the list of what is known."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names) or '(none)'}"


def _shorten(value: object, most: int = 80) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
