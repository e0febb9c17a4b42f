"""Parses JSON and YAML strictly: what readers understand differently is refused, and time and memory are bounded.

Refused are keys that occur twice, numbers that are not finite, integers of more than 64 bits, halves of characters
(`"\\ud800"`), deep nesting, and in YAML tags, numbers to the base 60, and aliases that expand to many values. Both
parsers take time in proportion to the length of the text.
"""

import json
import math
import re
from contextlib import suppress
from typing import Any

import yaml

# The safe loader in C, ten times as fast: planning reads all families.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 64
_MOST_VALUES = (
    50_000  # of one YAML document, counting a value for each of its aliases; the largest family has 2,000
)
_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**64 - 1
_MOST_DIGITS = 20
_LONGEST_NUMBER = 100  # characters; the time to convert a number grows with the square of its length
_A_VALUE = 1000  # characters of a text that count as one value
_HALF = re.compile(
    rb"\\u[dD][89a-fA-F]"
)  # of a character beyond the first 65,536, which is written as two halves
_TOO_MANY = f"the document has more than {_MOST_VALUES} values"
_TOO_DEEP = f"nested deeper than {_DEEPEST} levels"


def parse_json(data: bytes) -> Any:
    """Returns the content of a JSON document.

    Raises:
        ValueError: It is not JSON, a key occurs twice, a number is not finite or has more than 64 bits, or a text is
            not valid Unicode.
        RecursionError: It is nested too deeply.
    """
    content = json.loads(
        data,
        object_pairs_hook=_object,
        parse_constant=_refuse_constant,
        parse_float=_finite,
        parse_int=_integer,
    )
    if _HALF.search(data):
        json.dumps(content, ensure_ascii=False).encode()
    return content


def parse_yaml(text: str) -> Any:
    """Returns the content of a YAML document.

    Raises:
        yaml.YAMLError: It is not YAML, a key occurs twice, a value has a tag, a number is not finite, has more than 64
            bits or is to the base 60, it is nested deeper than 64 levels, or holds more than 50,000 values.
        ValueError: A date does not exist.
    """
    _check_bounds(text)
    loader = _StrictLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _Survey().size(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(n for n in names if names.count(n) > 1)!r} occurs twice")
    return mapping


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a finite number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def _integer(text: str) -> int:
    if len(text) <= _MOST_DIGITS and _LEAST_INTEGER <= (value := int(text)) <= _MOST_INTEGER:
        return value
    raise ValueError(f"{text[:_MOST_DIGITS]}… is not an integer of at most 64 bits")


class _StrictLoader(_Loader):  # type: ignore[misc, valid-type]
    """The safe loader; numbers are finite, and integers have at most 64 bits."""

    def construct_number(self, node: yaml.ScalarNode) -> float:
        """Returns the number of a scalar; one that is too long, and would take long to convert, counts as infinite."""
        if ":" in node.value:
            raise _refused(
                f"{node.value[:_MOST_DIGITS]} is a number to the base 60 to some readers; quote it", node
            )
        whole = node.tag.endswith(":int")
        value = math.inf
        if len(node.value) <= _LONGEST_NUMBER:
            with suppress(ValueError, OverflowError):
                value = self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)
        if whole and not _LEAST_INTEGER <= value <= _MOST_INTEGER:
            raise _refused(f"{node.value[:_MOST_DIGITS]} is not an integer of at most 64 bits", node)
        if not math.isfinite(value):
            raise _refused(f"{node.value[:_MOST_DIGITS]} is not a finite number", node)
        return value


for _kind in ("int", "float"):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _StrictLoader.construct_number)


def _check_bounds(text: str) -> None:
    """Refuses long documents, deep nesting and tags before the loader, whose recursion in C has no limit."""
    depth = values = 0
    for event in yaml.parse(text, _Loader):
        values += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if (tag := getattr(event, "tag", None)) is not None:
            raise _refused(f"the tag {tag[:80]} is not supported; remove it", event)
        if values > _MOST_VALUES:
            raise _refused(_TOO_MANY, event)
        if depth > _DEEPEST:
            raise _refused(_TOO_DEEP, event)


class _Survey:
    """Counts the values of a document with aliases expanded, visiting each node once, and looks for repeated keys.

    A long text counts as several, since a reader that does not know aliases copies it.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int] | None] = {}

    def size(self, node: yaml.Node) -> tuple[int, int]:
        """Returns the number of values below a node, itself included, and the number of levels.

        Raises:
            yaml.YAMLError: There are too many values or levels, a node contains itself, or a key occurs twice.
        """
        if id(node) in self._known:
            if (size := self._known[id(node)]) is None:
                raise _refused("an alias refers to a value that contains it", node)
            return size
        self._known[id(node)] = None
        values, levels = 1 + len(node.value) // _A_VALUE if isinstance(node, yaml.ScalarNode) else 1, 0
        for below in self._below(node):
            more, deeper = self.size(below)
            values, levels = values + more, max(levels, deeper)
        if values > _MOST_VALUES:
            raise _refused(f"{_TOO_MANY}, counting those of aliases", node)
        if levels >= _DEEPEST:
            raise _refused(f"{_TOO_DEEP}, counting those of aliases", node)
        self._known[id(node)] = values, levels + 1
        return values, levels + 1

    def _below(self, node: yaml.Node) -> list[yaml.Node]:
        if isinstance(node, yaml.MappingNode):
            self._check_keys([key for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
            return [part for pair in node.value for part in pair]
        return list(node.value) if isinstance(node, yaml.SequenceNode) else []

    def _check_keys(self, keys: list[yaml.ScalarNode]) -> None:
        lines: dict[str, int] = {}
        for key in keys:
            line = key.start_mark.line + 1
            if key.value in lines:
                first = lines[key.value]
                where = f"twice in line {line}" if first == line else f"in lines {first} and {line}"
                raise yaml.YAMLError(f"the key {key.value!r} occurs {where}")
            lines[key.value] = line


def _refused(why: str, place: Any) -> yaml.YAMLError:
    return yaml.YAMLError(f"line {place.start_mark.line + 1}: {why}")
