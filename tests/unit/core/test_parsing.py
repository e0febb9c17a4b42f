"""JSON and YAML are parsed strictly: what readers understand differently, or what takes too long, is refused."""

import os
from pathlib import Path

import pytest

from warplog.catalog.contract import FamilyFile
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file
from warplog.core.parsing import parse_yaml
from warplog.records import door
from warplog.records.check import Check
from warplog.records.door import read_json

# Each level refers nine times to the level before: 9^20 values in 1 KB.
ALIASES = "a: &a [x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(20)
)


def refusal_of_json(tmp_path: Path, text: str, *, as_record: bool = False) -> str:
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(WarplogError) as error:
        door.read(path, Check) if as_record else read_json(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


def refusal_of_yaml(tmp_path: Path, text: str) -> str:
    path = tmp_path / "family.yaml"
    path.write_text(text)
    with pytest.raises(WarplogError) as error:
        door.read_yaml(path, FamilyFile)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"status": "wrong", "status": "ok"}', "the key 'status' occurs twice"),
        ('{"median_us": NaN}', "NaN is not a finite number"),
        ('{"median_us": -Infinity}', "-Infinity is not a finite number"),
        ('{"median_us": 1e400}', "1e400 is not a finite number"),
        ('{"median_us": ' + "9" * 400 + "}", "not an integer of at most 64 bits"),
        ('{"median_us": 18446744073709551616}', "not an integer of at most 64 bits"),
        ('{"reason": "\\ud800"}', "surrogates not allowed"),
        ('{"\\uDBFF": 1}', "surrogates not allowed"),
    ],
)
def test_a_record_that_readers_understand_differently_is_refused(
    tmp_path: Path, text: str, words: str
) -> None:
    assert words in refusal_of_json(tmp_path, text)


def test_integers_of_64_bits_are_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text("[18446744073709551615, -9223372036854775808]")
    assert read_json(path) == [18446744073709551615, -9223372036854775808]


@pytest.mark.parametrize("levels", [300, 900, 100_000])
def test_a_deeply_nested_record_is_refused_on_one_line(tmp_path: Path, levels: int) -> None:
    refusal_of_json(tmp_path, "[" * levels + "]" * levels, as_record=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title: a\nbaseline: x\ntitle: b\n", "the key 'title' occurs in lines 1 and 3"),
        ("parameters: {BLOCK: 64, BLOCK: 128}", "the key 'BLOCK' occurs twice in line 1"),
        ("a: 1\nb: .nan\n", "line 2: .nan is not a finite number"),
        ("b: 1.0e+999", "1.0e+999 is not a finite number"),
        ("b: " + "9" * 400, "not an integer of at most 64 bits"),
        ("b: " + "9" * 5000, "not an integer of at most 64 bits"),
        ("cases: {1024: {N: 1024}}", "cases: the key 1024 is not text; quote it"),
        ("started: 2024-13-45", "month must be in 1..12"),
        ("a: 12:30", "line 1: 12:30 is a number to the base 60 to some readers; quote it"),
        ("a: 12:30.5", "12:30.5 is a number to the base 60"),
        ("a: !!int x", "the tag tag:yaml.org,2002:int is not supported; remove it"),
        ("a: !!timestamp x", "the tag tag:yaml.org,2002:timestamp is not supported"),
        ("!!omap [a: 1]", "the tag tag:yaml.org,2002:omap is not supported"),
        ("!mine {a: 1}", "the tag !mine is not supported"),
        ("--- {a: 1}\n--- {b: 2}\n", "expected a single document"),
        ("a: " + "1" * 400 + ".5", "is not a finite number"),
        ("a: &a {b: *a}", "refers to a value that contains it"),
        ('family: "x\\n"', "family: 'x\\n': expected up to 64 small letters, digits and _"),
    ],
)
def test_a_mistake_in_a_family_is_named(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal_of_yaml(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ALIASES, "more than 50000 values, counting those of aliases"),
        ("[" * 900 + "]" * 900, "nested deeper than 64 levels"),
        ("- " * 400_000, "nested deeper than 64 levels"),
        ("[" + "1," * 400_000 + "1]", "more than 50000 values"),
        (
            "a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40,
            "nested deeper than 64 levels",
        ),
        ("a: " + "59:" * 300_000 + "59", "is a number to the base 60"),
        ("a: " + "9" * 1_000_000, "not an integer of at most 64 bits"),
        ("a: 0x" + "f" * 1_000_000, "not an integer of at most 64 bits"),
        ("a: 1." + "9" * 1_000_000, "is not a finite number"),
        ("a: &a " + "x" * 500_000 + "\nb: [" + "*a," * 150 + "]", "more than 50000 values"),
    ],
)
def test_a_small_file_cannot_take_long(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal_of_yaml(tmp_path, text)


def test_a_few_aliases_are_allowed() -> None:
    assert parse_yaml("small: &s {M: 1}\nother: *s\nlarge: {<<: *s, N: 2}\n") == {
        "small": {"M": 1},
        "other": {"M": 1},
        "large": {"M": 1, "N": 2},
    }


def test_a_fifo_in_place_of_a_file_is_refused_without_waiting(tmp_path: Path) -> None:
    path = tmp_path / "family.yaml"
    os.mkfifo(path)
    for read in (read_json, sha256_file, lambda place: door.read_yaml(place, FamilyFile)):
        with pytest.raises(WarplogError, match="is not a regular file"):
            read(path)
