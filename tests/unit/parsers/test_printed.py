"""What ncu and nsys print, as CSV or text, gives the values that it shows, and the same in any form."""

import math
import tracemalloc
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from printed_pages import SPEED, csv_line, damaged, details_page, raw_page, refused, text_page

from captures import CAPTURES, captured, needs_captures
from warplog.core.errors import WarplogError
from warplog.metrics import METRICS, OPCODE_COUNTER
from warplog.parsers import units
from warplog.parsers.ncu import labels as ncu_labels
from warplog.parsers.ncu import pages
from warplog.parsers.ncu import report as ncu_rep
from warplog.parsers.nsys import stats
from warplog.parsers.reports import read_any

REPORTS = [Path(__file__).parents[2] / "data" / "parsers" / "transpose_h200.ncu-rep", *captured(".ncu-rep")]


def read(tmp_path, text):
    path = tmp_path / "page.txt"
    path.write_text(text, encoding="utf-8")
    return read_any(path)


def values(rows):
    return {(row.launch, row.metric): row.value for row in rows if row.status == "ok"}


def missing(rows):
    return {(row.launch, row.metric): row.reason for row in rows if row.status == "missing"}


def timed(*times):
    return [
        ("k(int)", [(SPEED, "Duration", "ns", t), (SPEED, "Elapsed Cycles", "cycle", "9")]) for t in times
    ]


def announced(count):
    return "".join(f'==PROF== Profiling "k" - {i}: 0%....100% - 2 passes\n' for i in range(count))


def averages(grid, invocations, average):
    about = ["77", "app", "127.0.0.1", "k(int)", "(256, 1, 1)", f"({grid}, 1, 1)", "0", "8.0", invocations]
    shown = [("Duration", "usecond", "1", "9", average), ("Compute (SM) Throughput", "%", "1", "3", "2")]
    return "".join(csv_line([*about, SPEED, *value]) for value in shown)


# fmt: off
NAME = "void k<float (*)(int), 4>(float *, lambda(int) (instance 1))"
VALUES = [
    (SPEED, "Duration", "usecond", "1,523.71"), (SPEED, "DRAM Throughput", "%", "0.00"),
    ("Launch Statistics", "Function Cache Configuration", "", "CachePreferNone"),
    ("Launch Statistics", "Registers Per Thread", "register/thread", "38"),
    ("Occupancy", "Achieved Occupancy", "%", "58.78")]
COUNTERS = {
    "gpu__time_duration.sum": "1,234.50", "dram__bytes_read.sum": "2.50",
    "launch__function_cache_config": "CachePreferNone", "launch__registers_per_thread": "n/a"}
UNITS = {"gpu__time_duration.sum": "usecond", "dram__bytes_read.sum": "Mbyte"}
OPCODES = {OPCODE_COUNTER: "640", "sass__thread_inst_executed_true_per_opcode": "12,800 (1; 2)"}
NOISE = '==PROF== Connected to process 77\nsize,time\n"quoted" words\n'
DETAILS = details_page(timed("1", "2"), rule=False)
TEXT = announced(2) + text_page([(NAME, VALUES), ("j()", VALUES)])
RAW = raw_page([("k", {"gpu__time_duration.sum": "2"})], {})
CHIP = [f"device__attribute_{name}" for name in (
    "display_name", "compute_capability_major", "compute_capability_minor")]
WITHOUT_SIZES = (
    csv_line(["ID", "Process ID", "Kernel Name", *CHIP]) + csv_line([""] * 6)
    + csv_line(["0", "77", "k", "NVIDIA A10G", "8", "6"]))
