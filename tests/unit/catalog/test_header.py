"""The header of a CUDA source becomes data."""

from pathlib import Path

import pytest

from warplog.catalog.header import Header, header_of, read_header
from warplog.core.errors import WarplogError

KERNELS = Path(__file__).parents[3] / "kernels"
SOURCE = """\
// tiled: a title
//
// Idea         Tiles of A and B, so that
//              each is read once.
// Expected     Six times naive.
//
// A remark that belongs to no field.
// Source       A book.

// Expected     a comment further down
__global__ void tiled() {}
"""


def test_fields_go_on_over_indented_lines_and_end_with_the_header():
    assert header_of(SOURCE) == Header(
        idea="Tiles of A and B, so that each is read once.", expected="Six times naive.", source="A book."
    )


def test_a_source_without_a_header_has_empty_fields():
    assert header_of("#include <cuda_runtime.h>\n// Idea         not at the top\n") == Header()


def test_a_source_that_is_gone_is_named(tmp_path):
    with pytest.raises(WarplogError, match=r"none\.cu: cannot be read"):
        read_header(tmp_path / "none.cu")


def test_every_kernel_but_those_of_the_oracle_with_known_answers_states_what_was_expected_of_it():
    paths = [path for path in KERNELS.glob("*/*.cu") if not path.parent.name.startswith("oracle")]
    assert len(paths) > 100
    for path in paths:
        header = read_header(path)
        assert all((header.idea, header.expected, header.cost, header.constraints, header.source)), path


def test_the_docstring_of_a_python_module_is_its_header(tmp_path):
    path = tmp_path / "softmax_triton.py"
    fields = "Idea         Whole rows\n             as arrays.\nExpected     As fast.\n"
    path.write_text(f'"""triton: one program per row.\n\n{fields}"""\nimport triton\n')
    header = read_header(path)
    assert (header.idea, header.expected, header.cost) == ("Whole rows as arrays.", "As fast.", "")
    path.write_text("import triton\n\ndef broken(:\n")
    assert read_header(path).idea == ""
