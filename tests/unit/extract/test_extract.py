import re
from pathlib import Path

import pandas as pd
import pytest
from msgspec import structs

from report_files import Launch, Nsys, ncu_blocks, write_ncu
from warplog.extract import stage
from warplog.metrics import METRICS
from warplog.records.extract import Extract
from warplog.records.family_file import FamilyRecord
from warplog.records.measured import Provenance, Session
from warplog.records.profile import CapturedCase, Profile

DATA = Path(__file__).parents[2] / "data" / "parsers"
DURATION = "gpu__time_duration.sum"


def launches():
    """Case 64 has two kernels per launch, case 128 one."""
    return [
        Launch("partial", {DURATION: 3000.0}, ("case:64", "launch:0")),
        Launch("final", {DURATION: 1000.0}, ("case:64", "launch:0")),
        Launch("partial", {DURATION: 9000.0}, ("case:128", "launch:0")),
    ]


def trace(path):
    nsys = Nsys(path)
    nsys.kernel("partial", called=10, start=20, duration=99_000)  # warm-up, before the range
    for number, case in enumerate(("64", "128")):
        begin = 1_000_000 * (number + 1)
        nsys.range(f"case:{case}", begin, begin + 900_000)
        for i, factor in enumerate((3, 1, 2)):
            at = begin + 10_000 * (i + 1)
            nsys.range(f"launch:{i}", at, at + 1_000)
            nsys.kernel("partial", at + 10, begin + 100_000 * (i + 1), 1_000 * factor * (number + 1))
            if case == "64":
                nsys.kernel("final", at + 20, begin + 100_000 * (i + 1) + 50_000, 500)
    nsys.copy(called=1_020_030, start=1_240_000, duration=4_000, kind=1, moved=1 << 20)
    return nsys.write()