SUMMARY_AS_CSV = (
    '"Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device","CC","Invocations",'
    '"Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'
)
SUMMARY = """\
  saxpy(float, const float *) (4096, 1, 1)x(256, 1, 1), Device 0, CC 11.0, Invocations 14
    Section: Command line profiler metrics
    ----------------------------------- ----------- ------------ ------------ ------------
    Metric Name                         Metric Unit      Minimum      Maximum      Average
    ----------------------------------- ----------- ------------ ------------ ------------
    smsp__inst_executed.sum                    inst 1,016,796.00 1,016,893.00 1,016,842.50
    gpu__time_duration.sum                               1,000.0      3,000.0      2,000.0
    ----------------------------------- ----------- ------------ ------------ ------------

  scale(float *) (8, 1, 1)x(64, 1, 1), Device 0, CC 11.0, Invocations 3
    Section: Occupancy
    ------------------------------- ----------- ------- ------- -------
    Metric Name                     Metric Unit Minimum Maximum Average
    ------------------------------- ----------- ------- ------- -------
    Achieved Occupancy                        %   34.68   35.78   35.26
    ------------------------------- ----------- ------- ------- -------

"""
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
TABLE = """\
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
TRACE = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\n"
    "100,661,1,,,,,,,,,,4.194,6337.593,Pinned,Device,NVIDIA L4 (0),1,13,[CUDA memcpy Host-to-Device]\n"
    '900,70,2,64,2,1,256,1,1,16,0.001,0.000,,,,,NVIDIA L4 (0),1,13,"saxpy(float, const float *)"\n'
    '990,90,3,64,2,1,256,1,1,16,0.001,0.000,,,,,NVIDIA L4 (0),1,13,"saxpy(float, const float *)"\n'
    '995,40,4,64,2,1,256,1,1,16,0.001,0.000,,,,,NVIDIA L40S (1),2,14,"saxpy(float, const float *)"\n'
    "2000,25,5,,,,,,,,,,0.000,0.5,,Device,NVIDIA L4 (0),1,13,[CUDA memset]\n"
)
API_TRACE = "Start (ns),Duration (ns),Name,Result,CorrId,Pid\n100,661,cudaMalloc,0,1,77\n"
TRACE_AS_TEXT = """\
 Start (us)  Duration (us)  CorrId  GrdX  GrdY  GrdZ  BlkX  BlkY  BlkZ  Reg/Trd  Device         Strm  Name
 ----------  -------------  ------  ----  ----  ----  ----  ----  ----  -------  -------------  ----  --------------
        0.9          0.070       2    64     2     1   256     1     1       16  NVIDIA L4 (0)    13  saxpy(float, …

"""
GEMM, SCALE, SAXPY = "void gemm<float, 4>(float *, int)", "scale(float *)", "saxpy(float, const float *)"
COPY, MEMSET = "[CUDA memcpy Host-to-Device]", "[CUDA memset]"


def kernel(time, count, total, **others):
    return {"nsys_kernel_duration_us": time, "nsys_launches": count, "nsys_total_us": total} | others


def operation(time, count, total, **others):
    return {"nsys_duration_us": time, "nsys_launches": count, "nsys_total_us": total} | others


ALLOCATED = "sm__mem_tensor_bytes_allocated.avg.per_cycle_active"
SIZES = {"grid_blocks": 32, "block_threads": 256}
SHOWN = {"duration_us": 1523.71, "dram_throughput_pct": 0, "registers_per_thread": 38, "achieved_occupancy_pct": 58.78}
TIMED = SIZES | {"sm_throughput_pct": 2}
GEMMS = [(GEMM, kernel(2.9505, 2, 6)), (SCALE, kernel(0.5, 4, 2))]
LAUNCHED = {"grid_blocks": 128, "block_threads": 256, "registers_per_thread": 16, "nsys_device": 0}
# What was printed; kernel, GPU and compute capability of each launch, with all its values.
FORMS = {
    "raw page": (NOISE + raw_page([("k(int)", COUNTERS), ("j()", {})], UNITS), [
        ("k(int) 9.0", SIZES | {"duration_us": 1234.5, "dram_bytes_read": 2.5e6}), ("j() 9.0", SIZES)]),
    "raw page without sizes": (WITHOUT_SIZES, [("k NVIDIA A10G 8.6", {})]),
    "raw page with opcodes": (raw_page([("k", OPCODES)], {}), [("k 9.0", SIZES | {"threads_per_instruction": 20})]),
    "raw page of a GPU with tensor memory": (
        raw_page([("k", {ALLOCATED: "64"})], {ALLOCATED: "Kbyte"}, "10.0"),
        [("k 10.0", SIZES | {"tensor_memory_bytes_allocated": 64000})]),
    "details page": (details_page([(NAME, VALUES)]), [(f"{NAME} 9.0", SIZES | SHOWN)]),
    "text": ("$ ncu ./app\nhello, Context\n" + TEXT, [(f"{NAME} 9.0", SIZES | SHOWN), ("j() 9.0", SIZES | SHOWN)]),
    "text of before 2022": (text_page([(NAME, VALUES)], titled=False), [(NAME, SHOWN)]),
    "several pages": (details_page(timed("1000")) + "\ufeff" + details_page(timed("2,000"), rule=False), [
        ("k(int) 9.0", SIZES | {"duration_us": time, "gpu_cycles": 9, "sm_mhz_in_ncu": 9 / time}) for time in (1, 2)]),
    "summary page": (NOISE + SUMMARY_AS_CSV + averages(4, "14", "2.5") + averages(8, "3", "6"), [
        ("k(int) 8.0", TIMED | {"duration_us": time, "ncu_launches": count, "grid_blocks": grid})
        for time, count, grid in ((2.5, 14, 4), (6, 3, 8))]),
    "summary as text": (SUMMARY, [
        ("saxpy(float, const float *) 11.0", {
            "instructions_executed": 1_016_842.5, "duration_us": 2, "ncu_launches": 14, "grid_blocks": 4096,
            "block_threads": 256}),
        ("scale(float *) 11.0", {
            "achieved_occupancy_pct": 35.26, "ncu_launches": 3, "grid_blocks": 8, "block_threads": 64})]),
    "nsys kernels": (SAID + KERNELS, GEMMS),
    "nsys kernels without line end": (KERNELS[:-1], GEMMS),
    "nsys kernels with sizes": (SIZED, [(SCALE, kernel(0.51, 4, 2, grid_blocks=64, block_threads=128))]),
    "nsys averages of before 2022": (OLD, [("k(int)", {"nsys_launches": 4, "nsys_total_us": 2})]),
    "nsys summaries": ("\n".join((CALLS, RANGES, OPENMP, KERNELS, SAID + MEMORY)), [
        *GEMMS, (COPY, operation(0.21, 3, 0.6)), (MEMSET, operation(0.1, 4, 0.4))]),
    "nsys text": (TABLE, [
        ("void gemm<float, 4>(float *, in…", kernel(2.5, 2, 6)), ("scale(float *)", kernel(0.5, 4, 2))]),
    "nsys trace": (API_TRACE + SAID + TRACE, [
        (f"{SAXPY} NVIDIA L4", kernel(0.08, 2, 0.16, **LAUNCHED)),
        (f"{SAXPY} NVIDIA L40S", kernel(0.04, 1, 0.04, **LAUNCHED | {"nsys_device": 1})),
        (f"{COPY} NVIDIA L4", operation(0.661, 1, 0.661, nsys_device=0)),
        (f"{MEMSET} NVIDIA L4", operation(0.025, 1, 0.025, nsys_device=0))]),
    "nsys trace as text": (TRACE_AS_TEXT, [("saxpy(float, … NVIDIA L4", kernel(0.07, 1, 0.07, **LAUNCHED))]),
    **{f"nsys times in {unit}": (KERNELS.replace("(ns)", f"({unit})"), [
        (GEMM, kernel(2950.5 * scale, 2, 6000 * scale)), (SCALE, kernel(500 * scale, 4, 2000 * scale))])
       for unit, scale in {"us": 1, "usec": 1, "ms": 1e3, "msec": 1e3, "s": 1e6, "sec": 1e6, "nsec": 1e-3}.items()},
}
RESAVED = DETAILS.replace('"(256, 1, 1)","(8, 4, 1)"', "256,32")
LINES = DETAILS.splitlines(keepends=True)
WARNING = "==WARNING== Failed to detect compute capability, assuming 50\n"
HEADING = f"{NAME} (8, 4, 1)x(256, 1, 1), Context"
# A page, and the same in another form.
SAME = {
    "indented": (TEXT, "".join(f"{'    ' if line.strip() else ''}{line}" for line in TEXT.splitlines(True))),
    "headings indented otherwise": (TEXT, TEXT.replace("  j() (8,", "      j() (8,")),
    "wrapped before the sizes": (TEXT, TEXT.replace(HEADING, HEADING.replace(" (8", "\n  (8"))),
    "wrapped in the name": (TEXT, TEXT.replace(" lambda", "\n  lambda")),
    "wrapped and indented": (TEXT, TEXT.replace(" lambda", "\n      lambda")),
    "wrapped by the terminal": (TEXT, TEXT.replace("lambda", "lam\nbda")),
    "warned inside a table": (TEXT, TEXT.replace("    DRAM", f"{WARNING}    DRAM")),
    "a launch failed": (TEXT, '==PROF== Profiling "i" - 1: 0%....\n==ERROR== LaunchFailed\n' + TEXT),
    "application replay": (TEXT, '==PROF== Profiling "k": Application replay pass 1\n' * 3 + TEXT),
    "between other output": (DETAILS, NOISE + "".join([*LINES[:2], WARNING, "\nin 3, or 4\n", *LINES[2:]])),
    "without the last line end": (DETAILS, DETAILS[:-1]),
    "text without the last line end": (SUMMARY, SUMMARY.rstrip()),
    "raw without the last line end": (RAW, RAW[:-1]),
    "saved by a spreadsheet": (RESAVED, "\ufeff" + RESAVED.replace('"', "").replace("\n", "\r\n")),
}
LABELS = [
    (SPEED, "Duration", "usecond", "523.71", "duration_us", 523.71),
    (SPEED, "Duration", "us", "6.46", "duration_us", 6.46),
    (SPEED, "Duration", "msecond", "2.86", "duration_us", 2860),
    (SPEED, "Duration", "second", "1.5", "duration_us", 1.5e6),
    (SPEED, "Memory Throughput", "%", "61.84", "memory_throughput_pct", 61.84),
    ("GPU Speed Of Light", "SOL DRAM", "%", "9.08", "dram_throughput_pct", 9.08),
    ("GPU Speed Of Light", "SM [%]", "%", "41.95", "sm_throughput_pct", 41.95),
    (SPEED, "Compute (SM) [%]", "%", "41.95", "sm_throughput_pct", 41.95),
    (SPEED, "SOL L1/TEX Cache", "%", "41.95", "l1_throughput_pct", 41.95),
    (SPEED, "SM Frequency", "cycle/usecond", "763.55", "sm_mhz_in_ncu", 763.55),
    (SPEED, "SM Frequency", "Ghz", "1.99", "sm_mhz_in_ncu", 1990),
    (SPEED, "SM Frequency", "hz", "584,998,877.44", "sm_mhz_in_ncu", 584.99887744),
    ("Memory Workload Analysis", "Memory Throughput", "Gbyte/second", "554.92", "dram_gbytes_per_s", 554.92),
    ("Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "1.25", "dram_gbytes_per_s", 1250),
    ("Launch Statistics", "Static Shared Memory Per Block", "Kbyte/block", "2.66", "static_shared_bytes", 2660),
    ("Launch Statistics", "Registers Per Thread", "register/thread", "38", "registers_per_thread", 38),
    ("Scheduler Statistics", "One or More Eligible", "%", "12.47", "issue_active_pct", 12.47),
    ("Command line profiler metrics", "dram__bytes_read.sum", "Mbyte", "2.33", "dram_bytes_read", 2.33e6),
]


def cut(text, end, past=0):
    return text[: text.rindex(end) + past]


DAMAGED = {
    "1 of 2 profiled launches (of a text)": cut(TEXT, "  j() (8"),
    "14 of 17 profiled launches": announced(17) + SUMMARY_AS_CSV + averages(4, "14", "2"),
    "its last launch has fewer labels": cut(TEXT, "    Section: Occupancy"),
    "its last launch has fewer labels than the one before": cut(DETAILS[:-1], "\n", 1),
    "it stops inside the section GPU Speed": cut(details_page(timed("1"), rule=False)[:-1], "\n", 1),
    "last line has no line end (of one launch)": details_page(timed("1"), rule=False)[:-1],
    "last line has no line end": cut(TEXT, "roughput"),
    "a quotation mark is not closed": RAW[:-2],
    "ends inside a table": cut(TEXT, "    DRAM Throughput"),
    "has no value (of a cut ruler)": SUMMARY.rstrip()[:-9],
    "a launch has no table": cut(TEXT, "    Section: GPU"),
    "a table contains other": TEXT.replace("    DRAM", "epoch 3 of 10, loss 0.25\n    DRAM"),
    "begins with a section": TEXT.replace(HEADING, HEADING[:-3]),
    "Duration occurs twice in a launch": TEXT.replace("j() (8, 4, 1)x(256, 1, 1), Context", "j() (8, 4, 1), Cont"),
    "a heading without the name of its kernel": TEXT.replace("  j() (8", "  (8"),
    "a heading without the name (of damaged sizes)": TEXT.replace("(8, 4, 1)", "(8, x, 1)"),
    "the launch 0 occurs twice": RAW + RAW.splitlines()[-1] + "\n",
    "the launch 0 occurs twice (of details)": '"0","77"'.join(DETAILS.rsplit('"1","77"', 1)),
    "has a decimal comma": details_page(timed("1.234,5")),
    "its columns are not those of ncu": DETAILS.replace("Metric Unit", "Unit"),
    "more than 5000 launches": raw_page([("k", {})] * 5001, {}),
    "more than 5000 launches (of a text)": text_page([("k", [])] * 5001),
    "last line has no line end (of a summary)": KERNELS[:-3],
    "last line has no line end (of a table)": TABLE.rstrip()[: TABLE.index("scale") + 5],
    "last line has no line end (of a trace)": cut(TRACE, "set]"),
    "last line has no line end (of a cut trace)": TRACE[: TRACE.index(",14,")],
    "contains no kernel": TRACE.split("\n")[0] + "\n",
    "contains no kernel (but calls)": API_TRACE,
    "shares of the time do not match": cut(KERNELS, "25.0"),
    "shares of the time do not match (of a table)": cut(TABLE, "     25.0"),
    "a row has 7 of 9 fields": KERNELS.replace("4000,10.0,", ""),
    "instances is 'many'": KERNELS.replace(",2,3000.0", ",many,3000.0"),
    "unknown unit 'eon'": KERNELS.replace("(ns)", "(eon)"),
    "field larger than field limit": KERNELS + "\n" + OLD.replace("Name", "N" * 200_000),
    "contains no summary of kernels.*nsys stats -r cuda_gpu_kern_sum": CALLS,
    "contains no summary": cut(TABLE, "Med") + "\n",
}
# fmt: on


@pytest.mark.parametrize("form", FORMS)
def test_what_is_printed_gives_the_values_that_it_shows(tmp_path, form):
    text, shown = FORMS[form]
    rows = read(tmp_path, text)
    about = {row.launch: " ".join(filter(None, (row.kernel, row.gpu, row.cc))) for row in rows}
    assert list(about.items()) == list(enumerate(who for who, _ in shown))
    numbered = [(number, metric, value) for number, (_, v) in enumerate(shown) for metric, value in v.items()]
    assert values(rows) == pytest.approx({(number, metric): value for number, metric, value in numbered})
    tool = "nsys" if form.startswith("nsys") else "ncu"
    assert {(row.tool, row.source) for row in rows} == {(tool, str(tmp_path / "page.txt"))}


@pytest.mark.parametrize("form", SAME)
def test_a_page_gives_the_same_in_another_form(tmp_path, form):
    assert read(tmp_path, SAME[form][1]) == read(tmp_path, SAME[form][0])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_page_that_a_shell_stored_in_another_encoding_is_read(tmp_path, encoding):
    (tmp_path / "page.txt").write_bytes(DETAILS.replace("\n", "\r\n").encode(encoding))
    assert read_any(tmp_path / "page.txt") == read(tmp_path, DETAILS)


@pytest.mark.parametrize(("section", "label", "unit", "text", "metric", "value"), LABELS)
def test_a_label_is_read_by_its_section_and_unit(tmp_path, section, label, unit, text, metric, value):
    shown = values(read(tmp_path, details_page([("k", [(section, label, unit, text)])])))
    assert shown == pytest.approx(
        {(0, metric): value, (0, "grid_blocks"): 32, (0, "block_threads"): 256}, rel=1e-12
    )


def test_what_has_no_value_is_missing_with_the_reason(tmp_path):
    untimed = [(SPEED, "Duration", "fortnight", "2"), (SPEED, "Elapsed Cycles", "cycle", "n/a")]
    reasons = missing(read(tmp_path, details_page([("k", untimed)])))
    assert reasons[0, "duration_us"] == "Duration has the unknown unit 'fortnight'"
    assert "has no value" in reasons[0, "gpu_cycles"]
    reasons = missing(read(tmp_path, raw_page([("k", COUNTERS | OPCODES)], UNITS)))
    assert reasons[0, "registers_per_thread"] == "counter launch__registers_per_thread has no value"
    assert reasons[0, "dram_bytes_written"].endswith("is not in the report")
    assert "not its opcodes" in reasons[0, "inst_ffma"]
    assert missing(read(tmp_path, KERNELS))[0, "registers_per_thread"] == "not in this summary"
    assert missing(read(tmp_path, OLD))[0, "nsys_kernel_duration_us"] == "not in this summary"
    reasons = missing(read(tmp_path, TRACE))
    assert "three decimals" in reasons[0, "static_shared_bytes"]
    assert "three decimals" in reasons[2, "nsys_bytes"]


@pytest.mark.parametrize(
    ("unit", "size", "limit", "shared"),
    [("byte/block", "16", 164 * 1024 // 1152, 1040), ("Kbyte/block", "8.19", None, None)],
)
def test_a_limit_by_configured_shared_memory_is_freed_of_it_where_the_sizes_are_exact(
    tmp_path, unit, size, limit, shared
):
    limits = (("Warps", "8"), ("Registers", "6"), ("SM", "32"), ("Shared Mem", "6"))
    printed = [("Occupancy", f"Block Limit {name}", "block", count) for name, count in limits]
    printed += [("Launch Statistics", "Static Shared Memory Per Block", unit, size)]
    printed += [("Launch Statistics", "Dynamic Shared Memory Per Block", "byte/block", "0")]
    rows = read(tmp_path, details_page([("k", printed)], cc="8.0"))
    assert values(rows).get((0, "occupancy_limit_shared_memory_blocks")) == limit
    assert values(rows).get((0, "shared_bytes_per_block")) == shared
    assert limit or "configured" in missing(rows)[0, "occupancy_limit_shared_memory_blocks"]


@pytest.mark.parametrize(
    "page", [details_page(timed("1", "2")), raw_page([("k", {"a": "1"}), ("k", {"a": "2"})], {})]
)
def test_of_a_cut_page_only_the_loss_of_an_ending_rule_goes_unseen(tmp_path, page):
    text = announced(2) + page
    start, last = text.index("Kernel Name"), text.rindex('"1","77"' if "OPT" in page else "\n")
    for end in (*range(0, start, 9), *range(start, len(text))):
        if not refused(tmp_path / "cut", text[:end].encode()):
            assert end >= last - len('"",\n')
            assert pages.parse(text[:end]) == pages.parse(text)


@pytest.mark.parametrize("said", DAMAGED)
def test_a_cut_or_damaged_page_is_refused_in_one_line(tmp_path, said):
    with pytest.raises(WarplogError, match=rf"page\.txt: .*({said.partition(' (')[0]})") as caught:
        read(tmp_path, DAMAGED[said])
    assert "\n" not in str(caught.value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_output_of_nsys_is_read_or_refused_in_one_line(tmp_path, data):
    page = data.draw(st.sampled_from([KERNELS, SIZED + MEMORY, TABLE, TRACE]))
    content = damaged(page, data, b'"-\n,.\0\xff9( ')
    refused(tmp_path / "stats.txt", content[: data.draw(st.integers(1, len(content)))])


def test_a_ruler_of_millions_of_columns_is_no_table():
    text = f"{TABLE.splitlines()[2]}\n{'-- ' * 1_000_000}\n"
    tracemalloc.start()
    with pytest.raises(WarplogError, match="contains no summary"):
        list(stats.rows(text))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * len(text)


@given(st.text(max_size=30))
@settings(max_examples=50, deadline=None)
def test_any_number_and_unit_is_read_or_none(text):
    assert units.to_base(text) is None or units.to_base(text) > 0
    try:
        assert units.number(text) is None or abs(units.number(text)) < float("inf")
    except WarplogError:
        assert "," in text


def printable(rows):
    """Returns values by (launch, metric), except those that a report can compute from opcodes, which no page has."""
    opcodes = {m.name for m in METRICS.values() if any(f"{OPCODE_COUNTER}:" in c for c in m.counters)}
    opcodes |= {"fp16_flops", "fp32_flops", "fp64_flops", "arithmetic_intensity_flop_per_byte"}
    return {
        (r.launch, r.metric): math.nan if r.value is None else r.value
        for r in rows
        if r.metric not in opcodes
    }


@cache
def of_report(path):
    """Returns the launches of a report and what is read from it, which takes longer than to read a page."""
    return ncu_rep.read(path).launches, read_any(path)


def test_a_report_printed_as_a_raw_page_gives_the_same_values(tmp_path):
    import ncu_report

    scaled = {"ns": ("usecond", 1e3), "hz": ("cycle/nsecond", 1e9), "byte": ("Mbyte", 1e6)}
    for path in REPORTS:
        action = ncu_report.load_report(str(path)).range_by_idx(0).action_by_idx(0)
        unit = {name: action.metric_by_name(name).unit() for name in action.metric_names()}
        printed = {name: scaled.get(base, (base, 1.0)) for name, base in unit.items()}
        launches, rows = of_report(path)
        page = []
        for launch in launches:
            counters = {name: value for name, value in launch.counters.items() if value is not None}
            texts = {n: repr(value / printed[n][1]) for n, value in counters.items() if ":" not in n}
            page.append((launch.kernel, texts))
        text = raw_page(page, {name: to for name, (to, _) in printed.items()}, rows[0].cc)
        text = text.replace('"(256, 1, 1)","(8, 4, 1)"', '"",""')
        assert printable(read(tmp_path, text)) == pytest.approx(printable(rows), rel=1e-12, nan_ok=True)


def test_a_report_printed_as_a_details_page_gives_the_same_values(tmp_path):
    base = {"duration_us": "ns", "sm_mhz_in_ncu": "hz", "dram_gbytes_per_s": "byte/s"}
    for path in REPORTS:
        launches, rows = of_report(path)
        page, shown = [], set()
        for launch in launches:
            dynamic = repr(launch.counters["launch__shared_mem_per_block_dynamic"])
            printed = [("Launch Statistics", ncu_labels.SHARED_PARTS[1], "byte/block", dynamic)]
            for section, labels in ncu_labels.SECTIONS.items():
                for label, metric in labels.items():
                    value = launch.counters.get(ncu_labels.counter_of(metric)) if metric else None
                    text = "" if value is None else repr(value * (100 if metric == "issue_active_pct" else 1))
                    printed.append((section, label, base.get(metric, ""), text))
                    shown.add(metric)
            page.append((launch.kernel, printed))
        text = details_page(page, rows[0].cc).replace('"(256, 1, 1)","(8, 4, 1)"', '"",""')
        same = shown - {"sm_mhz_in_ncu"}  # a report computes it from the cycles
        expected = printable(row for row in rows if row.metric in same)
        read_again = printable(row for row in read(tmp_path, text) if row.metric in same)
        assert read_again == pytest.approx(expected, rel=1e-12, nan_ok=True)


@needs_captures
@pytest.mark.parametrize(
    ("name", "count", "cc", "launch", "shown"),
    [
        ("copy_blocked.csv", 1, "7.5", 0, {"duration_us": 21058.944, "registers_per_thread": 32, "ipc": 0.03}),
        ("rtx5090_details.csv", 1, "12.0", 0, {"dram_bytes_read": 2.33e6, "dram_gbytes_per_s": 360.51}),
        ("h100_details_with_app_output.csv", 9, "9.0", 0, {"achieved_occupancy_pct": 42.7, "grid_blocks": 912}),
        ("a100_ncu_text.txt", 17, "8.0", 1, {"duration_us": 10.85, "grid_blocks": 1823, "sm_mhz_in_ncu": 1060}),
        ("a100_ncu_text.txt", 17, "8.0", 1, {"occupancy_limit_shared_memory_blocks": 164}),
        ("cc89_ncu_text.txt", 2, "8.9", 1, {"gpu_cycles": 27344, "duration_us": 11.55}),
        ("h100_nsys_stats.txt", 8, "", 0, kernel(28.992, 110, 3193.338)),
    ],
)  # fmt: skip
def test_pages_that_others_printed(name, count, cc, launch, shown):
    (path,) = CAPTURES.glob(f"*/{name}")
    rows = read_any(path)
    assert len({row.launch for row in rows}) == count
    assert {row.cc for row in rows} == {cc}
    assert {metric: values(rows)[launch, metric] for metric in shown} == pytest.approx(shown)
