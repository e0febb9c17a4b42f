"""Mutations of files, as a faulty disk, a careless editor or an attacker makes them; the same for the same seed."""

import copy
import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from random import Random
from typing import Any

Mutator = Callable[[Random, bytes], bytes]

DEEP: list[Any] = []
for _ in range(300):
    DEEP = [DEEP]
VALUES = (
    *(None, True, False, 0, -1, 1, 0.5, -20.556, 2**63, 2**64 - 1, -(2**63), 10**30, 1e-308, 1e308),
    *(
        math.nan,
        math.inf,
        "",
        "ok",
        "x" * 1000,
        "\ud800",
        "\u202e\x1b[31m\n",
        "../..",
        "0",
        [],
        {},
        [[]],
        DEEP,
    ),
)
YAML_VALUES = (
    *(
        "59:59",
        "59:" * 1000 + "59",
        "9" * 5000,
        "0x" + "f" * 5000,
        "1e999",
        ".nan",
        "1_000",
        "0o17",
        "017",
        "0b1",
    ),
    *(
        "!!int x",
        "!!python/name:os.system x",
        "!!binary AAAA",
        "2024-13-45",
        "2024-01-01",
        "&a [*a]",
        "*a",
        "<<",
        "~",
    ),
    *(
        "[" * 100,
        "{a: " * 100,
        '"%3000000000d" % 1',
        "'9**9**9'",
        "'1 if'",
        "'(' * 9",
        "yes",
        "-5",
        "'\\'",
        "\0",
    ),
)
_AGAIN = '"again: '  # starts a key that stands for a second one of the same name


def bits(random: Random, data: bytes) -> bytes:
    """Flips one bit."""
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


def byte(random: Random, data: bytes) -> bytes:
    """Replaces one byte."""
    place = random.randrange(len(data))
    return data[:place] + random.randbytes(1) + data[place + 1 :]


def cut(random: Random, data: bytes) -> bytes:
    """Removes the end."""
    return data[: random.randrange(len(data))]


def hole(random: Random, data: bytes) -> bytes:
    """Fills a part with zeros, as a file has it whose disk lost a block."""
    start = random.randrange(len(data))
    size = min(random.choice((1, 16, 512)), len(data) - start)
    return data[:start] + bytes(size) + data[start + size :]


def removed(random: Random, data: bytes) -> bytes:
    """Removes a part."""
    start = random.randrange(len(data))
    return data[:start] + data[start + random.choice((1, 7, 100)) :]


def repeated(random: Random, data: bytes) -> bytes:
    """Writes a part twice."""
    start = random.randrange(len(data))
    end = start + random.choice((1, 7, 100))
    return data[:end] + data[start:end] + data[end:]


BYTES = (bits, byte, cut, hole, removed, repeated)


def line(random: Random, data: bytes) -> bytes:
    """Removes, repeats or swaps a line."""
    lines = data.splitlines(keepends=True)
    place = random.randrange(len(lines))
    lines[place : place + 1] = random.choice(
        ([], [lines[place]] * 2, [*lines[place + 1 : place + 2], lines[place]])
    )
    return b"".join(lines)


def number(random: Random, data: bytes) -> bytes:
    """Replaces a number by another one, or by what is none."""
    found = random.choice(list(re.finditer(rb"\d+", data)))
    other = random.choice(
        (b"", b"-1", b"9" * 30, b"9" * 5000, b"nan", b"1e999", "\u0664".encode(), b"0", b"7")
    )
    return data[: found.start()] + other + data[found.end() :]


TEXT = (*BYTES, line, number)


def json_value(random: Random, data: bytes) -> bytes:
    """Changes one key or value of a JSON document."""
    document = copy.deepcopy(json.loads(data))
    holder, key = random.choice(list(_places(document)))
    if isinstance(holder, dict) and random.random() < 0.2:
        holder[f"again: {key}"] = random.choice((holder[key], *VALUES))
    elif random.random() < 0.2:
        del holder[key]
    elif random.random() < 0.1:
        holder[key if isinstance(holder, dict) else slice(key, key)] = (
            {"unknown": 1} if isinstance(holder, dict) else [holder[key]]
        )
    else:
        holder[key] = _other(random, holder[key])
    return json.dumps(document).replace(_AGAIN, '"').encode()


JSON = (json_value,) * 12 + BYTES


def yaml_value(random: Random, data: bytes) -> bytes:
    """Replaces a value of a YAML document by one that readers understand differently, or that takes long to read."""
    found = random.choice(list(re.finditer(rb"(?<=: )[\w.]+", data)))
    return data[: found.start()] + random.choice(YAML_VALUES).encode() + data[found.end() :]


def cell(random: Random, data: bytes) -> bytes:
    """Replaces a time or a size in a trace of nsys by what none can be."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.deserialize(data)
        table, columns = random.choice(
            (
                (
                    "CUPTI_ACTIVITY_KIND_KERNEL",
                    ("start", "end", "gridX", "blockY", "registersPerThread", "streamId"),
                ),
                ("CUPTI_ACTIVITY_KIND_MEMCPY", ("start", "end", "bytes")),
            )
        )
        column = random.choice(columns)
        value = random.choice((None, -1, -20_556, "", "12", "x", b"\0", 0.5, -(2**63), "9" * 30))
        value = 2**62 if column == "start" and value is None else value
        database.execute(f"update {table} set {column} = ?", (value,))
        return database.serialize()


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each dict or list with each of its keys or positions."""
    keys = document if isinstance(document, dict) else range(len(document))
    for key in keys:
        yield document, key
        if isinstance(document[key], dict | list):
            yield from _places(document[key])


def _other(random: Random, value: Any) -> Any:
    """Returns a similar value, or one of VALUES."""
    if isinstance(value, int | float) and random.random() < 0.5:
        return random.choice((-value, value * 1.001, value + 1, value * 1e12))
    if isinstance(value, str) and value and random.random() < 0.5:
        place = random.randrange(len(value))
        return value[:place] + random.choice("ax9\x1b\u202e") + value[place + 1 :]
    return random.choice(VALUES)


def mutations(kinds: Sequence[Mutator], data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Yields `count` mutated documents, each other than `data`."""
    random = Random(seed)
    left = count
    while left:
        mutated = random.choice(kinds)(random, data)
        if mutated != data:
            left -= 1
            yield mutated