def record(tool, status="ok", reason="", counts=None):
    counts = counts or {"64": 1 if tool == "ncu" else 3, "128": 1 if tool == "ncu" else 3}
    return Profile(
        family="sgemm",
        variant="naive",
        gpu="h200",
        status=status,
        reason=reason,
        origin="live",
        source_sha256="",
        library_sha256="",
        provenance=Provenance(**dict.fromkeys(Provenance.__struct_fields__, "")),
        tool=tool,
        tool_version="1.2",
        command=(),
        cases=tuple(
            CapturedCase(case=case, status=status, reason=reason, launches=launches)
            for case, launches in counts.items()
        ),
        session=Session(),
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sgemm").mkdir()
    return tmp_path / "sgemm"


@pytest.fixture
def reports(folder):
    return write_ncu(folder / "v.ncu-rep", launches()), trace(folder / "v.nsys.sqlite")


def extract(reports, ncu=None, nsys=None, cases=("64", "128"), traced=None):
    """The extract record of a variant, of reports in the folder `sgemm`; None is a report that is not there."""
    folder = next(path for path in reports if path).parents[1]
    written = []
    for profile, report in zip((ncu or record("ncu"), nsys or record("nsys")), reports, strict=True):
        file = FamilyRecord(folder / f"sgemm.{profile.tool}.json", Profile, {})
        file.put(structs.replace(profile, report=report.name if report else ""))
        file.write()
        written.append(file.path)
    (variant,) = file.variants
    output = folder / "extract.json"
    stage.extract_family(*written, {variant: cases}, {variant: traced or cases}, output)
    return FamilyRecord.read(output, Extract).variants[variant]


def rows_of(evidence, metric, **wanted):
    rows = [r for r in evidence.rows if r.metric == metric]
    return [r for r in rows if all(getattr(r, key) == value for key, value in wanted.items())]


def test_counters_belong_to_their_case_kernel_and_launch(reports):
    rows = rows_of(extract(reports), "duration_us")
    assert [(r.case, r.kernel, r.launch, r.value) for r in rows] == [
        ("64", "partial()", 0, 3.0),
        ("64", "final()", 1, 1.0),
        ("128", "partial()", 0, 9.0),
    ]
    assert {(r.tool, r.tool_version, r.unit, r.status) for r in rows} == {("ncu", "2025.3.1.0", "us", "ok")}


def test_cases_are_matched_by_range_not_by_position(reports):
    evidence = extract(reports, cases=("128", "64"))
    assert [r.value for r in rows_of(evidence, "duration_us", case="128")] == [9.0]
    assert [r.value for r in rows_of(evidence, "nsys_duration_us", case="128")] == [4.0]


def test_nsys_gives_the_median_launch_of_all_its_kernels(reports):
    evidence = extract(reports)
    whole = rows_of(evidence, "nsys_duration_us")
    assert [(r.case, r.kernel, r.value) for r in whole] == [("64", "", 3.5), ("128", "", 4.0)]
    single = {r.kernel: r.value for r in rows_of(evidence, "nsys_kernel_duration_us", case="64")}
    assert single == {"partial(float*)": 2.0, "final(float*)": 0.5, "Host-to-Device": 4.0}


def test_kernels_tell_how_they_were_launched_in_the_order_of_a_launch(reports):
    kernels = extract(reports).kernels
    assert [(k.case, k.order, k.kernel) for k in kernels] == [
        ("64", 0, "partial(float*)"),
        ("64", 1, "final(float*)"),
        ("128", 0, "partial(float*)"),
    ]
    assert (kernels[0].grid[0], kernels[0].block[0], kernels[0].registers_per_thread) == (4, 128, 32)


def test_nsys_may_have_captured_more_cases_than_ncu(reports):
    write_ncu(reports[0], launches()[:2])
    evidence = extract(reports, record("ncu", counts={"64": 1}), cases=("64",), traced=("64", "128"))
    assert {r.case for r in rows_of(evidence, "duration_us")} == {"64"}
    assert {r.case for r in rows_of(evidence, "nsys_duration_us")} == {"64", "128"}


def test_a_variant_of_copies_alone_has_a_time(folder):
    nsys = Nsys(folder / "v.sqlite")
    nsys.range("case:64", 0, 1_000)
    nsys.range("launch:0", 0, 100)
    nsys.copy(called=10, start=20, duration=7_000, kind=2, moved=4096)
    lost = record("ncu", "skipped", "no kernel")
    evidence = extract((None, nsys.write()), lost, record("nsys", counts={"64": 1}), ("64",))
    assert [r.value for r in rows_of(evidence, "nsys_duration_us")] == [7.0]
    assert [e.kind for e in evidence.trace] == ["api", "memcpy"]


def pipeline(path, streams):
    """Two launches of a copy in, a kernel and a copy out, each in two pieces that run in sequence or overlap."""
    nsys = Nsys(path)
    nsys.range("case:64", 0, 900_000)
    for launch in range(2):
        at, begin = 10_000 * (launch + 1), 100_000 * (launch + 1)
        nsys.range(f"launch:{launch}", at, at + 5_000)
        for piece in range(2):
            called = at + 100 * (piece + 1)
            first = begin + piece * (10_000 if streams == 2 else 30_000)
            nsys.copy(called, first, 10_000, kind=1, moved=4096)
            nsys.kernel("work", called + 10, first + 10_000, 10_000)
            nsys.copy(called + 20, first + 20_000, 10_000, kind=2, moved=4096)
    return nsys.write()


@pytest.mark.parametrize(
    ("streams", "wall", "busy", "hidden", "longest"),
    [(1, 60.0, 60.0, 0.0, 100 / 3), (2, 40.0, 40.0, 50.0, 50.0)],
)
def test_a_launch_that_copies_tells_what_hid_the_copies(folder, streams, wall, busy, hidden, longest):
    report = pipeline(folder / "v.sqlite", streams)
    lost = record("ncu", "skipped", "n/a: what this family measures is no kernel")
    evidence = extract((None, report), lost, record("nsys", counts={"64": 2}), ("64",))
    metrics = {r.metric: (r.value, r.kernel, r.unit) for r in evidence.rows if r.tool == "nsys"}
    assert metrics["wall_us"] == (wall, "", "us")
    assert metrics["nsys_duration_us"][0] == busy, "what runs at the same time counts once"
    assert metrics["copy_hidden_pct"] == (pytest.approx(hidden), "", "%")
    assert metrics["longest_engine_pct"][0] == pytest.approx(longest)
    assert [metrics[n][0] for n in ("kernel_us", "to_device_us", "to_host_us")] == [20.0, 20.0, 20.0]
    assert [e.launch for e in evidence.trace if e.kind == "kernel"] == [0, 0, 1, 1]


def test_a_trace_keeps_whole_launches_and_at_least_the_first(folder):
    nsys = Nsys(folder / "v.sqlite")
    nsys.range("case:64", 0, 900_000)
    for launch, events in enumerate((300, 250, 600)):
        at = 10_000 * (launch + 1)
        nsys.range(f"launch:{launch}", at, at + 9_000)
        for i in range(events):
            nsys.kernel("work", at + 10 * i, 100_000 * (launch + 1) + 20 * i, 10)
    lost = record("ncu", "skipped", "n/a")
    evidence = extract((None, nsys.write()), lost, record("nsys", counts={"64": 3}), ("64",))
    kept = [e.launch for e in evidence.trace if e.kind == "kernel"]
    assert kept == [0] * 300, "each kernel comes with its call, so that a second launch would be too much"
    assert rows_of(evidence, "nsys_duration_us")[0].value == pytest.approx(3.0), "the median is still of all"


def test_kernels_without_copies_have_no_rows_of_copies(reports):
    rows = [r.metric for r in extract(reports).rows if r.case == "128"]
    assert "nsys_duration_us" in rows
    assert not {"wall_us", "copy_hidden_pct", "copy_us"} & set(rows)


def test_the_trace_starts_at_the_first_event_of_a_case_and_leaves_the_warm_up_out(reports):
    events = extract(reports).trace
    assert events[0].start_us == 0
    assert [e.start_us for e in events] == sorted(e.start_us for e in events)
    kinds = [(e.kind, e.case) for e in events]
    assert kinds.count(("kernel", "64")) == 6
    assert kinds.count(("kernel", "128")) == 3
    assert kinds.count(("memcpy", "64")) == 1
    assert kinds.count(("api", "64")) == 7
    assert max(e.duration_us for e in events) < 99
    assert {e.stream for e in events if e.kind == "api"} == {None}


@pytest.mark.parametrize("status", ["denied", "missing", "skipped", "timeout"])
def test_a_capture_that_was_not_made_has_every_metric_without_a_value(reports, status):
    evidence = extract((None, reports[1]), ncu=record("ncu", status, "why"))
    lost = [r for r in evidence.rows if r.tool == "ncu"]
    not_collected = {"memory_throughput_pct", "shared_bank_conflicts"}
    anywhere = {name for name, m in METRICS.items() if m.formula and m.group != "tensor memory"}
    assert {r.metric for r in lost} == anywhere - not_collected
    assert {(r.value, r.status, r.reason, r.kernel) for r in lost} == {(None, status, "why", "")}
    assert {r.case for r in lost} == {"64", "128"}
    assert rows_of(evidence, "nsys_duration_us", case="64")[0].value == 3.5


def test_without_nsys_its_time_is_absent_and_the_trace_empty(reports):
    evidence = extract((reports[0], None), nsys=record("nsys", "missing", "nsys was not found"))
    assert evidence.trace == ()
    rows = rows_of(evidence, "nsys_duration_us")
    assert [(r.value, r.status, r.reason) for r in rows] == [(None, "missing", "nsys was not found")] * 2
    assert len(rows_of(evidence, "duration_us")) == 3


def test_one_case_may_fail_while_the_others_count(reports):
    write_ncu(reports[0], launches()[:2])
    ncu = record("ncu")
    slow = structs.replace(ncu.cases[1], status="timeout", reason="slow")
    evidence = extract(reports, ncu=structs.replace(ncu, cases=(ncu.cases[0], slow)))
    assert [(r.case, r.status) for r in rows_of(evidence, "duration_us")] == [
        ("128", "timeout"),
        ("64", "ok"),
        ("64", "ok"),
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda launched: launched[:2], "case 128: its range contains no events"),
        (
            lambda launched: [*launched, Launch("x", {}, ("case:7", "launch:0"))],
            "case 7: was captured but not requested",
        ),
        (
            lambda launched: [*launched, Launch("stranger", {})],
            "kernel stranger: was launched outside all ranges case",
        ),
        (
            lambda launched: [*launched, Launch("x", {}, ("case:64",))],
            "a kernel was launched outside all ranges launch",
        ),
        (lambda launched: [*launched, Launch("x", {}, ("case:64", "launch:1"))], "2 of 1 launches"),
    ],
)
def test_launches_that_do_not_fit_the_cases_are_an_error(reports, changed, said):
    write_ncu(reports[0], changed(launches()))
    extracted = extract(reports)
    assert (extracted.status, said in extracted.reason, "\n" in extracted.reason) == ("error", True, False)


