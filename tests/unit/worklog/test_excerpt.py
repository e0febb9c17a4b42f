"""The excerpt of a source: marked lines, otherwise the kernel that shows its idea, otherwise the launcher."""

from pathlib import Path

import pytest

from warplog.core.errors import WarplogError
from warplog.worklog.excerpt import PAGE_LINES, Excerpt, excerpt

KERNELS = sorted((Path(__file__).parents[3] / "kernels").glob("*/*.cu"))
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


def written(folder: Path, text: str) -> Path:
    path = folder / "some.cu"
    path.write_text(text)
    return path


def test_the_longest_kernel_is_shown_from_its_first_line_to_its_last_brace(tmp_path):
    found = excerpt(written(tmp_path, SMALL))
    assert (found.file, found.first) == ("some.cu", 7)
    assert found.code.splitlines()[0] == "__global__ void large(float* x) {"
    assert found.code.splitlines()[-1] == "}"
    assert "launch" not in found.code


def test_marked_lines_go_before_and_lose_their_common_indentation(tmp_path):
    marked = SMALL.replace("    for (", "    // [excerpt]\n    for (").replace(
        "\n}\n\nextern", "\n    // [/excerpt]\n}\n\nextern"
    )
    found = excerpt(written(tmp_path, marked))
    assert found.first == 9
    assert found.code == "for (int i = 0; i < 8; ++i) {\n    x[i] = '{';\n}"


def test_of_a_kernel_longer_than_a_page_the_longest_loop_is_shown(tmp_path):
    body = "".join(f"    x[{i}] = 0.0f;\n" for i in range(PAGE_LINES))
    found = excerpt(written(tmp_path, SMALL.replace("    for (int", f"{body}#pragma unroll\n    for (int")))
    assert found.code == "for (int i = 0; i < 8; ++i) {\n    x[i] = '{';\n}"


def test_a_source_without_a_kernel_shows_its_launcher(tmp_path):
    found = excerpt(written(tmp_path, SMALL[SMALL.index("extern") :]))
    assert found.code.startswith('extern "C" int launch')


