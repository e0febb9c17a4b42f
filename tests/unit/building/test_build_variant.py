"""Building a variant: what nvcc read, which failures become a status, and what they say."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import made_up_records
from host_family import make_family
from sass_builds import compilers
from warplog.catalog.family import Family, Variant, load_family
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file
from warplog.core.locks import locked
from warplog.machine import toolchain
from warplog.machine.toolchain import Tool
from warplog.measure.building import build, dependencies
from warplog.measure.building import variant as built_variant
from warplog.measure.building.job import BuildJob
from warplog.measure.building.quoting import Places
from warplog.records import door
from warplog.records.build import Build

KERNEL = """
#include <cuda_runtime.h>
{above}
namespace {{
__global__ void scale(const float* x, float* y, int N, float factor) {{
    for (int i = threadIdx.x; i < N; i += blockDim.x) y[i] = factor * x[i];
}}
}}
extern "C" int {name}({arguments}) {{
    scale<<<1, 32, 0, stream>>>(x, y, N, factor);
    return {result};
}}
"""
PARTS = {
    "name": "launch",
    "arguments": "const float* x, float* y, int N, float factor, cudaStream_t stream",
    "result": "cudaGetLastError()",
}


def built(root: Path, above: str = "", attempt: int = 1, **parts: str) -> Build:
    """Compiles a kernel in root/kernels/scale with other parts; returns its record."""
    family = make_family(root / "kernels")
    variant = family.variant("right")
    variant.file.write_text(KERNEL.format(above=above, **(PARTS | parts)))
    folder = root / "results" / "build"
    record = build.build_variant(family, variant, "sm_90", *compilers(), folder, attempt)
    assert door.read(folder / "record.json", Build) == record
    return record


@pytest.mark.nvcc
def test_the_record_lists_what_nvcc_read_relative_to_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("kernels/scale/parts/a b.cuh", "kernels/src/c.inl", "kernels/include/ours/d.hpp"):
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text(f"// {name}\n")
    above = (
        '#include "parts/a b.cuh"\n#include "../src/c.inl"\n#ifdef __CUDA_ARCH__\n#include <ours/d.hpp>\n#endif\n'
        '#if 0\n#include "../src/unread.h"\n#endif\n'
    )
    Path("kernels/src/unread.h").write_text("// in no build\n")
    record = built(Path(), above, attempt=3)
    assert (record.status, record.attempt) == ("ok", 3), record.reason
    read = ("right.cu", "parts/a b.cuh", "../src/c.inl", "../include/ours/d.hpp")
    files = [Path(os.path.normpath(Path("kernels/scale") / name)) for name in read]
    assert record.dependencies == {str(file): sha256_file(file) for file in files}
    variant = load_family(Path("kernels/scale/family.yaml")).variant("right")
    assert set(files) - {variant.file} < set(variant.headers()), "the plan knows more, and nothing less"


@pytest.mark.nvcc
def test_a_header_that_only_the_compiler_can_find_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kernels/scale").mkdir(parents=True)
    (tmp_path / "kernels/scale/tile_8.cuh").touch()
    above = "#define TEXT(x) #x\n#define NAME(n) TEXT(tile_##n.cuh)\n#include NAME(8)\n"
    record = built(tmp_path, above)
    assert record.status == "compile_error"
    assert "nvcc read .../scale/tile_8.cuh, but no #include line names it" in record.reason
    assert built(tmp_path, f'{above}#if 0\n#include "tile_8.cuh"\n#endif\n').status == "ok"


@pytest.mark.nvcc
def test_machine_code_and_names_of_symbols_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    one, other = (built(tmp_path / name) for name in ("one", "another/and/deeper"))
    assert one.status == "ok", one.reason
    assert "GLOBAL__N" in one.kernels[0].mangled, "it is internal, so that its name contains a hash"
    assert one.kernels == other.kernels


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"above": "int missing(int);", "result": "missing(N)"},
            "undefined symbol: _Z7missingi, missing(int); only",
        ),
        (
            {"above": 'extern "C" int cublasNoSuch();', "result": "cublasNoSuch()"},
            "undefined symbol: cublasNoSuch; libcublas has it: add `compile: {link: [cublas]}` to the variant",
        ),
        (
            {"above": "#include <cuda.h>", "result": "cuInit(0)"},
            "undefined symbol: cuInit; libcuda has it: add `compile: {link: [cuda]}` to the variant",
        ),
        (
            {"above": '#include "gone/h.cuh"'},
            "gone/h.cuh: No such file or directory; name the folder ... `compile: {include: [FOLDER]}`",
        ),
        (
            {"arguments": "const float* x, float* y, float factor, int N, cudaStream_t stream"},
            "right.cu: must define int launch(const float* x, float* y, int N, float factor, cudaStream_t stream) ..."
            " family.yaml; got int launch(const float *, float *, float, int, cudaStream_t)",
        ),
        (
            {"name": "start"},
            "right.cu: must define int launch(const float* x, float* y, int N, float factor, cudaStream_t stream) ..."
            ' family.yaml; got none: ... "launch" is undefined',
        ),
        (
            {"above": "struct A { A() { __builtin_trap(); } } a;"},
            "the library cannot be loaded: killed by SIG",
        ),
    ],
    ids=[
        "missing function",
        "missing library",
        "missing driver",
        "missing header",
        "swapped",
        "no launch",
        "crash",
    ],
)
def test_a_build_that_cannot_be_run_has_a_status_with_reason_and_remedy(
    tmp_path: Path, changes: dict[str, str], words: str
) -> None:
    record = built(tmp_path, **changes)
    assert record.status == "compile_error"
    assert [part for part in words.split(" ... ") if part not in record.reason] == [], record.reason
    assert (tmp_path / "results/build/kernel.so").read_bytes() == b""


@pytest.mark.nvcc
def test_a_source_that_changes_while_it_is_compiled_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the record would name a source that the library was not made of."""

    def edit_as_well(listing: Path, generated: Path) -> list[Path]:
        source = tmp_path / "kernels/scale/right.cu"
        source.write_text(source.read_text() + "// edited\n")
        return []

    monkeypatch.setattr(dependencies, "read", edit_as_well)
    with pytest.raises(
        WarplogError, match=r"right\.cu: it or a header changed while nvcc compiled it; run again"
    ):
        built(tmp_path)
    assert not (tmp_path / "results/build/record.json").exists()


