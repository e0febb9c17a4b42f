import math
import struct

import pytest

from captures import captured, needs_captures
from report_files import Launch, message, ncu_blocks, session_block, write_ncu
from warplog.core.errors import WarplogError
from warplog.parsers.ncu import blocks as framing
from warplog.parsers.ncu import report as ncu_rep

CAPTURES = captured(".ncu-rep")
LAUNCHES = [
    Launch("alpha", {"gpu__time_duration.sum": 1500.0}, ("case:64", "launch:0")),
    Launch("beta", {"gpu__time_duration.sum": 250.0}),
    Launch("gamma", {"gpu__time_duration.sum": 1.0}, ("case:128",)),
]


def test_launches_come_with_names_ranges_and_gpu(tmp_path):
    report = ncu_rep.read(write_ncu(tmp_path / "a.ncu-rep", LAUNCHES))
    assert report.tool_version == "2025.3.1.0"
    assert [(k.function, k.kernel, k.index) for k in report.launches] == [
        ("alpha", "alpha()", 0),
        ("beta", "beta()", 1),
        ("gamma", "gamma()", 2),
    ]
    alpha = report.launches[0]
    assert (alpha.compute_capability, alpha.gpu_name) == ((9, 0), "NVIDIA H200")
    assert alpha.counters["gpu__time_duration.sum"] == 1500.0
    assert [k.ranges for k in report.launches] == [("case:64", "launch:0"), (), ("case:128",)]


def test_absent_values_and_named_entries_are_kept_apart(tmp_path):
    counters = {
        "broken": math.nan,
        "empty": None,
        "text": "CachePreferNone",
        "per_opcode": {"FFMA": 12, "LDG": 3},
        "breakdown:sm__throughput": 4.0,
        "derived__memory_l1_conflicts_shared_nway": {"FFMA": 2, "LDG": 3},
        "derived__avg_thread_executed": {"FFMA": 2, "LDG": 3},
        "derived__memory_l2_theoretical_sectors_global_excessive_pct": 4.0,
    }
    found = ncu_rep.read(write_ncu(tmp_path / "a.ncu-rep", [Launch("alpha", counters)])).launches[0].counters
    assert math.isnan(found["broken"])
    assert found["empty"] is None
    assert (found["per_opcode"], found["per_opcode:FFMA"], found["per_opcode:LDG"]) == (15.0, 12.0, 3.0)
    assert not {"text", "breakdown:sm__throughput"} & set(found)
    assert "derived__memory_l1_conflicts_shared_nway" not in found, "a sum of ratios means nothing"
    assert found["derived__avg_thread_executed"] == 5.0
    assert found["derived__memory_l2_theoretical_sectors_global_excessive_pct"] == 4.0


