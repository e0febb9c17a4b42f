"""The code of a step: the kernel wherever it lies, its difference to the parent's, and the samples of its lines."""

import math
import re
from pathlib import Path

import pytest
from msgspec import structs
from worklog_pages import FAMILY, Page, hot_line, section, uncharted

from warplog.worklog.code.boxes import parts
from warplog.worklog.code.heat import Heat, HeatMap, heat_map
from warplog.worklog.code.listing import Line, code, listing, without_marks
from warplog.worklog.html import html

KERNEL = """\
#pragma once
template <int N>
__device__ int load(int i) {
    return i;
}
template <int N>
__global__ void __launch_bounds__(Size<(N)>::THREADS)
    shared_kernel(int* x) {
    x[0] = load<N>(1);
}
"""
SOURCE = """\
// A title
#include "kernel.cuh"

using Layout = Padded;

extern "C" int launch(int* x) { return start<Layout>(x); }
"""
OWN = """\
__device__ int helper(int i) { return i + 1; }
__device__ int unused(int i) { return i; }
__global__ void own_kernel(int* x) {
    x[0] = helper(0);
}
extern "C" int launch(int* x) { return 0; }
"""
NO_HEAT = HeatMap()


def numbers(lines):
    return [(line.file, line.number) for line in lines]


def test_the_kernel_is_listed_and_not_its_launcher():
    lines = listing({Path("own.cu"): OWN}, "own_kernel", NO_HEAT)
    assert numbers(lines) == [("own.cu", n) for n in (1, 3, 4, 5)]  # with the function that it calls


def test_a_kernel_in_a_header_follows_the_code_that_chooses_it():
    lines = listing({Path("mine.cu"): SOURCE, Path("kernel.cuh"): KERNEL}, "shared_kernel", NO_HEAT)
    assert numbers(lines) == [
        *(("mine.cu", n) for n in (4, 5, 6)),
        *(("kernel.cuh", n) for n in range(2, 11)),  # with the function that it calls
    ]


def test_marks_of_timelines_are_left_out_and_line_numbers_stay():
    text = OWN.replace("    x[0]", "    TIMELINE(track, WAIT);\n    x[0]")
    lines = without_marks(listing({Path("own.cu"): text}, "own_kernel", NO_HEAT))
    assert numbers(lines) == [("own.cu", n) for n in (1, 3, 5, 6)]


def test_a_function_of_a_header_is_listed_if_many_samples_are_in_it():
    row = {"file": "kernel.cuh", "line": 4, "text": "return i;", "sample_share": 0.4, "instruction_share": 0.1,
           "shared_wavefronts_excess": 0.0, "stall": "wait"}  # fmt: skip
    heat = heat_map([row], {"kernel.cuh": KERNEL})
    texts = {Path("own.cu"): OWN, Path("kernel.cuh"): KERNEL}
    assert ("kernel.cuh", 4) in numbers(listing(texts, "own_kernel", heat))
    assert ("kernel.cuh", 4) not in numbers(listing(texts, "own_kernel", NO_HEAT))


def test_a_line_with_a_comment_at_its_end_keeps_its_samples():
    """The table `lines` holds the code with single spaces."""
    row = {"file": "own.cu", "line": 2, "text": "x[0] = 1; // one", "sample_share": 0.4, "instruction_share": 0.1,
           "shared_wavefronts_excess": 0.0, "stall": "wait"}  # fmt: skip
    heat = heat_map([row], {"own.cu": "__global__ void own(int* x) {\n    x[0] = 1;  // one\n}\n"})
    assert heat.places["own.cu", 2].share == 0.4
    assert heat.outside == {}


def test_marks_choose_the_code_in_a_header_too():
    marked = KERNEL.replace("    return i;", "    // [excerpt]\n    return i;\n    // [/excerpt]")
    lines = listing({Path("mine.cu"): SOURCE, Path("kernel.cuh"): marked}, "shared_kernel", NO_HEAT)
    assert [line.text.strip() for line in lines] == ["return i;"]


def test_a_diff_has_the_line_numbers_of_each_source_and_folds_what_is_the_same():
    body = "".join(f"    x[{n}] = {n};\n" for n in range(20))
    before = f"__global__ void one(int* x) {{\n{body}}}\n"
    after = before.replace("x[10] = 10", "x[10] = 11")
    own, parents = (
        listing({Path(f"{n}.cu"): text}, "one", NO_HEAT) for n, text in (("b", after), ("a", before))
    )
    diff = code(own, parents, "a")
    assert [(c.kind, c.line.file, c.line.number) for c in diff.changes if c.kind in ("new", "gone")] == [
        ("gone", "a.cu", 12),
        ("new", "b.cu", 12),
    ]
    assert [c.folded for c in diff.changes if c.kind == "folded"] == [9, 8]
    assert (diff.added, diff.removed) == (1, 1)


