"""The output of `nsys stats`, with the old and the new report names."""

import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from printed_pages import damaged, refused

from captures import CAPTURES, needs_captures
from warplog.core.errors import WarplogError
from warplog.parsers.nsys import stats
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
    return [(r.kernel, r.launch, r.metric, r.value) for r in rows if r.status == "ok"]


def test_a_kernel_summary_gives_medians_and_launches(tmp_path):
    rows = read(tmp_path, SAID + KERNELS)
    name = "void gemm<float, 4>(float *, int)"
    assert values(rows) == [
        (name, 0, "nsys_kernel_duration_us", pytest.approx(2.9505)),
        (name, 0, "nsys_launches", 2),
        (name, 0, "nsys_total_us", 6.0),
        ("scale(float *)", 1, "nsys_kernel_duration_us", 0.5),
        ("scale(float *)", 1, "nsys_launches", 4),
        ("scale(float *)", 1, "nsys_total_us", 2.0),
    ]
    assert {r.unit for r in rows if r.metric == "nsys_kernel_duration_us"} == {"us"}
    assert {r.tool for r in rows} == {"nsys"}
    unknown = [r for r in rows if r.metric == "registers_per_thread"]
    assert {(r.value, r.status, r.reason) for r in unknown} == {(None, "missing", "not in this summary")}


def test_a_last_row_without_line_end_is_read_if_its_name_is_closed(tmp_path):
    assert read(tmp_path, KERNELS[:-1]) == read(tmp_path, KERNELS)


TRACE = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\n"
    "100,661,1,,,,,,,,,,4.194,6337.593,Pinned,Device,NVIDIA L4 (0),1,13,[CUDA memcpy Host-to-Device]\n"
    '900,70,2,64,2,1,256,1,1,16,0.001,0.000,,,,,NVIDIA L4 (0),1,13,"saxpy(float, const float *)"\n'
    '990,90,3,64,2,1,256,1,1,16,0.001,0.000,,,,,NVIDIA L4 (0),1,13,"saxpy(float, const float *)"\n'
    '995,40,4,64,2,1,256,1,1,16,0.001,0.000,,,,,NVIDIA L40S (1),2,14,"saxpy(float, const float *)"\n'
    "2000,25,5,,,,,,,,,,0.000,0.5,,Device,NVIDIA L4 (0),1,13,[CUDA memset]\n"
)
TRACE_AS_TEXT = """\
 Start (us)  Duration (us)  CorrId  GrdX  GrdY  GrdZ  BlkX  BlkY  BlkZ  Reg/Trd  Device         Strm  Name
 ----------  -------------  ------  ----  ----  ----  ----  ----  ----  -------  -------------  ----  --------------
        0.9          0.070       2    64     2     1   256     1     1       16  NVIDIA L4 (0)    13  saxpy(float, …

"""


def test_a_trace_gives_kernels_copies_and_memsets_per_gpu(tmp_path):
    rows = read(tmp_path, SAID + TRACE)
    name, copy, memset = "saxpy(float, const float *)", "[CUDA memcpy Host-to-Device]", "[CUDA memset]"
    about = dict.fromkeys((r.launch, r.kernel, r.gpu) for r in rows)
    assert list(about) == [
        (0, name, "NVIDIA L4"),
        (1, name, "NVIDIA L40S"),
        (2, copy, "NVIDIA L4"),
        (3, memset, "NVIDIA L4"),
    ]
    found = {(launch, metric): value for _, launch, metric, value in values(rows)}
    assert (found[0, "nsys_kernel_duration_us"], found[0, "nsys_launches"]) == (pytest.approx(0.08), 2)
    assert (found[0, "registers_per_thread"], found[0, "grid_blocks"], found[0, "block_threads"]) == (
        16,
        128,
        256,
    )
    assert (found[1, "nsys_device"], found[1, "nsys_total_us"]) == (1, pytest.approx(0.04))
    assert (found[2, "nsys_duration_us"], found[3, "nsys_duration_us"]) == (
        pytest.approx(0.661),
        pytest.approx(0.025),
    )
    rounded = {(r.launch, r.metric) for r in rows if r.status == "missing"}
    assert {(0, "static_shared_bytes"), (2, "nsys_bytes")} <= rounded


