"""The files that decide a build: wherever a header lies, a change of it changes the fingerprint of the source."""

from pathlib import Path

import pytest

from host_family import make_family
from warplog.catalog.family import Variant


@pytest.fixture
def right(tmp_path: Path) -> Variant:
    """Returns the variant `right` of a family in kernels/scale."""
    return make_family(tmp_path / "kernels").variant("right")


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def names(variant: Variant, root: Path) -> list[str]:
    return [header.relative_to(root).as_posix() for header in variant.headers()]


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ('#include "h.cuh"', "kernels/scale/h.cuh"),
        ('#include "parts/deep/h.hpp"', "kernels/scale/parts/deep/h.hpp"),
        ('#include "../src/h.inl"', "kernels/src/h.inl"),
        ('#include "../../src/h.cuh"', "src/h.cuh"),
        ('#include "common.cuh"', "kernels/include/common.cuh"),
        ("#include <ours/h.cuh>", "kernels/include/ours/h.cuh"),
        ("  #  include <h.cuh> // why", "kernels/scale/h.cuh"),
        ("#if 0\n#include <h.cuh>\n#endif", "kernels/scale/h.cuh"),
        ('#define TILE "tiles/a.h"\n#include TILE', "kernels/scale/tiles/a.h"),
        ('#if defined(X) && __has_include("h.cuh")\n#endif', "kernels/scale/h.cuh"),
        ('#include "a b (1).cuh"', "kernels/scale/a b (1).cuh"),
    ],
)
def test_an_edited_header_changes_the_fingerprint(
    tmp_path: Path, right: Variant, line: str, header: str
) -> None:
    right.file.write_text(f"{line}\n")
    without = right.fingerprint()
    write(tmp_path, {header: "// one\n"})
    assert names(right, tmp_path) == [header]
    added = right.fingerprint()
    write(tmp_path, {header: "// two\n"})
    assert len({without, added, right.fingerprint()}) == 3


def test_headers_of_headers_are_found_beside_them_and_circles_end(tmp_path: Path, right: Variant) -> None:
    right.file.write_text('#include "parts/a.cuh"\n')
    parts = {"a.cuh": '#include "b.cuh"\n', "b.cuh": '#include "a.cuh"\n#include "../c.cuh"\n'}
    write(tmp_path, {f"kernels/scale/parts/{name}": text for name, text in parts.items()})
    write(
        tmp_path, {"kernels/scale/b.cuh": "// never read\n", "kernels/scale/c.cuh": '#include "right.cu"\n'}
    )
    folder = "kernels/scale"
    assert names(right, tmp_path) == [f"{folder}/c.cuh", f"{folder}/parts/a.cuh", f"{folder}/parts/b.cuh"]


def test_a_new_header_that_shadows_another_takes_its_place(tmp_path: Path, right: Variant) -> None:
    right.file.write_text('#include "h.cuh"\n')
    write(tmp_path, {"kernels/include/h.cuh": "// the same\n"})
    assert names(right, tmp_path) == ["kernels/include/h.cuh"]
    write(tmp_path, {"kernels/scale/h.cuh": "// another\n"})
    assert names(right, tmp_path) == ["kernels/scale/h.cuh"]
    (tmp_path / "kernels/scale/h.cuh").unlink()
    assert names(right, tmp_path) == ["kernels/include/h.cuh"]


def test_headers_of_the_system_and_names_that_no_file_has_are_left_out(
    tmp_path: Path, right: Variant
) -> None:
    right.file.write_text(
        f'#include <cuda_runtime.h>\n#include <vector>\n#include "{"x" * 190}/{"y" * 300}.h"\n#define T "%d\\n"\n'
    )
    assert names(right, tmp_path) == []


def test_a_folder_behind_a_symbolic_link_is_followed_as_the_compiler_does(
    tmp_path: Path, right: Variant
) -> None:
    """`link/../h.cuh` lies beside the folder that the link leads to, not beside the link."""
    write(
        tmp_path,
        {"elsewhere/deep/x.cuh": "", "elsewhere/h.cuh": "// right\n", "kernels/scale/h.cuh": "// wrong\n"},
    )
    (right.file.parent / "link").symlink_to(tmp_path / "elsewhere" / "deep")
    right.file.write_text('#include "link/../h.cuh"\n')
    (header,) = right.headers()
    assert header.read_text() == "// right\n"