def test_a_report_that_ends_after_a_whole_launch_is_found_by_its_count(reports):
    launched = [Launch("k", {DURATION: 1.0}, ("case:64", f"launch:{i}")) for i in range(3)]
    reports[0].write_bytes(b"".join(ncu_blocks(launched)[:-1]))
    assert "2 of 3 launches" in extract(reports, record("ncu", counts={"64": 3}), cases=("64",)).reason


def test_the_record_names_the_worse_capture(reports):
    denied = record("ncu", "denied", "not permitted")
    extracted = extract((None, reports[1]), ncu=denied)
    assert (extracted.status, extracted.reason, extracted.family) == ("denied", "not permitted", "sgemm")
    assert [(c.tool, bool(c.sha256)) for c in extracted.captures] == [("ncu", False), ("nsys", True)]


@pytest.mark.parametrize("tool", ["ncu", "nsys"])
@pytest.mark.parametrize("lost", ["no report", "its file is gone", "it is empty"])
def test_a_report_of_no_use_costs_its_own_rows_and_they_say_why(reports, capsys, tool, lost):
    place = ("ncu", "nsys").index(tool)
    given = [None if lost == "no report" and i == place else path for i, path in enumerate(reports)]
    reports[place].unlink()
    if lost == "it is empty":
        reports[place].write_bytes(b"")
    extracted = extract(given)
    states = {t: {r.status for r in extracted.rows if r.tool == t} for t in ("ncu", "nsys")}
    assert extracted.status == "error"
    assert states.pop(tool) == {"error"}
    assert {r.case for r in extracted.rows if r.tool == tool} == {"64", "128"}
    assert [("ok" in kinds, "error" in kinds) for kinds in states.values()] == [(True, False)]
    assert re.search(f"{tool} report: missing|cannot be read|is empty", extracted.reason)
    assert "sgemm/naive  error" in capsys.readouterr().err


def test_a_real_report_gives_what_its_campaign_recorded(folder):
    (folder / "session.ncu-rep").symlink_to(DATA / "transpose_h200.ncu-rep")
    expected = pd.read_csv(DATA / "transpose_h200.csv", index_col=["metric", "unit"])
    for variant in expected:
        ncu, nsys = record("ncu", counts={"8192": 1}), record("nsys", "missing", "not recorded")
        named = (structs.replace(capture, variant=variant) for capture in (ncu, nsys))
        extracted = extract((folder / "session.ncu-rep", None), *named, cases=("8192",))
        rows = [row for row in extracted.rows if row.tool == "ncu"]
        assert [(row.metric, row.unit) for row in rows] == list(expected.index)
        # Python 3.12 and later sum with compensation: the last digit may differ.
        values = [float("nan") if row.value is None else row.value for row in rows]
        assert values == pytest.approx(list(expected[variant]), rel=1e-12, nan_ok=True)
        assert (extracted.captures[0].status, bool(extracted.lines)) == ("ok", variant != "cublas")
        assert [loop.case for loop in extracted.loops] == ["8192"] * len(extracted.loops)
        assert bool(extracted.loops) == (variant != "cublas")
