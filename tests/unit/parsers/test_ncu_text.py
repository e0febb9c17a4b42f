"""The tables that ncu prints to a terminal, which are often kept instead of the report."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from printed_pages import SPEED, damaged, details_page, refused, text_page

from captures import CAPTURES, needs_captures
from warplog.core.errors import WarplogError
from warplog.parsers.ncu import pages
from warplog.parsers.reports import read_any

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


def kernels(rows):
    return list(dict.fromkeys((r.launch, r.kernel, r.cc) for r in rows))


def known(rows):
    return [(r.launch, r.metric, r.value) for r in rows if r.status == "ok"]


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


def test_a_heading_without_a_name_is_refused(tmp_path):
    text = text_page([("j()", VALUES), (NAME, VALUES)])
    with pytest.raises(WarplogError, match="a heading without the name of its kernel"):
        read(tmp_path, text.replace(f"  {NAME} (8", "  (8"))


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


def test_a_summary_page_gives_averages(tmp_path):
    rows = read(tmp_path, SUMMARY)
    assert kernels(rows) == [(0, "saxpy(float, const float *)", "11.0"), (1, "scale(float *)", "11.0")]
    values = {(launch, metric): value for launch, metric, value in known(rows)}
    assert values[0, "instructions_executed"] == 1_016_842.5
    assert (values[0, "duration_us"], values[0, "ncu_launches"], values[0, "grid_blocks"]) == (2.0, 14, 4096)
    assert (values[1, "achieved_occupancy_pct"], values[1, "ncu_launches"]) == (35.26, 3)


def test_a_text_that_ends_with_a_table_needs_no_last_line_end(tmp_path):
    text = SUMMARY.rstrip("\n")
    assert read(tmp_path, text) == read(tmp_path, SUMMARY)
    with pytest.raises(WarplogError, match="last line has no line end"):
        read(tmp_path, text[: text.rindex("35.26") + 3])


def test_a_line_of_ncu_inside_a_table_is_passed_over_and_any_other_is_not(tmp_path):
    text = text_page([("k", VALUES)])
    start = text.index("    DRAM Throughput")
    warned = text[:start] + "==WARNING== Failed to detect compute capability, assuming 50\n" + text[start:]
    assert known(read(tmp_path, warned)) == known(read(tmp_path, text))
    with pytest.raises(WarplogError, match=r"page\.txt: is truncated or damaged: a table contains"):
        read(tmp_path, text[:start] + "epoch 3 of 10, loss 0.25\n" + text[start:])


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("    DRAM Throughput", "ends inside a table"),
        ("    Section: Occupancy", "its last launch has fewer labels"),
        ("    Section: GPU", "a launch has no table"),
        ("  j (8", "1 of 2 profiled launches"),
        ("roughput", "last line has no line end"),
    ],
)
def test_a_text_that_stops_short_is_refused(tmp_path, end, said):
    announced = "".join(f'==PROF== Profiling "k" - {i}: 0%....100% - 9 passes\n' for i in range(2))
    text = announced + text_page([("k", VALUES), ("j", VALUES)])
    assert read(tmp_path, text)
    with pytest.raises(WarplogError, match=said) as caught:
        read(tmp_path, text[: text.rindex(end)])
    assert "\n" not in str(caught.value)


def test_launches_that_ncu_could_not_profile_are_no_cut(tmp_path):
    failed = '==PROF== Profiling "j" - 1: 0%....\n==ERROR== LaunchFailed\n'
    replayed = '==PROF== Profiling "k": Application replay pass 1\n'
    assert read(tmp_path, failed + text_page([("k", VALUES)]))
    assert read(tmp_path, replayed * 2 + text_page([("k", VALUES)]))


def test_more_launches_than_fit_are_refused(tmp_path):
    with pytest.raises(WarplogError, match="more than 5000 launches"):
        read(tmp_path, text_page([("k", [])] * 5001))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_text_is_read_or_refused_in_one_line(tmp_path, data):
    page = damaged(text_page([("k", VALUES), ("j", VALUES)]), data, b"-\n,.\0\xff9= ")
    refused(tmp_path / "page.txt", page[: data.draw(st.integers(1, len(page)))])


@needs_captures
def test_texts_that_others_printed():
    (path,) = CAPTURES.glob("*/a100_ncu_text.txt")
    rows = read_any(path)
    assert len(pages.parse(path.read_text())) == len({r.launch for r in rows}) == 17
    square = {r.metric: r.value for r in rows if r.kernel == "square_kernel_0d1d234"}
    assert (square["duration_us"], square["grid_blocks"], square["sm_mhz_in_ncu"]) == (10.85, 1823, 1060)
    assert (square["dram_throughput_pct"], square["occupancy_limit_shared_memory_blocks"]) == (34.28, 164)
    (path,) = CAPTURES.glob("*/cc89_ncu_text.txt")
    rows = [r for r in read_any(path) if r.launch == 1]
    assert {r.cc for r in rows} == {"8.9"}
    assert (1, "gpu_cycles", 27344) in known(rows)
    assert (1, "duration_us", 11.55) in known(rows)


@pytest.mark.parametrize(
    ("damaged_part", "words"),
    [
        ("  k (8", "begins with a section"),
        ("  k2 (8", "Duration occurs twice in a launch"),
    ],
)
def test_tables_without_their_heading_are_not_those_of_another_launch(tmp_path, damaged_part, words):
    page = text_page([("k", VALUES), ("k2", VALUES)])
    heading = next(line for line in page.splitlines() if line.startswith(damaged_part))
    with pytest.raises(WarplogError, match=words):
        pages.parse(page.replace(heading, heading.replace("Context", "Cont")))


def test_damaged_sizes_are_not_taken_for_a_part_of_the_name():
    with pytest.raises(WarplogError, match="a heading without the name of its kernel"):
        pages.parse(text_page([("k", VALUES)]).replace("(8, 4, 1)", "(8, x, 1)"))
