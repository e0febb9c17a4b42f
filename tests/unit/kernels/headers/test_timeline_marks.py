"""The marks of kernels/include/timeline.cuh: nothing in the build that is timed, and what the other build contains."""

import ctypes
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from host_headers import KERNELS, host_library

from sass_builds import Kind, built, compilers
from shipped_families import FAMILIES
from warplog.catalog.family import load_family
from warplog.core.process import minimal_env, run
from warplog.machine import aslr
from warplog.measure.building import build
from warplog.metrics.tracks import REGIONS
from warplog.parsers import sass
from warplog.parsers.timeline_buffer import EVENT, HEAD, WARP

HEADER = KERNELS / "include" / "timeline.cuh"
MARKED = [(f.name, name) for f in FAMILIES.values() for name in f.timeline]
# Not of sgemm, whose kernels take longest to compile.
BIT_BY_BIT = [
    ("bf16_gemm", "wgmma_tma_store"),
    ("bf16_gemm", "wgmma_stream_k"),
    ("scan", "decoupled_lookback"),
]
# nvcc gives some kernels of sgemm one of few PTX texts, depending on the names of its files.
MOST_RUNS = 4
# It always gives this kernel another one.
UNSTABLE = ("sgemm", "tma_pipelined")
# Registers that a warpgroup of producers keeps, where it gives the others away.
KEPT_REGISTERS = {"wgmma_tma_store": 24, "wgmma_stream_k": 40}
LAYOUT = """
#define WARPLOG_TIMELINE
#include "timeline.cuh"
using namespace timeline;
extern "C" int layout(int* out) {
    const int sizes[] = {sizeof(Head), sizeof(WarpRecord), sizeof(Event), sizeof(Buffer),
                         offsetof(Head, lost_warps), offsetof(WarpRecord, end_ns), offsetof(WarpRecord, sm),
                         offsetof(WarpRecord, events), offsetof(Event, region), offsetof(Buffer, most_events)};
    for (int i = 0; i < 10; ++i) out[i] = sizes[i];
    return 10;
}
"""


