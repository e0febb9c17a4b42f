"""Pages that ncu prints, as CSV or text, give the same values as the .ncu-rep from which they were printed."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from printed_pages import SPEED, csv_line, details_page, raw_page, refused, text_page

from captures import CAPTURES, captured, needs_captures
from warplog.core.errors import WarplogError
from warplog.metrics import METRICS, OPCODE_COUNTER
from warplog.parsers import units
from warplog.parsers.ncu import labels as ncu_labels
from warplog.parsers.ncu import pages
from warplog.parsers.ncu import report as ncu_rep
from warplog.parsers.reports import read_any

NOISE = '==PROF== Connected to process 77\nsize,time\n"quoted" words\n'
BASE_UNITS = {"duration_us": "ns", "sm_mhz_in_ncu": "hz", "dram_gbytes_per_s": "byte/s"}
SCALED = {"ns": ("usecond", 1e3), "hz": ("cycle/nsecond", 1e9), "byte/s": ("Gbyte/s", 1e9)} | {
    "byte": ("Mbyte", 1e6)
}
REPORTS = [Path(__file__).parents[2] / "data" / "parsers" / "transpose_h200.ncu-rep", *captured(".ncu-rep")]
VALUES = [
    (SPEED, "Duration", "usecond", "1,523.71"),
    (SPEED, "DRAM Throughput", "%", "0.00"),
    ("Launch Statistics", "Function Cache Configuration", "", "CachePreferNone"),
    ("Launch Statistics", "Registers Per Thread", "register/thread", "38"),
    ("Occupancy", "Achieved Occupancy", "%", "58.78"),
]
NAME = "void k<float (*)(int), 4>(float *, lambda(int) (instance 1))"


def read(tmp_path, text):
    path = tmp_path / "page.txt"
    path.write_text(text, encoding="utf-8")
    return read_any(path)


def found(rows, metric, launch=0):
    (row,) = (r for r in rows if r.metric == metric and r.launch == launch)
    return row.value


def why(rows, metric):
    (row,) = (r for r in rows if r.metric == metric)
    assert (row.value, row.status) == (None, "missing")
    return row.reason


def known(rows):
    return [(r.launch, r.metric, r.value) for r in rows if r.status == "ok"]


def kernels(rows):
    return list(dict.fromkeys((r.launch, r.kernel, r.cc) for r in rows))


def timed(*durations):
    return [
        ("k(int)", [(SPEED, "Duration", "ns", text), (SPEED, "Elapsed Cycles", "cycle", "9")])
        for text in durations
    ]


def announced(count):
    return "".join(f'==PROF== Profiling "k" - {i}: 0%....100% - 2 passes\n' for i in range(count))


def test_a_raw_page_is_evaluated_as_a_report_is(tmp_path):
    counters = {
        "gpu__time_duration.sum": "1,234.50",
        "dram__bytes_read.sum": "2.50",
        "launch__function_cache_config": "CachePreferNone",
        "launch__registers_per_thread": "n/a",
    }
    unit = {"gpu__time_duration.sum": "usecond", "dram__bytes_read.sum": "Mbyte"}
    rows = read(tmp_path, NOISE + raw_page([("k(int)", counters), ("j()", {})], unit))
    assert found(rows, "duration_us") == 1234.5
    assert found(rows, "dram_bytes_read") == 2.5e6
    assert {(r.tool, r.cc, r.kernel, r.launch) for r in rows} == {
        ("ncu", "9.0", "k(int)", 0),
        ("ncu", "9.0", "j()", 1),
    }
    assert (found(rows, "grid_blocks"), found(rows, "block_threads")) == (32, 256)
    missing = {r.metric: r.reason for r in rows if r.launch == 0 and r.status == "missing"}
    assert missing["registers_per_thread"] == "counter launch__registers_per_thread has no value"
    assert missing["dram_bytes_written"].endswith("is not in the report")
    assert found(rows, "duration_us", launch=1) is None


def test_a_sum_of_opcodes_is_not_taken_for_opcodes_that_never_ran(tmp_path):
    counters = {OPCODE_COUNTER: "640", "sass__thread_inst_executed_true_per_opcode": "12,800 (1; 2)"}
    rows = read(tmp_path, raw_page([("k", counters)], {}))
    assert found(rows, "threads_per_instruction") == 20
    assert "not its opcodes" in why(rows, "inst_ffma")
    assert found(rows, "tensor_flops") is None


def test_a_raw_page_without_size_columns_takes_the_chip_from_its_counters(tmp_path):
    counters = {
        "device__attribute_compute_capability_major": "8",
        "device__attribute_compute_capability_minor": "6",
        "device__attribute_display_name": "NVIDIA A10G",
    }
    text = raw_page([("k", counters)], {}).replace('"Block Size","Grid Size","Device","CC",', "")
    text = text.replace('"","","","","","","","","","","",', '"","","","","","","",')
    rows = read(tmp_path, text.replace('"(256, 1, 1)","(8, 4, 1)","0","9.0",', ""))
    assert {(r.cc, r.gpu) for r in rows} == {("8.6", "NVIDIA A10G")}
    assert found(rows, "grid_blocks") is None


@pytest.mark.parametrize(
    ("section", "label", "unit", "value", "metric", "expected"),
    [
        (SPEED, "Duration", "usecond", "523.71", "duration_us", 523.71),
        (SPEED, "Duration", "us", "6.46", "duration_us", 6.46),
        (SPEED, "Duration", "msecond", "2.86", "duration_us", 2860),
        (SPEED, "Duration", "second", "1.5", "duration_us", 1.5e6),
        ("GPU Speed Of Light", "SOL DRAM", "%", "9.08", "dram_throughput_pct", 9.08),
        ("GPU Speed Of Light", "SM [%]", "%", "41.95", "sm_throughput_pct", 41.95),
        (SPEED, "SM Frequency", "cycle/usecond", "763.55", "sm_mhz_in_ncu", 763.55),
        (SPEED, "SM Frequency", "Ghz", "1.99", "sm_mhz_in_ncu", 1990),
        (SPEED, "SM Frequency", "hz", "584,998,877.44", "sm_mhz_in_ncu", 584.99887744),
        ("Memory Workload Analysis", "Memory Throughput", "Gbyte/second", "554.92", "dram_gbytes_per_s", 554.92),
        ("Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "1.25", "dram_gbytes_per_s", 1250),
        ("Launch Statistics", "Static Shared Memory Per Block", "Kbyte/block", "2.66", "static_shared_bytes", 2660),
        ("Launch Statistics", "Registers Per Thread", "register/thread", "38", "registers_per_thread", 38),
        ("Scheduler Statistics", "One or More Eligible", "%", "12.47", "issue_active_pct", 12.47),
        ("Command line profiler metrics", "dram__bytes_read.sum", "Mbyte", "2.33", "dram_bytes_read", 2.33e6),
    ],
)  # fmt: skip
def test_a_details_page_gives_the_registrys_units(tmp_path, section, label, unit, value, metric, expected):
    rows = read(tmp_path, details_page([("k", [(section, label, unit, value)])]))
    assert found(rows, metric) == pytest.approx(expected, rel=1e-12)
    assert [r.metric for r in rows if r.status == "ok"] in (
        [metric, "grid_blocks", "block_threads"],
        ["grid_blocks", "block_threads", metric],
    )


def test_the_same_label_in_another_section_is_another_thing(tmp_path):
    rows = read(tmp_path, details_page([("k", [(SPEED, "Memory Throughput", "%", "61.84")])]))
    assert found(rows, "dram_gbytes_per_s") is None


def test_what_cannot_be_converted_is_missing_with_the_reason(tmp_path):
    values = [(SPEED, "Duration", "fortnight", "2"), (SPEED, "Elapsed Cycles", "cycle", "n/a")]
    rows = read(tmp_path, details_page([("k", values)]))
    assert why(rows, "duration_us") == "Duration has the unknown unit 'fortnight'"
    assert "has no value" in why(rows, "gpu_cycles")


def test_a_limit_by_configured_shared_memory_is_freed_of_it_where_the_sizes_are_exact(tmp_path):
    def page(unit, size):
        limits = (("Warps", "8"), ("Registers", "6"), ("SM", "32"), ("Shared Mem", "6"))
        values = [("Occupancy", f"Block Limit {name}", "block", limit) for name, limit in limits]
        values += [("Launch Statistics", "Static Shared Memory Per Block", unit, size)]
        values += [("Launch Statistics", "Dynamic Shared Memory Per Block", "byte/block", "0")]
        return read(tmp_path, details_page([("k", values)], cc="8.0"))

    rows = page("byte/block", "16")
    assert found(rows, "occupancy_limit_shared_memory_blocks") == 164 * 1024 // 1152
    assert found(rows, "shared_bytes_per_block") == 1040
    rows = page("Kbyte/block", "8.19")
    assert "configured" in why(rows, "occupancy_limit_shared_memory_blocks")
    assert found(rows, "shared_bytes_per_block") is None


def test_the_text_gives_what_the_csv_gives(tmp_path):
    launches = [(NAME, VALUES), ("j()", VALUES[:4])]
    rows = read(tmp_path, "$ ncu ./app\nhello, Context\n" + text_page(launches[::-1]))
    assert rows == [
        row._replace(source=str(tmp_path / "page.txt"))
        for row in read(tmp_path, details_page(launches[::-1]))
    ]
    assert [r.kernel for r in rows][:1] + [r.kernel for r in rows][-1:] == ["j()", NAME]
    assert {(r.tool, r.cc) for r in rows} == {("ncu", "9.0")}


def test_a_text_of_before_2022_has_no_sizes_and_no_chip(tmp_path):
    rows = read(tmp_path, text_page([(NAME, VALUES)], titled=False))
    assert {(r.kernel, r.cc) for r in rows} == {(NAME, "")}
    assert known(rows) == [
        (0, "duration_us", 1523.71),
        (0, "registers_per_thread", 38),
        (0, "achieved_occupancy_pct", 58.78),
        (0, "dram_throughput_pct", 0),
    ]


def test_an_indented_text_is_read_as_if_it_were_not(tmp_path):
    text = text_page([(NAME, VALUES), ("j()", VALUES)])
    indented = "".join(f"        {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    assert read(tmp_path, indented) == read(tmp_path, text)


def test_headings_with_different_indentations_start_launches(tmp_path):
    text = text_page([("i()", VALUES), ("j()", VALUES)])
    assert kernels(read(tmp_path, text.replace("  j() (8,", "      j() (8,"))) == [
        (0, "i()", "9.0"),
        (1, "j()", "9.0"),
    ]


@pytest.mark.parametrize(
    "wrapped",
    [
        "  void k<float (*)(int), 4>(float *, lambda(int) (instance 1))\n  (8, 4, 1)x(256, 1, 1), Context",
        "  void k<float (*)(int), 4>(float *,\n  lambda(int) (instance 1)) (8, 4, 1)x(256, 1, 1), Context",
        "  void k<float (*)(int), 4>\n      (float *, lambda(int) (instance 1)) (8, 4, 1)x(256, 1, 1), Context",
        "  void k<float (*)(int), 4>(float *, lam\nbda(int) (instance 1)) (8, 4, 1)x(256, 1, 1), Context",
    ],
)
def test_a_wrapped_heading_gives_the_whole_name(tmp_path, wrapped):
    text = text_page([("j()", VALUES), (NAME, VALUES)])
    rows = read(tmp_path, text.replace(f"  {NAME} (8, 4, 1)x(256, 1, 1), Context", wrapped))
    names = [name.replace("4> (", "4>(") for _, name, _ in kernels(rows)]
    assert names == ["j()", NAME]
    assert (1, "grid_blocks", 32) in known(rows)


def test_lines_of_others_between_the_rows_are_passed_over(tmp_path):
    lines = details_page(timed("1", "2")).splitlines(keepends=True)
    lines[2:2] = ["==WARNING== Failed to detect compute capability, assuming 50\n", "\n", "done in 3, or 4\n"]
    rows = read(tmp_path, NOISE + "".join(lines) + "==PROF== Disconnected\n")
    assert (found(rows, "duration_us", 0), found(rows, "duration_us", 1)) == (0.001, 0.002)


def test_several_pages_in_one_file_are_several_launches(tmp_path):
    rows = read(tmp_path, details_page(timed("1000")) + details_page(timed("2,000"), rule=False))
    assert (found(rows, "duration_us", 0), found(rows, "duration_us", 1)) == (1, 2)


def test_a_page_that_a_spreadsheet_saved_anew_is_read(tmp_path):
    text = details_page(timed("1000"), rule=False).replace('"(256, 1, 1)","(8, 4, 1)"', "256,32")
    rows = read(tmp_path, "\ufeff" + text.replace('"', "").replace("\n", "\r\n"))
    assert found(rows, "duration_us") == 1


def test_a_line_of_ncu_inside_a_table_is_passed_over(tmp_path):
    text = text_page([("k", VALUES)])
    start = text.index("    DRAM Throughput")
    warned = text[:start] + "==WARNING== Failed to detect compute capability, assuming 50\n" + text[start:]
    assert known(read(tmp_path, warned)) == known(read(tmp_path, text))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_page_that_a_shell_stored_in_another_encoding_is_read(tmp_path, encoding):
    path = tmp_path / "page.txt"
    path.write_bytes(details_page(timed("1")).replace("\n", "\r\n").encode(encoding))
    assert read_any(path) == read(tmp_path, details_page(timed("1")))


def test_launches_that_ncu_could_not_profile_are_no_cut(tmp_path):
    failed = '==PROF== Profiling "j" - 1: 0%....\n==ERROR== LaunchFailed\n'
    replayed = '==PROF== Profiling "k": Application replay pass 1\n'
    assert read(tmp_path, failed + text_page([("k", VALUES)]))
    assert read(tmp_path, replayed * 2 + text_page([("k", VALUES)]))


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


def averages(grid, invocations, minimum, maximum, average):
    about = ["77", "app", "127.0.0.1", "k(int)", "(256, 1, 1)", f"({grid}, 1, 1)", "0", "8.0", invocations]
    values = [
        ("Duration", "usecond", minimum, maximum, average),
        ("Compute (SM) Throughput", "%", "1", "3", "2"),
    ]
    return "".join(csv_line([*about, SPEED, *value]) for value in values)


def test_a_summary_page_gives_the_averages_of_each_kernel_and_configuration(tmp_path):
    rows = read(
        tmp_path,
        NOISE + SUMMARY_AS_CSV + averages(4, "14", "1.0", "9.0", "2.5") + averages(8, "3", "5", "7", "6"),
    )
    for launch, expected in ((0, (2.5, 4, 256, 14, 2)), (1, (6, 8, 256, 3, 2))):
        names = ("duration_us", "grid_blocks", "block_threads", "ncu_launches", "sm_throughput_pct")
        assert tuple(found(rows, name, launch) for name in names) == expected
    assert {r.cc for r in rows} == {"8.0"}


def test_a_summary_as_text_gives_the_averages_too(tmp_path):
    rows = read(tmp_path, SUMMARY)
    assert kernels(rows) == [(0, "saxpy(float, const float *)", "11.0"), (1, "scale(float *)", "11.0")]
    values = {(launch, metric): value for launch, metric, value in known(rows)}
    assert values[0, "instructions_executed"] == 1_016_842.5
    assert (values[0, "duration_us"], values[0, "ncu_launches"], values[0, "grid_blocks"]) == (2.0, 14, 4096)
    assert (values[1, "achieved_occupancy_pct"], values[1, "ncu_launches"]) == (35.26, 3)


ENDED = {
    "details": details_page(timed("1", "2"), rule=False),
    "raw": raw_page([("k", {"gpu__time_duration.sum": "1"}), ("k", {"gpu__time_duration.sum": "25"})], {}),
    "one launch": details_page([("k", [*timed("1")[0][1], VALUES[-1]])], rule=False),
    "text": SUMMARY.rstrip("\n") + "\n",
}


@pytest.mark.parametrize("page", ENDED)
def test_a_page_without_the_last_line_end_is_whole_if_its_last_cell_or_table_is_closed(tmp_path, page):
    assert read(tmp_path, ENDED[page][:-1]) == read(tmp_path, ENDED[page])
    with pytest.raises(WarplogError, match="is truncated"):
        read(tmp_path, ENDED[page][: -2 if page != "text" else ENDED[page].rindex("35.26") + 3])


def test_of_a_cut_page_only_the_loss_of_an_ending_rule_goes_unseen(tmp_path):
    for page in (details_page(timed("1", "2")), raw_page([("k", {"a": "1"}), ("k", {"a": "2"})], {})):
        text = announced(2) + page
        start = text.index("Kernel Name")
        cuts = [text[:n] for n in range(start, len(text)) if not refused(tmp_path / "cut", text[:n].encode())]
        assert all(pages.parse(cut) == pages.parse(text) for cut in cuts)
        assert len(min(cuts, key=len)) >= (
            text.rindex('"1","77"') - len('"",\n') if "OPT" in text else len(text) - 1
        )
        assert all(refused(tmp_path / "cut", text[:n].encode()) for n in range(0, start, 9))


def cut(text, end, past=0):
    return text[: text.rindex(end) + past]


DETAILS = details_page(timed("1", "2"), rule=False)
TEXT = announced(2) + text_page([("k", VALUES), ("j", VALUES)])
RAW = raw_page([("k", {"gpu__time_duration.sum": "2"})], {})
DAMAGED = {
    "1 of 2 profiled launches (of a text)": cut(TEXT, "  j (8"),
    "14 of 17 profiled launches": announced(17) + SUMMARY_AS_CSV + averages(4, "14", "1", "9", "2"),
    "its last launch has fewer labels": cut(TEXT, "    Section: Occupancy"),
    "its last launch has fewer labels than the one before": cut(DETAILS[:-1], "\n", 1),
    "it stops inside the section GPU Speed": cut(details_page(timed("1"), rule=False)[:-1], "\n", 1),
    "last line has no line end (of one launch)": details_page(timed("1"), rule=False)[:-1],
    "last line has no line end": cut(TEXT, "roughput"),
    "ends inside a table": cut(TEXT, "    DRAM Throughput"),
    "a launch has no table": cut(TEXT, "    Section: GPU"),
    "a table contains other": TEXT.replace("    DRAM", "epoch 3 of 10, loss 0.25\n    DRAM"),
    "begins with a section": TEXT.replace(
        "  k (8, 4, 1)x(256, 1, 1), Context", "  k (8, 4, 1)x(256, 1, 1), Cont"
    ),
    "Duration occurs twice in a launch": TEXT.replace(
        "j (8, 4, 1)x(256, 1, 1), Context", "j (8, 4, 1), Cont"
    ),
    "a heading without the name of its kernel": TEXT.replace("  j (8", "  (8"),
    "a heading without the name (of damaged sizes)": TEXT.replace("(8, 4, 1)", "(8, x, 1)"),
    "the launch 0 occurs twice": RAW + RAW.splitlines()[-1] + "\n",
    "the launch 0 occurs twice (of details)": '"0","77"'.join(DETAILS.rsplit('"1","77"', 1)),
    "has a decimal comma": details_page(timed("1.234,5")),
    "its columns are not those of ncu": DETAILS.replace("Metric Unit", "Unit"),
    "more than 5000 launches": raw_page([("k", {})] * 5001, {}),
    "more than 5000 launches (of a text)": text_page([("k", [])] * 5001),
}


@pytest.mark.parametrize("said", DAMAGED)
def test_a_cut_or_damaged_page_is_refused_in_one_line(tmp_path, said):
    with pytest.raises(WarplogError, match=rf"page\.txt: .*{said.partition(' (')[0]}") as caught:
        read(tmp_path, DAMAGED[said])
    assert "\n" not in str(caught.value)


@given(st.text(max_size=30))
@settings(max_examples=50, deadline=None)
def test_any_number_and_unit_is_read_or_none(text):
    assert units.to_base(text) is None or units.to_base(text) > 0
    try:
        assert units.number(text) is None or abs(units.number(text)) < float("inf")
    except WarplogError:
        assert "," in text


def values_of(rows):
    """Returns values by (launch, metric), except metrics of single opcodes, which a printed page does not contain.

    A report without counters of operations gives FLOPs from opcodes.
    """
    opcodes = {m.name for m in METRICS.values() if any(f"{OPCODE_COUNTER}:" in c for c in m.counters)}
    opcodes |= {f"fp{bits}_flops" for bits in (16, 32, 64)}
    return {
        (r.launch, r.metric): float("nan") if r.value is None else r.value
        for r in rows
        if r.metric not in opcodes | {"arithmetic_intensity_flop_per_byte"}
    }


def unit_of(path):
    import ncu_report

    action = ncu_report.load_report(str(path)).range_by_idx(0).action_by_idx(0)
    return {name: action.metric_by_name(name).unit() for name in action.metric_names()}


@pytest.mark.parametrize("scaled", [False, True])
def test_a_capture_printed_as_a_raw_page_gives_the_same_values(tmp_path, scaled):
    for path in REPORTS:
        unit = unit_of(path)
        factors = {name: SCALED[u] for name, u in unit.items() if scaled and u in SCALED}
        launches = [
            (
                launch.kernel,
                {
                    name: f"{value / factors.get(name, ('', 1.0))[1]!r}"
                    for name, value in launch.counters.items()
                    if value is not None and ":" not in name
                },
            )
            for launch in ncu_rep.read(path).launches
        ]
        cc = next(r.cc for r in read_any(path))
        text = raw_page(launches, unit | {name: new for name, (new, _) in factors.items()}, cc)
        text = text.replace('"(256, 1, 1)","(8, 4, 1)"', '"",""')
        expected = values_of(read_any(path))
        assert values_of(read(tmp_path, text)) == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_a_capture_printed_as_a_details_page_gives_the_same_values(tmp_path):
    for path in REPORTS:
        report = ncu_rep.read(path)
        launches = []
        for launch in report.launches:
            values = [
                (
                    "Launch Statistics",
                    "Dynamic Shared Memory Per Block",
                    "byte/block",
                    repr(launch.counters["launch__shared_mem_per_block_dynamic"]),
                )
            ]
            for section, labels in ncu_labels._SECTIONS.items():
                for text, label in labels.items():
                    value = launch.counters.get(ncu_labels.counter_of(label.metric))
                    unit = BASE_UNITS.get(label.metric, "")
                    if value is not None:
                        values.append((section, text, unit, repr(value / label.factor)))
            launches.append((launch.kernel, values))
        expected = read_any(path)
        text = details_page(launches, next(r.cc for r in expected))
        text = text.replace('"(256, 1, 1)","(8, 4, 1)"', '"",""')
        printed = {label.metric for labels in ncu_labels._SECTIONS.values() for label in labels.values()}
        rows = [r for r in read(tmp_path, text) if r.metric in printed - {"sm_mhz_in_ncu"}]
        expected = [r for r in expected if r.metric in printed - {"sm_mhz_in_ncu"}]
        assert values_of(rows) == pytest.approx(values_of(expected), rel=1e-12, nan_ok=True)


@needs_captures
@pytest.mark.parametrize(
    ("name", "launches", "cc", "launch", "values"),
    [
        (
            "copy_blocked.csv",
            1,
            "7.5",
            0,
            {"duration_us": 21058.944, "registers_per_thread": 32, "ipc": 0.03},
        ),
        ("rtx5090_details.csv", 1, "12.0", 0, {"dram_bytes_read": 2.33e6, "dram_gbytes_per_s": 360.51}),
        (
            "h100_details_with_app_output.csv",
            9,
            "9.0",
            0,
            {"achieved_occupancy_pct": 42.7, "grid_blocks": 912},
        ),
        (
            "a100_ncu_text.txt",
            17,
            "8.0",
            1,
            {"duration_us": 10.85, "grid_blocks": 1823, "sm_mhz_in_ncu": 1060},
        ),
        ("a100_ncu_text.txt", 17, "8.0", 1, {"occupancy_limit_shared_memory_blocks": 164}),
        ("cc89_ncu_text.txt", 2, "8.9", 1, {"gpu_cycles": 27344, "duration_us": 11.55}),
    ],
)
def test_pages_that_others_printed(name, launches, cc, launch, values):
    (path,) = CAPTURES.glob(f"*/{name}")
    rows = read_any(path)
    assert len({r.launch for r in rows}) == launches == len(pages.parse(path.read_text()))
    assert {r.cc for r in rows} == {cc}
    assert {metric: found(rows, metric, launch) for metric in values} == pytest.approx(values)
