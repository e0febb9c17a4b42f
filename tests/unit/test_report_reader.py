from pathlib import Path

import pytest

from report_files import Launch, Nsys, write_ncu
from warplog.errors import WarplogError
from warplog.report_reader import read_any

DATA = Path(__file__).parents[1] / "data" / "parsers"
CAPTURES = Path(__file__).parents[2] / ".." / "shared" / "captures"
KEYS = [
    *("source", "tool", "tool_version", "gpu", "cc", "kernel", "launch"),
    *("metric", "value", "unit", "status", "reason"),
]


def picked(rows, metric):
    return {r["kernel"]: r["value"] for r in rows if r["metric"] == metric}


def test_an_ncu_report_is_known_by_its_content_whatever_its_name(tmp_path):
    rows = read_any(write_ncu(tmp_path / "report.bin", [Launch("k", {"gpu__time_duration.sum": 2000.0})]))
    assert picked(rows, "duration_us") == {"k()": 2.0}
    assert {(r["tool"], r["tool_version"], r["gpu"], r["cc"], r["source"]) for r in rows} == {
        ("ncu", "2025.3.1.0", "NVIDIA H200", "9.0", "report.bin")
    }


def test_an_nsys_export_gives_medians_per_kernel(tmp_path):
    nsys = Nsys(tmp_path / "a.sqlite")
    for i, duration in enumerate((100, 900, 200)):
        nsys.kernel("k", called=10 * i, start=1000 * i, duration=duration)
    rows = read_any(nsys.write())
    assert picked(rows, "nsys_kernel_duration_us") == {"k(float*)": 0.2}
    assert picked(rows, "nsys_launches") == {"k(float*)": 3}
    assert picked(rows, "block_threads") == {"k(float*)": 128}


def test_a_compiler_log_gives_resources_per_kernel_and_architecture():
    rows = read_any(DATA / "ptxas_two_archs.log")
    spilled = {(r["cc"], r["value"]) for r in rows if r["metric"] == "spill_store_bytes" and r["value"]}
    assert spilled == {("8.0", 744), ("9.0", 1116)}
    unknown = [r for r in rows if r["metric"] == "constant_bytes" and r["cc"] == "9.0"]
    assert {(r["value"], r["status"], r["reason"]) for r in unknown} == {
        (None, "missing", "ptxas does not say")
    }


def test_a_sass_dump_gives_opcodes_for_each_architecture():
    rows = read_any(DATA / "sass_two_archs.txt")
    counts = {(r["cc"], r["kernel"]): r["value"] for r in rows if r["metric"] == "sass_instructions"}
    assert counts[("9.0", "empty")] == counts[("8.0", "empty")] == 2
    assert {r["value"] for r in rows if r["metric"] == "sass_LDG.E.128.CONSTANT"} == {1}


def test_every_row_has_the_same_keys():
    for name in ("ptxas_sm90.log", "sass_sm90.txt"):
        assert all(list(row) == KEYS for row in read_any(DATA / name))


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


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures here")
def test_captures_of_others_are_read_or_refused_with_a_reason():
    for path in sorted(CAPTURES.glob("*/*")):
        if path.suffix in (".ncu-rep", ".sqlite"):
            assert read_any(path)
        else:
            with pytest.raises(WarplogError, match=path.name):
                read_any(path)
