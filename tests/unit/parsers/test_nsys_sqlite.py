import math
import sqlite3

import pytest

from captures import captured, needs_captures
from report_files import KERNEL_2021, KERNEL_2026, PROCESS, THREAD, Nsys
from warplog.core.errors import WarplogError
from warplog.parsers.nsys import sqlite, tables
from warplog.parsers.nsys.nvtx import NvtxRange, enclosing

CAPTURES = captured(".sqlite")


def small(path, columns=KERNEL_2026):
    """Writes an export with two launches in nested ranges; the kernels run after their ranges have ended."""
    nsys = Nsys(path, columns)
    nsys.range("case:64", 1_000, 5_000)
    nsys.range("launch:0", 1_100, 1_200)
    nsys.range("launch:1", 1_300, 1_400, as_id=True)
    nsys.kernel("gemm", called=1_110, start=9_000, duration=700)
    nsys.kernel("gemm", called=1_310, start=9_800, duration=720)
    nsys.kernel("warm_up", called=100, start=200, duration=50)
    nsys.copy(called=1_320, start=10_600, duration=300, kind=1, moved=4096)
    nsys.memset(called=4_000, start=11_000, duration=10, moved=64)
    return nsys


@pytest.mark.parametrize("columns", [KERNEL_2021, KERNEL_2026])
def test_kernels_know_the_ranges_of_their_launch_in_old_and_new_exports(tmp_path, columns):
    report = sqlite.read(small(tmp_path / "a.sqlite", columns).write())
    warm_up, first, second = report.kernels
    assert (warm_up.short_name, warm_up.ranges) == ("warm_up", ())
    assert first.ranges == ("case:64", "launch:0")
    assert second.ranges == ("case:64", "launch:1")
    assert (first.name, first.short_name, first.start_ns, first.duration_ns) == (
        "gemm(float*)",
        "gemm",
        9_000,
        700,
    )
    assert (first.grid, first.block, first.registers) == ((4, 2, 1), (128, 1, 1), 32)
    assert (first.static_shared_bytes, first.dynamic_shared_bytes, first.stream) == (1024, 0, 7)


def test_copies_memsets_and_calls_are_named_and_nested(tmp_path):
    report = sqlite.read(small(tmp_path / "a.sqlite").write())
    (copy,), (memset,) = report.memcpys, report.memsets
    assert (copy.name, copy.duration_ns) == ("Host-to-Device", 300)
    assert copy.ranges == ("case:64", "launch:1")
    assert (memset.name, memset.ranges) == ("Memset", ("case:64",))
    assert [c.name for c in report.calls] == [*["cudaLaunchKernel"] * 3, "cudaMemcpyAsync", "cudaMemsetAsync"]


def test_versions_and_gpu_are_read_where_the_export_has_them(tmp_path):
    report = sqlite.read(small(tmp_path / "a.sqlite").write())
    assert (report.tool_version, report.gpu_name) == ("2025.3.2.0", "NVIDIA H200")
    older = sqlite.read(small(tmp_path / "b.sqlite").write(meta=False))
    assert (older.tool_version, older.gpu_name) == ("", "")


def test_a_gpu_has_its_number_in_cuda_and_stands_for_others_only_if_all_are_one_model(tmp_path):
    """The second of three GPUs is hidden, and CUDA counts the others the other way round."""
    listed = [(0, 2, "A100", 8, 0), (1, 0, "T4", 7, 5), (2, 1, "H200", 9, 0)]
    reports = []
    for name, rows, numbers in (
        ("a", listed, [(2, 0), (0, 1)]),
        ("b", listed[:1], [(0, 1)]),
        ("c", listed, []),
    ):
        path = small(tmp_path / f"{name}.sqlite").write(meta=False)
        with sqlite3.connect(path) as database:
            database.execute("create table TARGET_INFO_GPU (id, cuDevice, name, computeMajor, computeMinor)")
            database.executemany("insert into TARGET_INFO_GPU values (?, ?, ?, ?, ?)", rows)
            database.execute("create table TARGET_INFO_CUDA_DEVICE (gpuId, cudaId)")
            database.executemany("insert into TARGET_INFO_CUDA_DEVICE values (?, ?)", numbers)
        database.close()
        reports.append(sqlite.read(path))
    two, one, unnumbered = reports
    assert two.gpus == {0: sqlite.Gpu("H200", "9.0"), 1: sqlite.Gpu("A100", "8.0")}
    assert (two.gpu_name, two.gpu(7)) == ("H200", sqlite.Gpu())
    assert (one.gpu_name, one.gpu(7)) == ("A100", sqlite.Gpu("A100", "8.0"))
    assert unnumbered.gpus[0] == sqlite.Gpu("T4", "7.5")


def test_the_range_of_another_thread_or_process_does_not_count(tmp_path):
    nsys = Nsys(tmp_path / "a.sqlite")
    nsys.range("mine", 0, 100)
    nsys.kernel("other_thread", called=10, start=20, duration=5, thread=THREAD + 1)
    nsys.kernel("other_process", called=10, start=30, duration=5, thread=THREAD + 0x1000000)
    nsys.kernel("own", called=10, start=40, duration=5)
    nsys.kernels[1]["globalPid"] = PROCESS  # same correlation id, but another process: a different call
    nsys.kernels[1]["correlationId"] = 99
    found = {k.short_name: k.ranges for k in sqlite.read(nsys.write()).kernels}
    assert found == {"other_thread": (), "other_process": (), "own": ("mine",)}


