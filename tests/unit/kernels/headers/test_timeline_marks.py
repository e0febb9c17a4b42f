"""The marks of kernels/include/timeline.cuh: nothing in the build that is timed, and what the other build contains."""

import ctypes
import re
import shutil
from pathlib import Path

import pytest
from host_headers import KERNELS, host_library
from msgspec import structs

from sass_builds import Kind, built, compilers
from shipped_families import FAMILIES
from warplog.catalog.family import load_family
from warplog.core.process import minimal_env, run
from warplog.measure.building import build
from warplog.metrics.tracks import REGIONS
from warplog.parsers import sass
from warplog.parsers.timeline_buffer import EVENT, HEAD, WARP

HEADER = KERNELS / "include" / "timeline.cuh"
MARKED = [(f.name, name) for f in FAMILIES.values() for name in f.timeline]
LAST_OF_EACH = [(f.name, [*f.timeline][-1]) for f in FAMILIES.values() if f.timeline]
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
    """The kernels as they are, and without marks."""
    folder = tmp_path_factory.mktemp("marks")
    for name in ("with", "none"):
        shutil.copytree(KERNELS, folder / name)
    for path in [*(folder / "none").rglob("*.cu"), *(folder / "none").rglob("*.cuh")]:
        path.write_text(without_marks(path.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "none" / "include" / HEADER.name).unlink()
    return folder / "with", folder / "none"


def preprocessed(tree: Path, family: str, name: str) -> list[str]:
    """What the compiler gets to see of a variant, without line numbers, empty lines and empty statements."""
    nvcc, _ = compilers()
    contract = load_family(tree / family / "family.yaml")
    variant = contract.variant(name)
    source = tree / f"{family}_{name}.cu"
    source.write_text(build.launcher_source(contract, variant))
    output = source.with_suffix(".i")
    command = build.compile_command(nvcc, variant, source, "sm_90a", output)
    command[command.index("-shared")] = "-E"
    done = run(command, timeout_s=100, env=minimal_env())
    assert done.ok, done.output_tail
    lines = (line.strip() for line in output.read_text().splitlines() if not line.startswith("#"))
    return [line for line in lines if line not in ("", ";")]


@pytest.mark.nvcc
@pytest.mark.parametrize(("family", "name"), LAST_OF_EACH)
def test_the_compiler_sees_the_same_kernel_with_and_without_marks(trees, family, name):
    marked, plain = (preprocessed(tree, family, name) for tree in trees)
    assert any("__global__" in line or "__attribute__((global))" in line for line in plain)
    assert marked == plain


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
    marked = structs.replace(variant, parameters={**variant.parameters, "WARPLOG_TIMELINE": 1})
    folder, record = built(FAMILIES[family], marked, "sm_90", kept_builds, Kind.KERNELS)
    assert record.status == "ok", record.reason
    log = (folder / "compile.log").read_text()
    assert "warning" not in log
    assert "C75" not in log  # ptxas did not serialise the asynchronous products
    assert sum(kernel.spill_store_bytes for kernel in record.kernels) == 0
    assert sum(sass.matching(kernel.opcodes, "CS2R.32") for kernel in record.kernels) >= 4
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
