"""The output of `nsys stats`, with the old and the new report names."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from printed_pages import damaged, refused

from captures import CAPTURES, needs_captures
from warplog.core.errors import WarplogError
from warplog.parsers.reports import read_any

TIMES = "Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns)"
KERNELS = f"Time (%),Total Time (ns),Instances,{TIMES},Name\n" + (
    '75.0,6000,2,3000.0,2950.5,2000,4000,10.0,"void gemm<float, 4>(float *, int)"\n'
    "25.0,2000,4,500.0,500.0,500,500,0.0,scale(float *)\n"
)
SIZED = f"Time (%),Total Time (ns),Instances,{TIMES},GridXYZ,BlockXYZ,Name\n" + (
    '100.0,2000,4,500.0,510.0,500,500,0.0,"  32    2    1"," 128    1    1",scale(float *)\n'
)
MEMORY = f"Time (%),Total Time (ns),Count,{TIMES},Operation\n" + (
    "60.0,600,3,200.0,210.0,100,300,1.0,[CUDA memcpy Host-to-Device]\n"
    "40.0,400,4,100.0,100.0,100,100,0.0,[CUDA memset]\n"
)
CALLS = f"Time (%),Total Time (ns),Num Calls,{TIMES},Name\n100.0,9,1,9.0,9.0,9,9,0.0,cudaMalloc\n"
OPENMP = f"Time (%),Total Time (ns),Count,{TIMES},Name\n100.0,9,1,9.0,9.0,9,9,0.0,parallel\n"
RANGES = f"Time (%),Total Time (ns),Instances,{TIMES},Style,Range\n100.0,9,1,9.0,9.0,9,9,0.0,PushPop,:r\n"
OLD = "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n100.0,2000,4,500.0,500,500,k(int)\n"
SAID = "Processing [a.sqlite] with [/opt/nsys/reports/cuda_gpu_kern_sum.py]...\n"
TEXT = """\
 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (us)  Instances  Avg (us)  Med (us)  Name
 --------  ---------------  ---------  --------  --------  ----------------
     75.0              6.0          2       3.0       2.5  void gemm<float, 4>(float *, in…
     25.0              2.0          4       0.5       0.5  scale(float *)

 Time (%)  Total Time (ns)  Num Calls  Name
 --------  ---------------  ---------  ----
    100.0               12          1  SKIPPED: something
1121.0      1102       1633

"""


def read(tmp_path, text):
    path = tmp_path / "stats.csv"
    path.write_text(text, encoding="utf-8")
    return read_any(path)


def values(rows):
    return [(r["kernel"], r["launch"], r["metric"], r["value"]) for r in rows if r["status"] == "ok"]


def test_a_kernel_summary_gives_medians_and_launches(tmp_path):
    rows = read(tmp_path, SAID + KERNELS)
    name = "void gemm<float, 4>(float *, int)"
    assert values(rows) == [
        (name, 0, "nsys_kernel_duration_us", pytest.approx(2.9505)),
        (name, 0, "nsys_launches", 2),
        ("scale(float *)", 1, "nsys_kernel_duration_us", 0.5),
        ("scale(float *)", 1, "nsys_launches", 4),
    ]
    assert {r["unit"] for r in rows if r["metric"] == "nsys_kernel_duration_us"} == {"us"}
    assert {r["tool"] for r in rows} == {"nsys"}
    unknown = [r for r in rows if r["metric"] == "registers_per_thread"]
    assert {(r["value"], r["status"], r["reason"]) for r in unknown} == {
        (None, "missing", "not in this summary")
    }


def test_sizes_are_read_where_the_summary_holds_them(tmp_path):
    assert values(read(tmp_path, SIZED))[2:] == [
        ("scale(float *)", 0, "grid_blocks", 64),
        ("scale(float *)", 0, "block_threads", 128),
    ]


def test_a_memory_operation_is_no_kernel(tmp_path):
    assert values(read(tmp_path, MEMORY)) == [
        ("[CUDA memcpy Host-to-Device]", 0, "nsys_duration_us", pytest.approx(0.21)),
        ("[CUDA memcpy Host-to-Device]", 0, "nsys_launches", 3),
        ("[CUDA memset]", 1, "nsys_duration_us", pytest.approx(0.1)),
        ("[CUDA memset]", 1, "nsys_launches", 4),
    ]


def test_of_several_summaries_those_of_gpu_work_are_read(tmp_path):
    rows = read(tmp_path, "\n".join((CALLS, RANGES, OPENMP, KERNELS, SAID + MEMORY)))
    assert [r["kernel"] for r in rows if r["metric"] == "nsys_launches"] == [
        *("void gemm<float, 4>(float *, int)", "scale(float *)"),
        *("[CUDA memcpy Host-to-Device]", "[CUDA memset]"),
    ]


def test_an_average_is_not_taken_for_a_median(tmp_path):
    rows = read(tmp_path, OLD)
    assert values(rows) == [("k(int)", 0, "nsys_launches", 4)]
    assert {r["status"] for r in rows if r["metric"] == "nsys_kernel_duration_us"} == {"missing"}


@pytest.mark.parametrize("unit", ["us", "usec", "ms", "msec", "s", "sec", "nsec"])
def test_times_are_read_in_the_unit_of_the_heading(tmp_path, unit):
    scale = {"u": 1.0, "m": 1e3, "s": 1e6, "n": 1e-3}[unit[0]]
    rows = read(tmp_path, KERNELS.replace("(ns)", f"({unit})"))
    assert values(rows)[0][3] == pytest.approx(2950.5 * scale)


def test_the_table_as_text_is_read_to_its_end_past_others(tmp_path):
    rows = read(tmp_path, TEXT)
    assert values(rows) == [
        ("void gemm<float, 4>(float *, in…", 0, "nsys_kernel_duration_us", 2.5),
        ("void gemm<float, 4>(float *, in…", 0, "nsys_launches", 2),
        ("scale(float *)", 1, "nsys_kernel_duration_us", 0.5),
        ("scale(float *)", 1, "nsys_launches", 4),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (KERNELS[:-1], "last line has no line end"),
        (KERNELS[: KERNELS.index("25.0")], "shares of the time do not match"),
        (KERNELS.replace("4000,10.0,", ""), "a row has 7 of 9 fields"),
        (KERNELS.replace(",2,3000.0", ",many,3000.0"), "instances is 'many'"),
        (KERNELS.replace("(ns)", "(eon)"), "unknown unit 'eon'"),
        (KERNELS + "\n" + OLD.replace("Name", "N" * 200_000), "field larger than field limit"),
        (CALLS, "contains no summary of kernels.*nsys stats -r cuda_gpu_kern_sum"),
        (TEXT[: TEXT.index("     25.0")], "shares of the time do not match"),
        (TEXT[: TEXT.index("Name")] + "\n", "contains no summary"),
    ],
)
def test_a_cut_or_damaged_summary_is_refused(tmp_path, text, said):
    with pytest.raises(WarplogError, match=rf"stats\.csv: .*{said}") as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_summary_is_read_or_refused_in_one_line(tmp_path, data):
    page = damaged(data.draw(st.sampled_from([KERNELS, SIZED + MEMORY, TEXT])), data, b'"-\n,.\0\xff9( ')
    refused(tmp_path / "stats.txt", page[: data.draw(st.integers(1, len(page)))])


@needs_captures
def test_a_summary_that_others_printed():
    (path,) = CAPTURES.glob("*/h100_nsys_stats.txt")
    rows = read_any(path)
    first = [(metric, value) for _, launch, metric, value in values(rows) if launch == 0]
    assert first == [("nsys_kernel_duration_us", pytest.approx(28.992)), ("nsys_launches", 110)]
    assert len({r["launch"] for r in rows}) == 8
