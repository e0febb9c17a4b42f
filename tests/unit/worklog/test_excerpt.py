"""Functions in a source, the lines that it marks, and a launcher that makes streams wait."""

from pathlib import Path

import pytest

from warplog.core.errors import WarplogError
from warplog.worklog.excerpt import functions, marked, of_streams

SMALL = """\
// a brace in a comment {
static const char* text = "}{";
__global__ void small(float* x) {
    x[0] = 1.0f;  // }
}

__global__ void large(float* x) {
    for (int i = 0; i < 8; ++i) {
        x[i] = '{';
    }
}

extern "C" int launch(float* x, cudaStream_t stream) {
    large<<<1, 1, 0, stream>>>(x);
    return 0;
}
"""


def test_functions_reach_from_their_first_line_to_their_last_brace_and_the_longest_comes_first():
    assert list(functions(SMALL).items()) == [("large", (7, 11)), ("small", (3, 5))]


def test_template_lines_belong_to_a_function_and_launch_bounds_are_not_its_name():
    text = "__global__ void main_kernel(float* x);\n"
    text += (
        "\ntemplate <int N>\n__global__ __launch_bounds__(N)\nvoid main_kernel(float* x) {\n  x[0] = N;\n}\n"
    )
    assert functions(text) == {"main_kernel": (3, 7)}


def test_marked_lines_are_those_between_the_marks_of_the_language():
    assert marked(Path("some.cu"), ["int a;", "  // [excerpt]", "int b;", "// [/excerpt]"]) == (3, 3)
    assert marked(Path("some.py"), ["# [excerpt]", "a = 1", "b = 2", "# [/excerpt]"]) == (2, 3)
    assert marked(Path("some.py"), ["// [excerpt]"]) is None


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        (["int a;", "// [excerpt]"], 2, "[excerpt] without // [/excerpt]"),
        (["// [/excerpt]"], 1, "found // [/excerpt], expected // [excerpt]"),
        (["// [excerpt]", "int b;", "// [excerpt]"], 3, "found // [excerpt], expected // [/excerpt]"),
        (["// [excerpt]", "int b;", "// [/excerpt]", "// [excerpt]"], 4, "one excerpt"),
    ],
)
def test_marks_that_are_no_pair_are_an_error_with_file_and_line(lines, line, words):
    with pytest.raises(WarplogError) as error:
        marked(Path("k/some.cu"), lines)
    assert str(error.value).startswith(f"k/some.cu:{line}: ")
    assert words in str(error.value)


def test_a_launcher_that_makes_streams_wait_is_found():
    launcher = 'int a;\nextern "C" int launch(float* x, cudaStream_t stream) {\n    {}\n    return 0;\n}\n'
    assert of_streams(launcher.replace("{}", "cudaStreamWaitEvent(own, begun, 0);")) == (2, 5)
    assert of_streams(launcher.replace("{}", "// cudaStreamWaitEvent is not called")) is None