def without_marks(text: str) -> str:
    """A source as if its marks had never been written."""
    lines = text.splitlines(keepends=True)
    return "".join(li for li in lines if "timeline.cuh" not in li and not li.strip().startswith("TIMELINE"))


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """The kernels as they are, and without marks, in folders whose names are equally long.

    ptxas compiles some kernels differently depending on addresses in its memory, and so on the length of its arguments.
    """
    folder = tmp_path_factory.mktemp("marks")
    for name in ("with", "none"):
        shutil.copytree(KERNELS, folder / name)
    for path in [*(folder / "none").rglob("*.cu"), *(folder / "none").rglob("*.cuh")]:
        path.write_text(without_marks(path.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "none" / "include" / HEADER.name).unlink()
    return folder / "with", folder / "none"


def compiled(tree: Path, family: str, name: str, option: str, suffix: str = "") -> Path:
    """What nvcc makes of the kernels of a variant with -ptx or -cubin, in a folder whose name ends with `suffix`."""
    nvcc, _ = compilers()
    contract = load_family(tree / family / "family.yaml")
    variant = contract.variant(name)
    folder = tree.parent / f"{tree.name}_{family}_{name}{suffix}"
    folder.mkdir(exist_ok=True)
    source, output = folder / "launcher.cu", folder / f"kernel{option.replace('-', '.')}"
    source.write_text(build.launcher_source(contract, variant))
    target = variant.requires.arch if variant.requires.arch == "sm_90a" else "sm_90"
    command = build.compile_command(nvcc, variant, source, target, output)
    command[command.index("-shared")] = option
    command.remove("-lineinfo")  # line numbers differ, and nothing else may
    command += [
        "--keep",
        "--keep-dir",
        str(folder),
    ]  # temporary files otherwise have the number of the process
    with aslr.fixed():
        done = run(command, timeout_s=900, env=minimal_env())
    assert done.ok, done.output_tail
    return output


def of_both(trees, family, name, option, suffix=""):
    with ThreadPoolExecutor(2) as pool:
        return pool.map(lambda tree: compiled(tree, family, name, option, suffix), trees)


@pytest.mark.nvcc
@pytest.mark.parametrize(("family", "name"), [p for p in MARKED if p not in (*BIT_BY_BIT, UNSTABLE)])
def test_a_kernel_is_the_same_to_ptxas_with_and_without_marks(trees, family, name):
    marked, plain = set(), set()
    for attempt in range(MOST_RUNS):
        paths = of_both(trees, family, name, "-ptx", "x" * attempt)
        for found, path in zip((marked, plain), paths, strict=True):
            found.add(path.read_text())
        if marked & plain:
            break
    assert all(".entry" in text for text in plain)
    assert marked & plain


@pytest.mark.nvcc
@pytest.mark.parametrize(("family", "name"), BIT_BY_BIT)
def test_machine_code_is_bit_identical_with_and_without_marks(trees, family, name):
    _, cuobjdump = compilers()
    dumps = []
    for cubin in of_both(trees, family, name, "-cubin"):
        dump = cubin.with_suffix(".sass")
        done = run([str(cuobjdump.path), "-sass", str(cubin)], timeout_s=300, env=minimal_env(), log=dump)
        assert done.ok, done.output_tail
        dumps.append(dump.read_text().partition("Function")[2])
    assert len(re.findall(r"/\* 0x[0-9a-f]{16} \*/", dumps[0])) > 1000  # with their encodings
    assert dumps[0] == dumps[1]


def test_marks_are_lines_of_their_own():
    """So that a kernel reads as without them; `without_marks` relies on it."""
    for path in [*KERNELS.glob("*/*.cu"), *KERNELS.glob("*/*.cuh")]:
        if path == HEADER:
            continue
        for line in re.findall(r"^.*\bTIMELINE.*$", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert re.fullmatch(r"\s+TIMELINE(_TRACK\(\w+\)|\([\w.]+, [A-Z]+\));", line), (path, line)


def test_a_mark_expands_to_nothing_unless_it_is_asked_for():
    off = HEADER.read_text(encoding="utf-8").partition("#ifndef WARPLOG_TIMELINE\n")[2].partition("#else")[0]
    assert off.split("\n") == ["", "#define TIMELINE_TRACK(track)", "#define TIMELINE(track, region)", "", ""]


def test_at_least_eight_rungs_are_marked_and_each_one_that_family_yaml_lists():
    assert len(MARKED) >= 8
    for family, name in MARKED:
        variant = FAMILIES[family].variant(name)
        texts = [
            path.read_text(encoding="utf-8") for path in (variant.file, *variant.headers()) if path != HEADER
        ]
        assert HEADER.resolve() in [path.resolve() for path in variant.headers()], name
        assert any("TIMELINE_TRACK(" in text for text in texts), name
        used = {region for text in texts for region in re.findall(r"TIMELINE\([\w.]+, (\w+)\)", text)}
        assert {"STORE", "LOAD"} <= used, name


@pytest.mark.nvcc
@pytest.mark.parametrize(("family", "name"), MARKED)
def test_the_build_with_marks_writes_events_without_warnings_or_spills(family, name, kept_builds):
    variant = FAMILIES[family].variant(name)
    marked = replace(variant, parameters={**variant.parameters, "WARPLOG_TIMELINE": 1})
    folder, record = built(FAMILIES[family], marked, "sm_90", kept_builds, Kind.KERNELS)
    assert record["status"] == "ok", record["reason"]
    log = (folder / "compile.log").read_text()
    assert "warning" not in log
    assert "C75" not in log  # ptxas did not serialise the asynchronous products
    assert sum(kernel["spill_store_bytes"] for kernel in record["kernels"]) == 0
    assert sum(sass.matching(kernel["opcodes"], "CS2R.32") for kernel in record["kernels"]) >= 4
    if most := KEPT_REGISTERS.get(name):
        text = (folder / "kernel.sass").read_text()
        own = text[text.index("USETMAXREG.DEALLOC") : text.rindex("EXIT")]
        assert max(int(number) for number in re.findall(r"\bR(\d+)\b", own)) < most


def test_regions_have_the_same_names_and_numbers_in_python():
    body = re.search(r"enum Region : unsigned \{(.*?)\}", HEADER.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert tuple(name.lower() for name in re.findall(r"^\s+([A-Z]+),", body, re.MULTILINE)) == REGIONS


@pytest.mark.nvcc
def test_structures_have_the_same_layout_in_python(tmp_path):
    from warplog.measure.worker.timeline_case import Buffer

    found = (ctypes.c_int * 10)()
    assert host_library(LAYOUT, tmp_path).layout(found) == 10
    offsets = [HEAD.fields["lost_warps"], WARP.fields["end_ns"], WARP.fields["sm"], WARP.fields["events"]]
    expected = [HEAD.itemsize, WARP.itemsize, EVENT.itemsize, ctypes.sizeof(Buffer)]
    expected += [offset for _, offset in offsets] + [EVENT.fields["region"][1], Buffer.most_events.offset]
    assert list(found) == expected
