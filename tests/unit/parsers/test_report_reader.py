import os
import shutil
from pathlib import Path

import pytest

from captures import CAPTURES, needs_captures
from report_files import Launch, Nsys, write_ncu
from warplog.core.errors import WarplogError
from warplog.machine import toolchain
from warplog.parsers import reports
from warplog.parsers.reports import read_any

DATA = Path(__file__).parents[2] / "data" / "parsers"


def picked(rows, metric):
    return {r.kernel: r.value for r in rows if r.metric == metric}


def test_an_ncu_report_is_known_by_its_content_whatever_its_name(tmp_path):
    report = write_ncu(tmp_path / "report.bin", [Launch("k", {"gpu__time_duration.sum": 2000.0})])
    rows = read_any(report)
    assert picked(rows, "duration_us") == {"k()": 2.0}
    assert {(r.tool, r.tool_version, r.gpu, r.cc, r.source) for r in rows} == {
        ("ncu", "2025.3.1.0", "NVIDIA H200", "9.0", str(report))
    }


def test_an_nsys_export_gives_medians_per_kernel(tmp_path):
    nsys = Nsys(tmp_path / "a.sqlite")
    for i, duration in enumerate((100, 900, 200)):
        nsys.kernel("k", called=10 * i, start=1000 * i, duration=duration)
    rows = read_any(nsys.write())
    assert picked(rows, "nsys_kernel_duration_us") == {"k(float*)": 0.2}
    assert picked(rows, "nsys_launches") == {"k(float*)": 3}
    assert picked(rows, "block_threads") == {"k(float*)": 128}


def test_copies_and_memsets_are_rows_with_totals_and_bytes(tmp_path):
    nsys = Nsys(tmp_path / "a.sqlite")
    nsys.copy(called=1, start=10, duration=3000, kind=1, moved=4096)
    nsys.copy(called=2, start=5000, duration=1000, kind=1, moved=1024)
    nsys.memset(called=3, start=9000, duration=500, moved=64)
    rows = read_any(nsys.write())
    assert picked(rows, "nsys_duration_us") == {"[CUDA memcpy Host-to-Device]": 2.0, "[CUDA memset]": 0.5}
    assert picked(rows, "nsys_total_us") == {"[CUDA memcpy Host-to-Device]": 4.0, "[CUDA memset]": 0.5}
    assert picked(rows, "nsys_bytes") == {"[CUDA memcpy Host-to-Device]": 5120, "[CUDA memset]": 64}


def test_kernels_of_two_gpus_are_kept_apart_under_the_name_of_their_gpu(tmp_path):
    nsys = Nsys(tmp_path / "a.sqlite", gpus=[("NVIDIA A40", 8, 6), ("NVIDIA A100", 8, 0)])
    for i, (device, duration) in enumerate(((0, 100), (1, 700), (0, 300))):
        nsys.kernel("k", called=10 * i, start=1000 * i, duration=duration, device=device)
    rows = read_any(nsys.write())
    medians = [(r.gpu, r.cc, r.value) for r in rows if r.metric == "nsys_kernel_duration_us"]
    assert medians == [("NVIDIA A40", "8.6", pytest.approx(0.2)), ("NVIDIA A100", "8.0", pytest.approx(0.7))]
    assert [r.value for r in rows if r.metric == "nsys_total_us"] == pytest.approx([0.4, 0.7])


def test_a_gpu_that_ran_nothing_is_not_named(tmp_path):
    nsys = Nsys(tmp_path / "a.sqlite", gpus=[("NVIDIA A40", 8, 6), ("NVIDIA A100", 8, 0)])
    nsys.kernel("k", called=0, start=0, duration=100)
    assert {r.gpu for r in read_any(nsys.write())} == {"NVIDIA A40"}


def test_gpus_are_those_that_cuda_sees(tmp_path):
    nsys = Nsys(tmp_path / "a.sqlite", gpus=[("NVIDIA A40", 8, 6), ("NVIDIA A100", 8, 0)], visible=[1])
    nsys.kernel("k", called=0, start=0, duration=100)
    assert {(r.gpu, r.cc) for r in read_any(nsys.write())} == {("NVIDIA A100", "8.0")}


def test_a_name_that_is_not_utf8_keeps_all_rows(tmp_path):
    report = write_ncu(tmp_path / "a.ncu-rep", [Launch("k\udce9", {"gpu__time_duration.sum": 1000.0})])
    nsys = Nsys(tmp_path / "b.sqlite")
    nsys.kernel("k", called=0, start=0, duration=100)
    trace = nsys.write()
    trace.write_bytes(trace.read_bytes().replace(b"k(float*)", b"\xe9(float*)"))
    odd = tmp_path / os.fsdecode(b"caf\xe9.ncu-rep")
    odd.write_bytes(report.read_bytes())
    errors = []
    table = reports.read_all([report, trace, odd], errors.append)
    assert errors == []
    assert list(dict.fromkeys(table["source"])) == [str(report), str(trace), f"{tmp_path}/caf\\xe9.ncu-rep"]
    assert set(table["kernel"]) == {"k\\xe9()", "\\xe9(float*)"}


def test_a_compiler_log_gives_resources_per_kernel_and_architecture():
    rows = read_any(DATA / "ptxas_two_archs.log")
    spilled = {(r.cc, r.value) for r in rows if r.metric == "spill_store_bytes" and r.value}
    assert spilled == {("8.0", 744), ("9.0", 1116)}
    unknown = [r for r in rows if r.metric == "constant_bytes" and r.cc == "9.0"]
    assert {(r.value, r.status, r.reason) for r in unknown} == {(None, "missing", "ptxas does not report it")}