def test_a_list_of_dependencies_is_read_without_the_headers_of_cuda(tmp_path: Path) -> None:
    listing = tmp_path / "kernel.d"
    listing.write_text(
        "out/kernel.so : out/launcher.cu \\\n /cuda/13/include/cuda_runtime.h \\\n /cuda/13/include/crt/x.h \\\n"
        "    kernels/a\\ b/../c\\#.cuh \\\n    kernels/$$d.cu\n"
    )
    files = dependencies.read(listing, Path("out/launcher.cu"))
    assert files == [Path("kernels/c#.cuh"), Path("kernels/$d.cu")]


SECRET = "root:x:0:0:the secret of the machine:/root:/bin/bash"


@pytest.mark.nvcc
@pytest.mark.parametrize("place", ["{outside}/passwd", "{link}", ".env"])
def test_a_record_quotes_no_line_of_a_file_outside_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    outside, project = tmp_path / "etc", tmp_path / "project"
    (project / "kernels" / "scale").mkdir(parents=True)
    outside.mkdir()
    (outside / "passwd").write_text(f"{SECRET}\n")
    (project / "kernels" / "scale" / ".env").write_text(f"{SECRET}\n")
    (project / "kernels" / "scale" / "link.h").symlink_to(outside / "passwd")
    monkeypatch.chdir(project)
    name = place.format(outside=outside, link="link.h")
    record = built(Path(), f'int also = wrong;\n#include "{name}"')
    published = (project / "results/build/record.json").read_text()
    log = (project / "results/build/compile.log").read_text()
    assert record.status == "compile_error"
    assert f"{Path(name).name}:1: error: not quoted" in record.compiler_output
    assert 'identifier "wrong" is undefined' in log
    assert "int also = wrong;" in log, "lines of the project's own files are quoted"
    for text in (published, log):
        assert "secret" not in text
        assert "root" not in text
        assert str(tmp_path) not in text


