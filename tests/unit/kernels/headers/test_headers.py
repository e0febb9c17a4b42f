"""The header of a kernel's source is data: a summary and the same keys in the same order in every file."""

import re
from pathlib import Path

import pytest

from warplog.catalog import family as catalog
from warplog.catalog.header import comment_of_module

KERNELS = Path(__file__).parents[4] / "kernels"
SOURCES = sorted({v.file for family in catalog.load([KERNELS]).values() for v in family.variants})
KEYS = ["Idea", "Expected", "Cost", "Constraints", "Source"]
TEXT_COLUMN = len("// ") + 13


def header(source: Path) -> str:
    """The comment that a source begins with, and a blank line; the docstring of a Python module as such a comment."""
    text = source.read_text(encoding="utf-8")
    return f"{comment_of_module(text)}\n\n" if source.suffix == ".py" else text


def parse(source: str) -> tuple[str, dict[str, str]]:
    """The summary and the text of each key; a line that is neither a key nor continues one is an error."""
    lines = source[: source.index("\n\n")].split("\n")
    blank = lines.index("//")
    keys: dict[str, str] = {}
    for line in lines[blank + 1 :]:
        start, text = line[:TEXT_COLUMN], line[TEXT_COLUMN:]
        assert re.match(r"\S", text), line
        if key := re.fullmatch(r"// ([A-Z][a-z]+) +", start):
            assert key[1] not in keys, line
            keys[key[1]] = text
        else:
            assert start.rstrip() == "//", line
            assert keys, line
            keys[list(keys)[-1]] += f" {text}"
    return " ".join(line.removeprefix("// ") for line in lines[:blank]), keys


def test_every_source_belongs_to_a_variant():
    modules = {path for path in KERNELS.glob("*/*.py") if path.name not in ("reference.py", "__init__.py")}
    assert modules | set(KERNELS.glob("*/*.cu")) == set(SOURCES)


def test_a_header_has_a_summary_that_names_the_file_and_each_key_once_in_order():
    for source in SOURCES:
        summary, keys = parse(header(source))
        names, _, text = summary.partition(": ")
        assert names.split(", ")[0] == source.stem, source
        assert text.endswith("."), source
        assert list(keys) == KEYS, source
        assert all(text.endswith(".") for text in keys.values()), source


def test_a_header_names_only_variants_of_its_file():
    for family in catalog.load([KERNELS]).values():
        for source in {v.file for v in family.variants}:
            summary, _ = parse(header(source))
            of_the_file = {v.name for v in family.variants if v.file == source}
            names = summary.partition(": ")[0].split(", ")
            assert set(names) <= of_the_file | {source.stem}, source
            assert len(names) == 1 or set(names) == of_the_file, source


def test_text_and_keys_are_read_over_several_lines_and_paragraphs():
    source = """// one, two: a kernel
// of two variants.
//
// Idea         First line
//              and the next.
//              A new paragraph.
// Expected     Faster.

#include <cuda_runtime.h>
"""
    assert parse(source) == (
        "one, two: a kernel of two variants.",
        {"Idea": "First line and the next. A new paragraph.", "Expected": "Faster."},
    )


@pytest.mark.parametrize(
    "line", ["// Idea   too early", "// a line without a key", "//  Idea        indented", "//"]
)
def test_a_line_that_is_out_of_form_is_found(line):
    with pytest.raises(AssertionError):
        parse(f"// one: a kernel.\n//\n// Idea         Text.\n{line}\n\ncode\n")