def test_a_sass_dump_gives_opcodes_for_each_architecture():
    rows = read_any(DATA / "sass_two_archs.txt")
    counts = {(r.cc, r.kernel): r.value for r in rows if r.metric == "sass_instructions"}
    assert counts[("9.0", "empty")] == counts[("8.0", "empty")] == 2
    assert {r.value for r in rows if r.metric == "sass_LDG.E.128.CONSTANT"} == {1}


@pytest.mark.parametrize(
    "content", [b"", b"\0\1\2", b"ptxas info without a kernel", b"NVR\0", b"code for sm_90"]
)
def test_anything_else_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    with pytest.raises(WarplogError, match=r"file\.txt: ") as caught:
        read_any(path)
    assert "\n" not in str(caught.value)


def test_a_folder_or_a_missing_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(WarplogError, match="cannot be read"):
            read_any(path)


@pytest.fixture
def only_nsys(tmp_path, monkeypatch):
    """Removes all tools from the search path; returns a function that installs a script as nsys."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cp"):
        (folder / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(toolchain, "_ROOT", tmp_path)

    def install(script):
        program = folder / "nsys"
        program.write_text(
            '#!/bin/sh\n[ "$1" = --version ] && echo "NVIDIA Nsight Systems version 2025.5.1" && exit\n'
            f'[ "$1 $2 $3" = "export -t sqlite" ] || exit 9\n{script}\n'
        )
        program.chmod(0o755)

    return install


@pytest.fixture
def nsys_report(tmp_path):
    path = tmp_path / "trace.nsys-rep"
    path.write_bytes(b"NVIDIA Tegra Profiler Report\n2025.5.1\n\0\1 what only nsys can read")
    return path


def test_an_nsys_report_is_exported_by_the_nsys_that_is_there(tmp_path, only_nsys, nsys_report):
    export = Nsys(tmp_path / "made.sqlite")
    export.kernel("k", called=0, start=0, duration=100)
    only_nsys(f'cp {export.write()} "$7"')
    rows = read_any(nsys_report)
    assert picked(rows, "nsys_kernel_duration_us") == {"k(float*)": 0.1}
    assert {r.source for r in rows} == {str(nsys_report)}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "made.sqlite", "trace.nsys-rep"]


def test_an_nsys_report_is_known_by_its_first_bytes_whatever_its_name(tmp_path, only_nsys, nsys_report):
    export = Nsys(tmp_path / "made.sqlite")
    export.kernel("k", called=0, start=0, duration=100)
    only_nsys(f'case "$8" in *.nsys-rep) cp {export.write()} "$7";; esac')
    assert picked(read_any(nsys_report.rename(tmp_path / "trace.bin")), "nsys_launches") == {"k(float*)": 1}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo Please update; exit 1", r"nsys 2025\.5\.1 cannot export it \(exit status 1\): Please update"),
        ("exit 0", "it wrote nothing"),
        ('echo garbage > "$7"', "is not an SQLite file"),
    ],
)
def test_an_nsys_report_that_cannot_be_exported_is_refused(only_nsys, nsys_report, script, said):
    only_nsys(script)
    with pytest.raises(WarplogError, match=rf"trace\.nsys-rep: .*{said}") as caught:
        read_any(nsys_report)
    assert "\n" not in str(caught.value)
    assert "export.sqlite" not in str(caught.value)


@pytest.mark.usefixtures("only_nsys")
def test_without_nsys_the_remedy_is_said(nsys_report):
    with pytest.raises(WarplogError, match="install NVIDIA Nsight Systems, or run `nsys export"):
        read_any(nsys_report)


def test_a_text_of_endless_lines_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "many.txt"
    path.write_bytes(b"\n" * 2_000_001)
    with pytest.raises(WarplogError, match="over 2000000 lines"):
        read_any(path)


@needs_captures
def test_captures_of_others_are_read():
    files = [path for path in sorted(CAPTURES.glob("*/*")) if path.is_file()]
    assert files
    for path in files:
        rows = read_any(path)
        assert all((row.value is None) == (row.status != "ok") for row in rows)
        assert all(bool(row.reason) == (row.status != "ok") for row in rows)


def test_many_reports_are_read_apart_in_their_order_and_a_crash_costs_one(tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "FILES_A_PROCESS", 3)
    files = [
        write_ncu(tmp_path / f"{i}.ncu-rep", [Launch("k", {"gpu__time_duration.sum": 1000.0 * i})])
        for i in range(8)
    ]
    files[2].write_bytes(b"garbage")
    # Simulates a crash: the process that reads file 5 aborts.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'warplog.parsers.reports' in ' '.join(getattr(sys, 'orig_argv', [])):\n"
        "    from warplog.parsers.ncu import report\n"
        "    read = report.read\n"
        "    report.read = lambda p, **k: os.abort() if p.name == '5.ncu-rep' else read(p, **k)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    errors = []
    table = reports.read_all(files, errors.append)
    times = table[table["metric"] == "duration_us"]
    assert list(times["value"]) == [0, 1, 3, 4, 6, 7]
    assert [str(error).split(":")[0] for error in errors] == [str(files[2]), str(files[5])]
    assert "SIGABRT" in str(errors[1])