def test_a_trace_as_text_is_read_in_its_unit(tmp_path):
    found = {metric: value for _, _, metric, value in values(read(tmp_path, TRACE_AS_TEXT))}
    assert (found["nsys_kernel_duration_us"], found["grid_blocks"]) == (pytest.approx(0.07), 128)


@pytest.mark.parametrize(
    "cut", [TRACE[: TRACE.index(",14,")], TRACE[: TRACE.rindex("set]")], TRACE.split("\n")[0] + "\n"]
)
def test_a_cut_trace_is_refused(tmp_path, cut):
    with pytest.raises(WarplogError, match=r"stats\.csv: (is truncated|contains no kernel)"):
        read(tmp_path, cut)


def test_a_ruler_of_millions_of_columns_is_no_table(tmp_path):
    text = f"{TEXT.splitlines()[2]}\n{'-- ' * 1_000_000}\n"
    tracemalloc.start()
    with pytest.raises(WarplogError, match="contains no summary"):
        stats.parse(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * len(text)


def test_sizes_are_read_where_the_summary_holds_them(tmp_path):
    assert values(read(tmp_path, SIZED))[3:] == [
        ("scale(float *)", 0, "grid_blocks", 64),
        ("scale(float *)", 0, "block_threads", 128),
    ]


def test_a_memory_operation_is_no_kernel(tmp_path):
    assert values(read(tmp_path, MEMORY)) == [
        ("[CUDA memcpy Host-to-Device]", 0, "nsys_duration_us", pytest.approx(0.21)),
        ("[CUDA memcpy Host-to-Device]", 0, "nsys_launches", 3),
        ("[CUDA memcpy Host-to-Device]", 0, "nsys_total_us", pytest.approx(0.6)),
        ("[CUDA memset]", 1, "nsys_duration_us", pytest.approx(0.1)),
        ("[CUDA memset]", 1, "nsys_launches", 4),
        ("[CUDA memset]", 1, "nsys_total_us", pytest.approx(0.4)),
    ]


def test_of_several_summaries_those_of_gpu_work_are_read(tmp_path):
    rows = read(tmp_path, "\n".join((CALLS, RANGES, OPENMP, KERNELS, SAID + MEMORY)))
    assert [r.kernel for r in rows if r.metric == "nsys_launches"] == [
        *("void gemm<float, 4>(float *, int)", "scale(float *)"),
        *("[CUDA memcpy Host-to-Device]", "[CUDA memset]"),
    ]


def test_an_average_is_not_taken_for_a_median(tmp_path):
    rows = read(tmp_path, OLD)
    assert values(rows) == [("k(int)", 0, "nsys_launches", 4), ("k(int)", 0, "nsys_total_us", 2.0)]
    assert {r.status for r in rows if r.metric == "nsys_kernel_duration_us"} == {"missing"}


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
        ("void gemm<float, 4>(float *, in…", 0, "nsys_total_us", 6.0),
        ("scale(float *)", 1, "nsys_kernel_duration_us", 0.5),
        ("scale(float *)", 1, "nsys_launches", 4),
        ("scale(float *)", 1, "nsys_total_us", 2.0),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (KERNELS[:-3], "last line has no line end"),
        (TEXT.rstrip()[: TEXT.index("scale") + 5], "last line has no line end"),
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
    page = damaged(
        data.draw(st.sampled_from([KERNELS, SIZED + MEMORY, TEXT, TRACE])), data, b'"-\n,.\0\xff9( '
    )
    refused(tmp_path / "stats.txt", page[: data.draw(st.integers(1, len(page)))])


@needs_captures
def test_a_summary_that_others_printed():
    (path,) = CAPTURES.glob("*/h100_nsys_stats.txt")
    rows = read_any(path)
    first = [(metric, value) for _, launch, metric, value in values(rows) if launch == 0]
    assert first == [
        ("nsys_kernel_duration_us", pytest.approx(28.992)),
        ("nsys_launches", 110),
        ("nsys_total_us", pytest.approx(3193.338)),
    ]
    assert len({r.launch for r in rows}) == 8