def test_a_declared_kernel_is_not_its_body(tmp_path):
    found = excerpt(written(tmp_path, "__global__ void declared(float* x);\n" + SMALL))
    assert "large" in found.code


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("int a;\n// [excerpt]\nint b;\n", 2, "without // [/excerpt]"),
        ("// [/excerpt]\nint b;\n// [excerpt]\n", 1, "found // [/excerpt], expected // [excerpt]"),
        ("// [excerpt]\nint b;\n// [excerpt]\n", 3, "found // [excerpt], expected // [/excerpt]"),
        ("// [excerpt]\nint b;\n// [/excerpt]\n// [excerpt]\n", 4, "one excerpt"),
        ("// [excerpt]\n\n// [/excerpt]\n", 3, "is empty"),
        ("\n", 2, "is empty"),
    ],
)
def test_marks_that_are_no_pair_are_an_error_with_file_and_line(tmp_path, text, line, words):
    path = written(tmp_path, text)
    with pytest.raises(WarplogError) as error:
        excerpt(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_launcher_that_makes_streams_wait_is_shown_instead_of_its_kernel(tmp_path):
    kernel = "__global__ void scale(float* x) {\n" + "    x[0] *= 2.0f;\n" * 6 + "}\n"
    launcher = 'extern "C" int launch(float* x, cudaStream_t stream) {\n    {}\n    return 0;\n}\n'
    path = tmp_path / "pipeline.cu"
    path.write_text(kernel + launcher.replace("{}", "scale<<<1, 1, 0, stream>>>(x);"))
    assert "__global__" in excerpt(path).code
    path.write_text(kernel + launcher.replace("{}", "cudaStreamWaitEvent(own, begun, 0);"))
    assert excerpt(path).code.startswith('extern "C" int launch')
    assert excerpt(path).first == 9
    path.write_text(kernel + launcher.replace("{}", "// cudaStreamWaitEvent is not called"))
    assert "__global__" in excerpt(path).code


def test_a_missing_source_is_an_error_of_one_line(tmp_path):
    with pytest.raises(WarplogError, match=r"none\.cu: cannot be read"):
        excerpt(tmp_path / "none.cu")


@pytest.mark.parametrize(
    ("kernel", "line"),
    [
        ("small(float *)", 3),
        ("void ns::small<(int)4>(float const*)", 3),
        ("large(float*)", 7),
        ("other(float*)", 7),
    ],
)
def test_the_kernel_that_was_launched_is_shown_even_if_it_is_not_the_longest(tmp_path, kernel, line):
    assert excerpt(written(tmp_path, SMALL), kernel).first == line


def test_a_launched_kernel_is_found_in_the_file_that_defines_it(tmp_path):
    source = written(tmp_path, '#include "a.h"\n__global__ void helper(int* x) {\n    x[0] = 1;\n}\n')
    declared, defined = tmp_path / "a.h", tmp_path / "b.inl"
    declared.write_text("__global__ void main_kernel(float* x);\n")
    defined.write_text(
        "\ntemplate <int N>\n__global__ __launch_bounds__(N)\nvoid main_kernel(float* x) {\n  x[0] = N;\n}\n"
    )
    found = excerpt(source, "void main_kernel<(int)4>(float *)", [declared, defined])
    assert (found.file, found.first) == ("b.inl", 3)
    assert found.code.splitlines()[1] == "void main_kernel(float* x) {"
    assert excerpt(source, "of_a_library(float*)", [declared, defined]).first == 2
    marked = written(tmp_path, "int a;\n// [excerpt]\nint b;\n// [/excerpt]\n")
    assert excerpt(marked, "main_kernel(float*)", [defined]).code == "int b;", "marks go before"


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_source_has_an_excerpt_that_fits_a_page_and_is_whole(path):
    found = excerpt(path)
    lines = found.code.splitlines()
    assert 2 <= len(lines) <= PAGE_LINES + 8
    assert found.code.count("{") == found.code.count("}")
    assert path.read_text().splitlines()[found.first - 1].strip() == lines[0].strip()


TRITON = """\
import triton

SOURCE = "no kernel"


@triton.jit
def small(x):
    return x


@triton.autotune(configs=[], key=["n"])
@triton.jit
def large(x, y, n):
    for i in range(n):
        y += x
    return y


def launch(arrays, scalars, stream):
    large[(1,)](arrays["x"], arrays["y"], scalars["n"])
"""
RAW = '''\
import cupy

KERNEL = cupy.RawKernel(
    r"""
extern "C" __global__ void twice(float* x) {
    x[threadIdx.x] *= 2;
}
""",
    "twice",
)


def launch(arrays, scalars, stream):
    KERNEL((1,), (32,), (arrays["x"],))
'''


def in_python(folder: Path, text: str) -> Excerpt:
    path = folder / "some.py"
    path.write_text(text)
    return excerpt(path)


def test_of_a_triton_module_the_longest_kernel_is_shown_with_its_decorators(tmp_path):
    found = in_python(tmp_path, TRITON)
    assert (found.first, found.is_python) == (11, True)
    assert found.code.splitlines()[0].startswith("@triton.autotune")
    assert found.code.splitlines()[-1] == "    return y"


def test_of_a_python_module_the_kernel_that_was_launched_is_shown(tmp_path):
    (tmp_path / "some.py").write_text(TRITON)
    assert excerpt(tmp_path / "some.py", "small").code.splitlines()[1] == "def small(x):"
    assert excerpt(tmp_path / "some.py", "elsewhere").first == 11, "else the longest"
    both = RAW.replace("KERNEL =", 'OTHER = r"""\n__global__ void other() {\n\n\n\n\n\n}\n"""\nKERNEL =')
    (tmp_path / "raw.py").write_text(both)
    assert "void twice" in excerpt(tmp_path / "raw.py", "twice(float *)").code


def test_of_a_triton_kernel_longer_than_a_page_the_longest_loop_is_shown(tmp_path):
    body = "".join(f"    a{i} = {i}\n" for i in range(PAGE_LINES))
    found = in_python(tmp_path, TRITON.replace("    for i", f"{body}    for i"))
    assert found.code == "for i in range(n):\n    y += x"


def test_of_a_raw_kernel_the_string_is_shown(tmp_path):
    found = in_python(tmp_path, RAW)
    assert "__global__ void twice" in found.code
    assert "def launch" not in found.code


def test_marks_in_python_are_comments_of_python(tmp_path):
    marked = TRITON.replace("    for i", "    # [excerpt]\n    for i").replace(
        "    return y\n", "    # [/excerpt]\n"
    )
    assert in_python(tmp_path, marked).code == "for i in range(n):\n    y += x"


def test_a_module_without_a_kernel_shows_its_launch(tmp_path):
    found = in_python(
        tmp_path, "import torch\n\n\ndef launch(arrays, scalars, stream):\n    torch.softmax()\n"
    )
    assert found.code.startswith("def launch(")
