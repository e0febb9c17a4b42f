"""The key `compile` reaches nvcc, the record and the fingerprint; sources lie anywhere in the project."""

import ctypes
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from host_family import YAML, make_family
from sass_builds import compilers
from warplog.catalog.compiling import HEADERS
from warplog.catalog.family import Family, load_family
from warplog.measure.building import build
from warplog.measure.building.loading import why_not_loaded
from warplog.measure.building.quoting import Places, shortened
from warplog.records import build as records
from warplog.records import door

ROOT = Path(__file__).parents[3]
KERNEL = """
#include <cuda_runtime.h>
{above}
__global__ void scale(const float* x, float* y, int N, float factor) {{
    for (int i = threadIdx.x; i < N; i += blockDim.x) y[i] = factor * x[i];
}}
extern "C" int launch(const float* x, float* y, int N, float factor, cudaStream_t stream) {{
    {early}
    scale<<<1, 32, 0, stream>>>(x, y, N, factor);
    return {result};
}}
"""


def written(root: Path, entry: str = "", files: dict[str, str] | None = None, more: str = "") -> Family:
    """Writes root/kernels/scale whose variant has the keys `entry`, and other files of the project; loads it."""
    make_family(root / "kernels")
    path = root / "kernels" / "scale" / "family.yaml"
    for name, text in {"kernels/scale/right.cu": source(), **(files or {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    path.write_text(YAML.replace("{name: right,", f"{{name: right, {entry}") + more)
    return load_family(path)


def source(above: str = "", result: str = "cudaGetLastError()", early: str = "") -> str:
    return KERNEL.format(above=above, result=result, early=early)


def built(root: Path, family: Family) -> records.Build:
    folder = root / "results" / "build"
    return build.build_variant(family, family.variant("right"), "sm_90", *compilers(), folder)


@pytest.mark.nvcc
def test_options_of_family_and_variant_reach_the_compiler_and_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    above = """
#include "deep/size.h"
#include <concepts>
template <std::integral T> constexpr T same(T x) { return x; }
#if !defined(BARE) || THREADS != 64
#error missing
#endif
static_assert(HALF == 0.5 && sizeof(TEXT) == 9 && sizeof(WORD) == 1 && SIZE == 7);
int also(int);
"""
    files = {
        "kernels/scale/right.cu": source(above, "also(cudaGetLastError())"),
        "inc/deep/size.h": "#define SIZE 7\n",
        "src/also.cpp": '#include "also.h"\nint also(int code) { return code + ALSO - 3; }\n',
        "src/also.h": "#define ALSO 3\n",
    }
    own = (
        "compile: {std: 20, fast_math: true, include: [../../inc], sources: [../../src/also.cpp],"
        """ defines: {BARE: , HALF: 0.5, TEXT: '"two ways"', WORD: char}, flags: [-Xptxas --warn-on-spills]},"""
    )
    family = written(Path(), own, files, "compile: {defines: {THREADS: 64, HALF: 2}, flags: [-lineinfo]}\n")
    record = built(Path(), family)
    assert record.status == "ok", record.reason
    assert record.compile == records.Compiled(
        include=("../../inc",),
        flags=("-lineinfo", "-Xptxas", "--warn-on-spills"),
        defines={"THREADS": 64, "HALF": 0.5, "BARE": None, "TEXT": '"two ways"', "WORD": "char"},
        std=20,
        sources=("../../src/also.cpp",),
        fast_math=True,
    )
    assert {"-std=c++20", "--use_fast_math", "-DBARE", "-DWORD=char", "-Iinc"} <= set(record.command)
    assert {"src/also.cpp", "src/also.h", "inc/deep/size.h"} <= set(record.dependencies)
    assert door.read(Path("results/build/record.json"), records.Build) == record
    assert [kernel.kernel.split("(")[0] for kernel in record.kernels] == ["scale"]


@pytest.mark.nvcc
def test_device_code_of_several_sources_is_linked_where_a_flag_asks_for_it(tmp_path: Path) -> None:
    above = "__device__ float twice(float);\n__global__ void more(float* y) { *y = twice(*y); }"
    files = {
        "kernels/scale/right.cu": source(above),
        "src/also.cu": "__device__ float twice(float x) { return 2 * x; }\n",
    }
    family = written(tmp_path, "compile: {flags: [-rdc=true], sources: [../../src/also.cu]},", files)
    record = built(tmp_path, family)
    assert record.status == "ok", record.reason


@pytest.mark.parametrize(
    ("file", "entry", "more"),
    [
        ("src/also.cu", "", ""),
        ("src/also.cuh", "", ""),
        ("inc/size.h", "", ""),
        ("", "std: 20", ""),
        ("", "fast_math: true", ""),
        ("", "flags: [-maxrregcount=32]", ""),
        ("", "defines: {A: 1}", ""),
        ("", "link: [cuda]", ""),
        ("", "", "compile: {defines: {A: 2}}\n"),
    ],
)
def test_a_change_of_a_file_or_an_option_changes_the_fingerprint(
    tmp_path: Path, file: str, entry: str, more: str
) -> None:
    files = {
        "kernels/scale/right.cu": source('#include "size.h"'),
        "src/also.cu": '#include "also.cuh"\n',
        "src/also.cuh": "",
        "inc/size.h": "",
    }
    common = "include: [../../inc], sources: [../../src/also.cu]"
    before = written(tmp_path, f"compile: {{{common}}},", files).variant("right")
    headers = {os.path.relpath(path, tmp_path) for path in before.headers()}
    assert headers == {"src/also.cu", "src/also.cuh", "inc/size.h"}
    hashes = {before.fingerprint()}
    if file:
        (tmp_path / file).write_text("// changed\n")
    changed = load_family(before.folder / "family.yaml")
    if entry or more:
        changed = written(tmp_path, f"compile: {{{common}, {entry}}},", files, more)
    assert changed.variant("right").fingerprint() not in hashes


@pytest.mark.nvcc
def test_helpers_of_warplog_are_on_the_include_path(tmp_path: Path) -> None:
    above = "#include <warplog/workspace.cuh>\n#include <warplog/cublas.cuh>\n#include <warplog/tma.cuh>\n"
    result = "cublas::library().error | workspace(64, nullptr) | tma::Map().describe(nullptr, 1, 8, 1)"
    family = written(tmp_path, files={"kernels/scale/right.cu": source(above, result)})
    record = built(tmp_path, family)
    assert record.status == "ok", record.reason
    names = {Path(name).name for name in record.dependencies}
    assert names == {"right.cu", "workspace.cuh", "cublas.cuh", "tma.cuh", "mbarrier.cuh"}


def test_an_installed_package_has_the_helpers_too() -> None:
    """In a checkout they are reached by a symbolic link; a wheel contains them under the same name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["kernels/include"] == f"warplog/{HEADERS.name}/warplog"
    assert (HEADERS / "warplog").resolve() == ROOT / "kernels" / "include"


@pytest.mark.nvcc
def test_a_source_elsewhere_in_the_repository_is_compiled_and_quoted_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "repository" / "warplog"
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    files = {"../src/deep/mine.cu": source('#include "mine.h"'), "../src/deep/mine.h": ""}
    family = written(project, "file: ../../../src/deep/mine.cu,", files)
    monkeypatch.chdir(project)
    family = load_family(Path("kernels/scale/family.yaml"))
    assert family.variant("right").file == Path("../src/deep/mine.cu")
    record = built(Path(), family)
    assert record.status == "ok", record.reason
    assert set(record.dependencies) == {"../src/deep/mine.cu", "../src/deep/mine.h"}
    Path("../src/deep/mine.h").write_text("int x = nothing;\n")
    wrong = built(Path(), family)
    assert wrong.reason == '../src/deep/mine.h(1): error: identifier "nothing" is undefined'
    assert "int x = nothing;" in wrong.compiler_output


@pytest.mark.nvcc
def test_a_library_of_the_driver_is_linked_where_no_driver_is_installed(tmp_path: Path) -> None:
    files = {"kernels/scale/right.cu": source("#include <cuda.h>", "cuInit(0)")}
    record = built(tmp_path, written(tmp_path, "compile: {link: [cuda]},", files))
    assert record.status == "ok", record.reason
    needed = subprocess.run(
        ["readelf", "-d", tmp_path / "results/build/kernel.so"], capture_output=True, text=True, check=True
    ).stdout
    assert "[libcuda.so.1]" in needed


@pytest.mark.nvcc
def test_a_library_that_is_not_installed_is_named_with_the_remedy(tmp_path: Path) -> None:
    record = built(tmp_path, written(tmp_path, "compile: {link: [nosuchlibrary]},"))
    assert record.status == "compile_error"
    assert record.reason.startswith("cannot find -lnosuchlibrary: install the library, or name its folder")


def compiled(root: Path, arch: str, **parts: str) -> None:
    """Compiles root/lib/libmine.so, which defines a function that a launcher can call."""
    made = root / "lib" / "libmine.so"
    made.parent.mkdir(exist_ok=True)
    made.unlink(missing_ok=True)  # a process may have loaded it
    text = made.with_suffix(".cu")
    text.write_text(source(**parts))
    code = f"arch={arch.replace('sm_', 'compute_')},code={arch}"
    command = [compilers()[0].path, "-shared", "-nodlink", "-Xcompiler", "-fPIC", "-gencode", code]
    subprocess.run([*command, "-Xlinker", f"-soname={made.name}", text, "-o", made], check=True)


def host_library(library: Path, text: str) -> None:
    """Compiles a library without device code."""
    source = library.with_suffix(".cpp")
    source.write_text(text)
    library.unlink(missing_ok=True)  # a process may have loaded it
    subprocess.run(["c++", "-shared", "-fPIC", source, "-o", library], check=True)


class Build(NamedTuple):
    """A build of a variant that is a compiled library: its folder and record, and the variant's fingerprint."""

    folder: Path
    record: records.Build
    fingerprint: str


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> list[Build]:
    """Returns builds with two libraries of the same name, whose `launch` returns ten times N, plus 1 or 2."""
    root = tmp_path_factory.mktemp("rebuilt")
    builds = []
    for number in (1, 2):
        compiled(root, "sm_90", early=f"if (N) return N * 10 + {number};")
        family = written(root, "library: ../../lib/libmine.so,")
        record = built(root, family)
        folder = (root / "results/build").rename(root / f"build{number}")
        builds.append(Build(folder, record, family.variant("right").fingerprint()))
    return builds


@pytest.mark.nvcc
def test_a_compiled_library_has_a_launcher_and_its_kernels_come_from_cuobjdump(rebuilt: list[Build]) -> None:
    first, again = (one.record for one in rebuilt)
    assert first.status == "ok", first.reason
    (kernel,) = first.kernels
    assert kernel.kernel.startswith("scale(")
    assert kernel.registers_per_thread > 0
    assert kernel.sass_instructions == sum(kernel.opcodes.values()) > 10
    assert any(opcode.startswith("STG") for opcode in kernel.opcodes)
    assert kernel.spill_store_bytes is None, "cuobjdump does not report spills"
    assert first.source_sha256 == rebuilt[0].fingerprint
    assert again.source_sha256 != first.source_sha256
    assert again.library_sha256 != first.library_sha256, "a rebuilt library is measured again"


def called(library: Path, *arguments: object) -> int:
    """Calls the launcher of a library with packed arguments; they are 8 bytes or less and of ctypes' types."""
    fields = [(f"a{number}", type(value)) for number, value in enumerate(arguments)]
    packed = type("Packed", (ctypes.Structure,), {"_fields_": fields})(*arguments)
    return ctypes.CDLL(str(library)).warplog_launch(ctypes.byref(packed), None)


@pytest.mark.nvcc
def test_the_launcher_of_a_compiled_library_calls_its_own_copy(rebuilt: list[Build]) -> None:
    """Two libraries with the same name in one process are two, and a later build does not change the first."""
    x, y, n, factor = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(7), ctypes.c_float(2)
    assert [called(one.folder / "kernel.so", x, y, n, factor) for one in rebuilt] == [71, 72]


@pytest.mark.nvcc
def test_a_borrowed_baseline_gets_its_arguments_by_name(tmp_path: Path) -> None:
    lender = written(
        tmp_path, files={"kernels/scale/right.cu": source(early="if (N) return N + 10 * (int)factor;")}
    )
    folder = shutil.copytree(lender.folder, tmp_path / "kernels" / "mine")
    order = "  - {name: factor, kind: scalar, dtype: float32}\n"
    moved = YAML[YAML.index("  - {name: x") : YAML.index(order)]
    text = YAML.replace("family: scale", "family: mine").replace(moved + order, order + moved)
    text = text.replace("baseline: right", "baseline: scale.right").replace(
        "{name: right,", "{name: own, file: right.cu,"
    )
    (folder / "family.yaml").write_text(text)
    family = load_family(folder / "family.yaml")
    record = built(tmp_path, family)
    assert record.status == "ok", record.reason
    arguments = ctypes.c_float(2), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(7)
    assert called(tmp_path / "results/build/kernel.so", *arguments) == 27


@pytest.mark.nvcc
def test_a_compiled_library_for_another_gpu_or_without_launch_is_refused(tmp_path: Path) -> None:
    compiled(tmp_path, "sm_80")
    family = written(tmp_path, "library: ../../lib/libmine.so,")
    record = built(tmp_path, family)
    assert record.status == "compile_error"
    assert "has machine code for sm_80 and no PTX; compile it for sm_90" in record.reason
    host_library(tmp_path / "lib" / "libmine.so", 'extern "C" int start() { return 0; }')
    record = built(tmp_path, family)
    assert record.status == "compile_error"
    assert 'undefined symbol: launch; it must define extern "C" int launch' in record.reason


def test_a_launch_of_cpp_in_a_compiled_library_is_shown_as_what_was_found(tmp_path: Path) -> None:
    library = tmp_path / "mine.so"
    host_library(library, "int launch(const float*, int) { return 0; }")
    why = why_not_loaded(library, "launch")
    assert 'it must define extern "C" int launch' in why
    assert "got launch(float const*, int) of C++" in why


def test_long_paths_are_cut_in_the_middle_and_short_ones_are_not() -> None:
    long = "/usr/local/cuda-13.0/targets/x86_64-linux/include/cub/device/dispatch/dispatch_scan.cuh"
    text = f"{long}(308): error: no\n  detected at line 4 of kernels/scale/parts/a.cu and/or {long}:3"
    first, second = shortened(text).splitlines()
    cut = "/usr/.../include/cub/device/dispatch/dispatch_scan.cuh"
    assert first == f"{cut}(308): error: no"
    assert second == f"  detected at line 4 of kernels/scale/parts/a.cu and/or {cut}:3"
    name = "x" * 80
    assert shortened(f"a/b/{name}.cu") == f"a/.../{name}.cu"


def test_a_file_of_the_repository_of_other_kernels_is_named_below_dots(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    places = Places(tmp_path / "mine", theirs / "kernels", tmp_path / "out", tmp_path / "cuda", theirs)
    assert places.name(theirs / "src" / "a.cu") == ".../src/a.cu"
    assert places.text(f"{theirs}/src/a.cu(3)") == ".../src/a.cu(3)"