def test_only_the_requested_counters_are_read(tmp_path):
    counters = {"gpu__time_duration.sum": 1.0, "other": 2.0, "per_opcode": {"FFMA": 12}}
    path = write_ncu(tmp_path / "a.ncu-rep", [Launch("alpha", counters)])
    (launch,) = ncu_rep.read(path, only={"gpu__time_duration.sum", "per_opcode"}).launches
    assert launch.counters == {"gpu__time_duration.sum": 1.0, "per_opcode": 12.0, "per_opcode:FFMA": 12.0}
    assert (launch.compute_capability, launch.gpu_name) == ((9, 0), "NVIDIA H200")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"garbage that is no report", "not an ncu report"),
        (b"NVR", "not an ncu report"),
        (b"NVR\0", "truncated or damaged"),
        (b"NVR\0" + b"\xff" * 40, "truncated or damaged"),
        (b"NVR\0" + struct.pack("<I", 2) + b"\x08\x07", "missing"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(tmp_path, content, said):
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(content)
    with pytest.raises(WarplogError, match=said) as caught:
        ncu_rep.read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_session_of_the_user_interface_has_no_command_line_and_is_whole(tmp_path):
    blocks = [block for block in ncu_blocks(LAUNCHES) if b"/opt/ncu" not in block]
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(b"".join(blocks))
    with pytest.raises(WarplogError, match="command line information is missing"):
        ncu_rep.read(path)
    path.write_bytes(
        b"".join(
            [*blocks[:-2], session_block(*((field, message((1, "/app"))) for field in (9, 10))), *blocks[-2:]]
        )
    )
    assert len(ncu_rep.read(path).launches) == 3


@pytest.mark.parametrize("filling", [b"\0" * 4, struct.pack("<I", 2) + b"\x28\x00", None])
def test_endless_empty_blocks_and_messages_are_refused_early(tmp_path, filling):
    start = ncu_blocks(LAUNCHES)[0]
    size = 4_000_000
    large = start + session_block(payload=size) + b"\0" * size
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(start + filling * (size // len(filling)) if filling else large)
    with pytest.raises(WarplogError, match=r"a block is empty|over 100000 blocks|messages"):
        ncu_rep.read(path)


def test_a_missing_file_is_an_error_with_its_name(tmp_path):
    with pytest.raises(WarplogError, match=r"nowhere\.ncu-rep: cannot be read"):
        ncu_rep.read(tmp_path / "nowhere.ncu-rep")


def test_a_report_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    path = write_ncu(tmp_path / "a.ncu-rep", LAUNCHES)
    monkeypatch.setattr(framing, "MAX_BYTES", path.stat().st_size - 1)
    with pytest.raises(WarplogError, match="over the limit"):
        ncu_rep.read(path)


def test_a_session_without_launches_is_refused(tmp_path):
    blocks = ncu_blocks(LAUNCHES[:1])
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(b"".join(blocks[:2] + blocks[4:]))  # neither the program nor its launch
    with pytest.raises(WarplogError, match="no profiled kernel"):
        ncu_rep.read(path)


def test_a_cut_at_any_byte_is_found_but_for_the_end_of_a_later_launch(tmp_path):
    blocks = ncu_blocks(LAUNCHES)
    whole = b"".join(blocks)
    path = tmp_path / "cut.ncu-rep"
    accepted = []
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            accepted.append((length, framing.read_contents(path).launches))
        except WarplogError:
            continue
    ends = [len(whole) - len(blocks[-1]) - len(blocks[-2]), len(whole) - len(blocks[-1])]
    assert accepted == list(zip(ends, [1, 2], strict=True))


def test_a_program_without_its_launch_at_the_end_is_a_cut(tmp_path):
    blocks = ncu_blocks(LAUNCHES)
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(b"".join([*blocks, blocks[2]]))
    with pytest.raises(WarplogError, match="program"):
        ncu_rep.read(path)


def test_bytes_behind_the_last_block_are_not_ignored(tmp_path):
    path = write_ncu(tmp_path / "a.ncu-rep", LAUNCHES)
    path.write_bytes(path.read_bytes() + b"\0\0\0")
    with pytest.raises(WarplogError, match="truncated or damaged"):
        ncu_rep.read(path)


@needs_captures
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures_of_all_versions_are_read_and_their_cuts_found(path, tmp_path):
    report = ncu_rep.read(path)
    assert report.tool_version.startswith("20")
    for launch in report.launches:
        assert launch.gpu_name.startswith("NVIDIA")
        assert launch.counters["gpu__time_duration.sum"] > 0
    data = path.read_bytes()
    cut = tmp_path / "cut.ncu-rep"
    for length in range(1, len(data), len(data) // 100):
        cut.write_bytes(data[:length])
        with pytest.raises(WarplogError):
            ncu_rep.read(cut)


@needs_captures
def test_the_gemm_ladder_of_an_a10g_gets_faster_step_by_step():
    (path,) = [p for p in CAPTURES if p.stem == "a10g_ncu2023.1_ten_kernels"]
    times = {k.function: k.counters["gpu__time_duration.sum"] / 1e3 for k in ncu_rep.read(path).launches}
    ladder = ("basic", "gmem_coalesce", "smem_blocking", "one_blocktiling", "two_blocktiling", "warptiling")
    assert [times[name] for name in ladder] == sorted((times[name] for name in ladder), reverse=True)
    assert times["basic"] == pytest.approx(10_777, abs=1)


def test_a_report_that_kills_its_reader_is_damaged_and_kills_no_one_else(tmp_path, monkeypatch):
    path = write_ncu(tmp_path / "a.ncu-rep", LAUNCHES)
    monkeypatch.setattr(ncu_rep, "_TRY", "import os; os.abort()")
    with pytest.raises(WarplogError, match=r"a\.ncu-rep: is damaged \(its reader was killed by SIGABRT\)"):
        ncu_rep.read(path)