def test_code_with_little_in_common_is_shown_whole():
    kernel, parents = (
        listing({Path("x.cu"): text}, "", NO_HEAT)
        for text in (OWN, "__global__ void other() {\n    __syncthreads();\n}\n")
    )
    for lines in (kernel, (*kernel, Line("header.cuh", 1, "__device__ int sum(int a);"))):
        whole = code(lines, parents, "other")
        assert {change.kind for change in whole.changes} == {"same"}
        assert whole.remark == "rewritten"


def test_no_step_of_the_ladder_shows_only_its_launcher(page):
    for variant in page.sections:
        text = "\n".join(change.line.text for change in variant.code.changes)
        assert not text or "__global__" in text or variant.code.parent or variant.name == "cublas"


def test_parameters_tell_variants_of_one_source_apart(recorded):
    twin = FAMILY.variant("blocktile_2d")
    given = {**twin.parameters, "BK": 16}
    variants = tuple(
        structs.replace(v, file=twin.file, parent="blocktile_2d", parameters=given)
        if v.name == "vectorized"
        else v
        for v in FAMILY.variants
    )
    variant = section(uncharted(recorded, structs.replace(FAMILY, variants=variants)), "vectorized")
    assert (variant.code.changes, variant.code.remark) == ((), "same_source")
    assert ("BK", "8", "16") in variant.origin.changed


def test_a_line_that_moved_since_it_was_sampled_is_found_by_its_text():
    rows = [
        {"file": "k/own.cu", "line": 1, "text": " x[0] = helper(0);", "sample_share": 0.7, "stall": "wait"},
        {"file": "k/own.cu", "line": 3, "text": "gone", "sample_share": 0.2, "stall": ""},
    ]
    heat = heat_map(rows, {"own.cu": OWN})
    assert heat.moved == {("own.cu", 1): ("own.cu", 4)}
    assert heat.places[("own.cu", 4)].share == 0.7
    assert (set(heat.places), heat.outside) == ({("own.cu", 4)}, {}), "a line of the project that is gone"


def test_lines_of_files_that_are_not_the_projects_are_named():
    rows = [
        {"file": f"/usr/include/{file}", "line": line, "text": "", "sample_share": 0.1, "stall": "wait"}
        for file, line in (("mma.hpp", 717), ("mma.hpp", 163), ("cuda_bf16.hpp", 572))
    ]
    heat = heat_map(rows, {"own.cu": OWN})
    assert (heat.places, heat.outside) == ({}, {"mma.hpp": (717, 163), "cuda_bf16.hpp": (572,)})


def test_a_hot_line_in_a_header_of_the_toolkit_says_so(recorded):
    toolkit = hot_line(recorded, 717, 0.5) | {"file": "crt/mma.hpp", "text": ""}
    page = uncharted(recorded, lines=[toolkit, hot_line(recorded, 9, 0.2)])
    assert [row.raw("line") for row in section(page, "warptile").lines] == [717, 9]
    assert "mma.hpp:717 not the project's 50 %" in Page(html(page)).text


def test_a_hot_line_is_not_folded_away_though_the_parent_has_it():
    body = "".join(f"    x[{n}] = {n};\n" for n in range(40))
    before = f"__global__ void one(int* x) {{\n{body}}}\n"
    after = before.replace("x[1] = 1;", "x[1] = 2;")
    own, parents = (
        listing({Path(f"{n}.cu"): text}, "one", NO_HEAT) for n, text in (("b", after), ("a", before))
    )
    hot = HeatMap({("b.cu", 30): Heat(0.6, 0.1, "wait")})
    shown = [(c.line.number, c.kind) for c in code(own, parents, "a", (), hot).changes if c.kind != "folded"]
    assert {(29, "same"), (30, "same"), (31, "same")} <= set(shown)


def test_a_long_listing_shows_the_lines_around_the_hottest_and_folds_the_others():
    weights = [0.0] * 300
    weights[200] = 1.0
    folded = parts(range(300), weights)
    assert [part.is_shown for part in folded] == [False, True, False]
    assert [line for part in folded for line in part.lines] == list(range(300))
    assert folded[1].lines[10] < 200 < folded[1].lines[-10]
    assert [part.is_shown for part in parts(range(45), weights)] == [True]


def test_mentions_of_a_line_lead_to_it_and_it_has_its_samples_and_stall(recorded):
    text = "        __syncthreads();"
    source = FAMILY.variant("warptile").file.read_text().splitlines()
    number = source.index(text) + 1
    line = hot_line(recorded, number, 0.4) | {"text": text, "instruction_share": math.nan}
    shown = html(uncharted(recorded, lines=[line]))
    place = f"warptile.warptile.cu.{number}"
    assert f'<a href="#{place}">warptile.cu:{number}</a>' in shown
    at = re.search(rf'id="{re.escape(place)}">.*', shown)[0]
    assert "40 %" in at
    assert ">wait<" in at


@pytest.mark.parametrize("name", ["naive", "warptile"])
def test_every_line_number_in_the_margin_is_that_of_the_file(page, name):
    source = FAMILY.variant(name).file.read_text().splitlines()
    for change in section(page, name).code.changes:
        if change.kind != "gone":
            assert source[change.line.number - 1].rstrip() == change.line.text