@pytest.mark.nvcc
def test_a_record_names_neither_the_home_folder_nor_folders_outside_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernels lie in another project of the same user."""
    home, project = tmp_path / "home" / "alice", tmp_path / "home" / "alice" / "project"
    kernels = home / "client"
    (kernels / "kernels" / "include").mkdir(parents=True)
    (kernels / "kernels" / "include" / "ours.h").touch()
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    record = built(kernels, "#include <ours.h>")
    assert record.status == "ok", record.reason
    assert set(record.dependencies) == {".../scale/right.cu", ".../include/ours.h"}
    folders = [word for word in record.command if word.startswith("-I")]
    assert folders == ["-I.../scale", "-I.../include", "-I.../include"], "the last are the headers of warplog"
    wrong = built(kernels, "int wrong = none;")
    for text in (str(record), str(wrong), (kernels / "results/build/compile.log").read_text()):
        assert "alice" not in text
        assert str(tmp_path) not in text
    assert wrong.reason.startswith(".../scale/right.cu(3): error: identifier")


def test_messages_of_the_toolkit_stay_without_the_lines_that_they_quote(tmp_path: Path) -> None:
    project = tmp_path / "project"
    places = Places(project, project / "kernels", project / "results", tmp_path / "cuda")
    for name in ("project/kernels/a.cu", "cuda/include/cub.cuh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    output = f"""\
{tmp_path}/cuda/include/cub.cuh(308): error: static assertion failed with "32 threads"
    static_assert(quoted);
    ^
          detected during instantiation of "sum" at line 4 of {project}/kernels/a.cu

kernels/a.cu:4:2: warning: #warning mine [-Wcpp]
    4 | #warning mine
ptxas info    : Used 32 registers
"""
    assert places.quoted(output).splitlines() == [
        f'{tmp_path}/cuda/include/cub.cuh(308): error: static assertion failed with "32 threads"',
        '          detected during instantiation of "sum" at line 4 of kernels/a.cu',
        "kernels/a.cu:4:2: warning: #warning mine [-Wcpp]",
        "    4 | #warning mine",
        "ptxas info    : Used 32 registers",
    ]


def test_a_full_disk_is_no_compile_error_and_names_its_folder(tmp_path: Path) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho 'fatal error: when writing output: No space left on device'; exit 1\n")
    nvcc.chmod(0o755)
    with pytest.raises(
        WarplogError, match=r"build: nvcc found the disk full \(/.*: \d+ MiB free\); free space"
    ):
        build.build_timer(Tool("nvcc", nvcc, "13.0", ""), "sm_90", tmp_path / "build" / "timer.so")


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the hashes of the libraries that were made, one per build; each build makes another library."""
    made: list[str] = []

    def compiles(family: Family, variant: Variant, job: BuildJob) -> Build:
        job.folder.mkdir(parents=True, exist_ok=True)
        (job.folder / "kernel.so").write_bytes(b"library %d" % len(made))
        (job.folder / "kernel.sass").write_text("")
        made.append(sha256_file(job.folder / "kernel.so"))
        return made_up_records.build(library_sha256=made[-1])

    monkeypatch.setattr(built_variant, "_build", compiles)
    monkeypatch.setattr(toolchain, "ensure", lambda extra: None)
    monkeypatch.setattr(toolchain, "find", lambda name: Tool(name, tmp_path / name, "13.0", ""))
    return made


def job_of(place: Path, **changes: Any) -> BuildJob:
    family = make_family(place)
    first = BuildJob(family.file, "right", {}, "sm_90", place / "build" / "scale", 1, "contract")
    return replace(first, **changes)


def test_an_unchanged_build_is_kept_and_what_it_depends_on_makes_another(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two libraries of one source differ, so that a new one would have to be checked and measured anew."""
    job = job_of(tmp_path)
    record = job.folder / "record.json"
    for _ in range(2):
        built_variant.build_variant(job)
    assert (len(compiled), door.read(record, Build).library_sha256) == (1, compiled[0])
    (job.folder / "kernel.so").write_bytes(b"half a libr")
    built_variant.build_variant(job)
    built_variant.build_variant(replace(job, contract="another"))
    built_variant.build_variant(replace(job, contract="another", attempt=2))
    assert len(compiled) == 3
    monkeypatch.setattr(toolchain, "find", lambda name: Tool(name, tmp_path / name, "13.1", ""))
    built_variant.build_variant(replace(job, contract="another"))
    assert len(compiled) == 4
    door.write(record, structs.replace(door.read(record, Build), status="timeout", library_sha256=""))
    built_variant.build_variant(replace(job, contract="another"))
    assert len(compiled) == 5


def test_no_other_process_can_build_the_same_variant_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a `kill -9` of Snakemake its jobs go on, and the next run must not write the same files."""
    lock = tmp_path / "build" / ".scale.lock"
    seen = []

    def compiles(*_: object) -> Build:
        with pytest.raises(TimeoutError), locked(lock, "busy", 0):
            pass
        seen.append("compiled")
        return made_up_records.build()

    monkeypatch.setattr(built_variant, "_build", compiles)
    (tmp_path / "build" / "scale").mkdir(parents=True)
    built_variant.build_variant(job_of(tmp_path))
    with locked(lock, "busy", 0):
        assert seen == ["compiled"]