def test_no_kernel_is_an_error_that_repeats_what_nsys_said(tmp_path):
    nsys = Nsys(
        tmp_path / "a.sqlite", diagnostics=[(1, "Profiling has started."), (3, "CUDA\ninjection failed.")]
    )
    nsys.copy(called=1, start=2, duration=3, kind=2, moved=8)
    with pytest.raises(WarplogError, match=r"no CUDA kernel \(nsys reported: CUDA injection failed\.\)"):
        sqlite.read(nsys.write())
    with pytest.raises(WarplogError, match="injection failed"):
        sqlite.read(nsys.path, needs_kernels=False)


def test_copies_alone_are_enough_where_no_kernel_is_needed(tmp_path):
    nsys = Nsys(tmp_path / "a.sqlite")
    nsys.copy(called=1, start=2, duration=0, kind=2, moved=8)
    (copy,) = sqlite.read(nsys.write(), needs_kernels=False).memcpys
    assert (copy.name, copy.duration_ns) == ("Device-to-Host", 0), "shorter than a step of the clock"
    with pytest.raises(WarplogError, match="contains no CUDA kernel"):
        sqlite.read(nsys.path)


def test_a_warning_of_nsys_is_passed_on_where_there_is_no_kernel(tmp_path):
    warned = Nsys(
        tmp_path / "a.sqlite", diagnostics=[(1, "fine"), (2, "Not all CUDA events were collected.")]
    )
    with pytest.raises(
        WarplogError, match=r"no CUDA kernel \(nsys reported: Not all CUDA events were collected\.\)"
    ):
        sqlite.read(warned.write())


def test_a_warning_about_something_else_is_not_given_as_the_cause(tmp_path):
    warned = Nsys(
        tmp_path / "a.sqlite", diagnostics=[(2, "Not all OS runtime libraries events were collected.")]
    )
    with pytest.raises(WarplogError, match="no CUDA kernel; none was launched, or CUDA was not traced"):
        sqlite.read(warned.write())


def test_an_empty_kernel_table_is_an_error_too(tmp_path):
    path = Nsys(tmp_path / "a.sqlite").write()
    with sqlite3.connect(path) as database:
        database.execute("create table CUPTI_ACTIVITY_KIND_KERNEL (start, end)")
    database.close()
    with pytest.raises(WarplogError, match="contains no CUDA kernel"):
        sqlite.read(path)


def test_a_cut_at_any_place_is_found(tmp_path):
    data = small(tmp_path / "a.sqlite").write().read_bytes()
    cut = tmp_path / "cut.sqlite"
    for length in [*range(0, 200, 7), *range(200, len(data), len(data) // 60), len(data) - 1]:
        cut.write_bytes(data[:length])
        with pytest.raises(WarplogError) as caught:
            sqlite.read(cut)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"\1" * 5000])
def test_what_is_no_export_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "a.sqlite"
    path.write_bytes(content)
    with pytest.raises(WarplogError, match=r"a\.sqlite: ") as caught:
        sqlite.read(path)
    assert "\n" not in str(caught.value)


def test_times_that_are_no_numbers_are_damage(tmp_path):
    nsys = small(tmp_path / "a.sqlite")
    nsys.kernels[0]["end"] = "later"
    with pytest.raises(WarplogError, match="damaged"):
        sqlite.read(nsys.write())


def test_a_view_in_place_of_a_table_is_not_read(tmp_path):
    path = Nsys(tmp_path / "a.sqlite", diagnostics=[(1, "x")]).write()
    with sqlite3.connect(path) as database:
        database.execute("create view CUPTI_ACTIVITY_KIND_KERNEL as select 1 as start, 2 as end")
    database.close()
    with pytest.raises(WarplogError, match="contains no CUDA kernel"):
        sqlite.read(path)


def test_a_table_that_is_too_long_is_refused(tmp_path, monkeypatch):
    path = small(tmp_path / "a.sqlite").write()
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    with pytest.raises(WarplogError, match="more than 2 rows"):
        sqlite.read(path)


def test_reading_writes_nothing_beside_the_file(tmp_path):
    path = small(tmp_path / "a b#?.sqlite").write()
    sqlite.read(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_nesting_is_by_time_and_an_open_range_never_ends():
    ranges = [NvtxRange("open", 0, math.inf, 1), NvtxRange("b", 10, 20, 1), NvtxRange("c", 12, 14, 1)]
    calls = [(1, 1, 5, 6), (2, 1, 13, 14), (3, 1, 14, 19), (4, 1, 19, 25), (5, 2, 13, 14)]
    found = enclosing(calls, ranges)
    assert found == {1: ("open",), 2: ("open", "b", "c"), 3: ("open", "b"), 4: ("open",), 5: ()}
    together = [NvtxRange("inner", 10, 20, 1), NvtxRange("outer", 10, 30, 1)]
    assert enclosing([(1, 1, 12, 13)], together) == {1: ("outer", "inner")}


@needs_captures
def test_captures_are_read_with_their_ranges():
    reports = {p.stem: sqlite.read(p) for p in CAPTURES}
    two_gpus, loop = reports["h100_2gpu_1s"], reports["power_iteration__baseline"]
    assert (len(two_gpus.kernels), len(loop.kernels)) == (3442, 3689)
    assert loop.gpu_name == "Tesla T4"
    gemv = [k for k in loop.kernels if k.short_name == "gemv2T_kernel_val"]
    assert gemv[0].ranges == ("Loop", "Step 0 to 10", "Compute & Residual 0")
    assert all(k.duration_ns > 0 for r in reports.values() for k in r.kernels)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("end", 100),
        ("start", -1),
        ("gridX", 0),
        ("gridX", None),
        ("registersPerThread", -3),
        ("streamId", "x"),
    ],
)
def test_a_kernel_that_cannot_be_is_refused(tmp_path, column, value):
    nsys = small(tmp_path / "a.sqlite")
    nsys.kernels[0][column] = value
    with pytest.raises(WarplogError, match=r"a\.sqlite: is damaged"):
        sqlite.read(nsys.write())
