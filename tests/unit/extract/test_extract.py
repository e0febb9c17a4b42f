import pytest

from one_variant import write_record
from report_files import Launch, Nsys, ncu_blocks, write_ncu
from warplog.core.errors import WarplogError
from warplog.core.records import FamilyRecord
from warplog.extract import stage
from warplog.extract.stage import extract_variant
from warplog.metrics import METRICS

DURATION = "gpu__time_duration.sum"


def launches():
    """Case 64 has two kernels per launch, case 128 one."""
    return [
        Launch("partial", {DURATION: 3000.0}, ("case:64", "launch:0")),
        Launch("final", {DURATION: 1000.0}, ("case:64", "launch:0")),
        Launch("partial", {DURATION: 9000.0}, ("case:128", "launch:0")),
    ]


def timeline(path):
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
    cases = [{"case": c, "status": "ok", "reason": "", "launches": n} for c, n in counts.items()]
    if status != "ok":
        cases = [{"case": c, "status": status, "reason": reason} for c in counts]
    return {"tool": tool, "tool_version": "1.2", "status": status, "reason": reason, "cases": cases}


@pytest.fixture
def reports(tmp_path):
    (tmp_path / "sgemm").mkdir()
    return write_ncu(tmp_path / "sgemm" / "v.ncu-rep", launches()), timeline(
        tmp_path / "sgemm" / "v.nsys.sqlite"
    )


def extract(reports, ncu=None, nsys=None, cases=("64", "128")):
    return extract_variant(*reports, ncu or record("ncu"), nsys or record("nsys"), cases)


def of(evidence, metric, **wanted):
    rows = [r for r in evidence.rows if r["metric"] == metric]
    return [r for r in rows if all(r[key] == value for key, value in wanted.items())]


def test_counters_belong_to_their_case_kernel_and_launch(reports):
    rows = of(extract(reports), "duration_us")
    assert [(r["case"], r["kernel"], r["launch"], r["value"]) for r in rows] == [
        ("64", "partial()", 0, 3.0),
        ("64", "final()", 1, 1.0),
        ("128", "partial()", 0, 9.0),
    ]
    assert {(r["tool"], r["tool_version"], r["unit"], r["status"]) for r in rows} == {
        ("ncu", "2025.3.1.0", "us", "ok")
    }


def test_cases_are_matched_by_range_not_by_position(reports):
    evidence = extract(reports, cases=("128", "64"))
    assert [r["value"] for r in of(evidence, "duration_us", case="128")] == [9.0]
    assert [r["value"] for r in of(evidence, "nsys_duration_us", case="128")] == [4.0]


def test_nsys_gives_the_median_launch_of_all_its_kernels(reports):
    evidence = extract(reports)
    whole = of(evidence, "nsys_duration_us")
    assert [(r["case"], r["kernel"], r["value"]) for r in whole] == [("64", "", 3.5), ("128", "", 4.0)]
    single = {r["kernel"]: r["value"] for r in of(evidence, "nsys_kernel_duration_us", case="64")}
    assert single == {"partial(float*)": 2.0, "final(float*)": 0.5, "Host-to-Device": 4.0}


def test_kernels_tell_how_they_were_launched_in_the_order_of_a_launch(reports):
    kernels = extract(reports).kernels
    assert [(k["case"], k["order"], k["kernel"]) for k in kernels] == [
        ("64", 0, "partial(float*)"),
        ("64", 1, "final(float*)"),
        ("128", 0, "partial(float*)"),
    ]
    assert (kernels[0]["grid"][0], kernels[0]["block"][0], kernels[0]["registers_per_thread"]) == (4, 128, 32)


def test_nsys_may_have_captured_more_cases_than_ncu(tmp_path):
    paths = write_ncu(tmp_path / "v.ncu-rep", launches()[:2]), timeline(tmp_path / "v.nsys.sqlite")
    evidence = extract_variant(
        *paths, record("ncu", counts={"64": 1}), record("nsys"), ("64",), nsys_cases=("64", "128")
    )
    assert {r["case"] for r in of(evidence, "duration_us")} == {"64"}
    assert {r["case"] for r in of(evidence, "nsys_duration_us")} == {"64", "128"}


def test_a_variant_of_copies_alone_has_a_time(tmp_path):
    nsys = Nsys(tmp_path / "v.sqlite")
    nsys.range("case:64", 0, 1_000)
    nsys.range("launch:0", 0, 100)
    nsys.copy(called=10, start=20, duration=7_000, kind=2, moved=4096)
    lost = record("ncu", "skipped", "no kernel")
    evidence = extract((None, nsys.write()), lost, record("nsys", counts={"64": 1}), ("64",))
    assert [r["value"] for r in of(evidence, "nsys_duration_us")] == [7.0]
    assert [e["kind"] for e in evidence.timeline] == ["api", "memcpy"]


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
def test_a_launch_that_copies_tells_what_hid_the_copies(tmp_path, streams, wall, busy, hidden, longest):
    report = pipeline(tmp_path / "v.sqlite", streams)
    lost = record("ncu", "skipped", "n/a: what this family measures is no kernel")
    evidence = extract((None, report), lost, record("nsys", counts={"64": 2}), ("64",))
    found = {r["metric"]: (r["value"], r["kernel"], r["unit"]) for r in evidence.rows if r["tool"] == "nsys"}
    assert found["wall_us"] == (wall, "", "us")
    assert found["nsys_duration_us"][0] == busy, "what runs at the same time counts once"
    assert found["copy_hidden_pct"] == (pytest.approx(hidden), "", "%")
    assert found["longest_engine_pct"][0] == pytest.approx(longest)
    assert [found[n][0] for n in ("kernel_us", "to_device_us", "to_host_us")] == [20.0, 20.0, 20.0]
    assert [e["launch"] for e in evidence.timeline if e["kind"] == "kernel"] == [0, 0, 1, 1]


def test_a_timeline_keeps_whole_launches_and_at_least_the_first(tmp_path):
    nsys = Nsys(tmp_path / "v.sqlite")
    nsys.range("case:64", 0, 900_000)
    for launch, events in enumerate((300, 250, 600)):
        at = 10_000 * (launch + 1)
        nsys.range(f"launch:{launch}", at, at + 9_000)
        for i in range(events):
            nsys.kernel("work", at + 10 * i, 100_000 * (launch + 1) + 20 * i, 10)
    lost = record("ncu", "skipped", "n/a")
    evidence = extract((None, nsys.write()), lost, record("nsys", counts={"64": 3}), ("64",))
    kept = [e["launch"] for e in evidence.timeline if e["kind"] == "kernel"]
    assert kept == [0] * 300, "each kernel comes with its call, so that a second launch would be too much"
    assert of(evidence, "nsys_duration_us")[0]["value"] == pytest.approx(3.0), "the median is still of all"


def test_kernels_without_copies_have_no_rows_of_copies(reports):
    rows = [r["metric"] for r in extract(reports).rows if r["case"] == "128"]
    assert "nsys_duration_us" in rows
    assert not {"wall_us", "copy_hidden_pct", "copy_us"} & set(rows)


def test_the_timeline_starts_at_the_first_event_of_a_case_and_leaves_the_warm_up_out(reports):
    events = extract(reports).timeline
    assert events[0]["start_us"] == 0
    assert [e["start_us"] for e in events] == sorted(e["start_us"] for e in events)
    kinds = [(e["kind"], e["case"]) for e in events]
    assert kinds.count(("kernel", "64")) == 6
    assert kinds.count(("kernel", "128")) == 3
    assert kinds.count(("memcpy", "64")) == 1
    assert kinds.count(("api", "64")) == 7
    assert max(e["duration_us"] for e in events) < 99
    assert {e["stream"] for e in events if e["kind"] == "api"} == {None}


@pytest.mark.parametrize("status", ["denied", "missing", "skipped", "timeout"])
def test_a_capture_that_was_not_made_has_every_metric_without_a_value(reports, status):
    evidence = extract((None, reports[1]), ncu=record("ncu", status, "why"))
    lost = [r for r in evidence.rows if r["tool"] == "ncu"]
    not_collected = {"memory_throughput_pct", "shared_bank_conflicts"}
    assert {r["metric"] for r in lost} == {name for name, m in METRICS.items() if m.formula} - not_collected
    assert {(r["value"], r["status"], r["reason"], r["kernel"]) for r in lost} == {(None, status, "why", "")}
    assert {r["case"] for r in lost} == {"64", "128"}
    assert of(evidence, "nsys_duration_us", case="64")[0]["value"] == 3.5


def test_without_nsys_its_time_is_absent_and_the_timeline_empty(reports):
    evidence = extract((reports[0], None), nsys=record("nsys", "missing", "nsys was not found"))
    assert evidence.timeline == ()
    rows = of(evidence, "nsys_duration_us")
    assert [(r["value"], r["status"], r["reason"]) for r in rows] == [
        (None, "missing", "nsys was not found")
    ] * 2
    assert len(of(evidence, "duration_us")) == 3


def test_one_case_may_fail_while_the_others_count(tmp_path):
    reports = write_ncu(tmp_path / "v.ncu-rep", launches()[:2]), timeline(tmp_path / "v.sqlite")
    ncu = record("ncu")
    ncu["cases"][1] |= {"status": "timeout", "reason": "slow"}
    evidence = extract(reports, ncu=ncu)
    assert [(r["case"], r["status"]) for r in of(evidence, "duration_us")] == [
        ("128", "timeout"),
        ("64", "ok"),
        ("64", "ok"),
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda found: found[:2], "case 128: its range contains no events"),
        (
            lambda found: [*found, Launch("x", {}, ("case:7", "launch:0"))],
            "case 7: was captured but not requested",
        ),
        (
            lambda found: [*found, Launch("stranger", {})],
            "kernel stranger: was launched outside all ranges case",
        ),
        (
            lambda found: [*found, Launch("x", {}, ("case:64",))],
            "a kernel was launched outside all ranges launch",
        ),
        (lambda found: [*found, Launch("x", {}, ("case:64", "launch:1"))], "2 of 1 launches"),
    ],
)
def test_launches_that_do_not_fit_the_cases_are_an_error(tmp_path, reports, changed, said):
    path = write_ncu(tmp_path / "other.ncu-rep", changed(launches()))
    with pytest.raises(WarplogError, match=said) as caught:
        extract((path, reports[1]))
    assert "\n" not in str(caught.value)


def test_a_report_that_ends_after_a_whole_launch_is_found_by_its_count(tmp_path, reports):
    found = [Launch("k", {DURATION: 1.0}, ("case:64", f"launch:{i}")) for i in range(3)]
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(b"".join(ncu_blocks(found)[:-1]))
    with pytest.raises(WarplogError, match="2 of 3 launches"):
        extract((path, reports[1]), ncu=record("ncu", counts={"64": 3}), cases=("64",))


@pytest.mark.parametrize("tool", ["ncu", "nsys"])
def test_a_good_record_without_a_report_is_an_error(tmp_path, reports, tool):
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    for path in (None, empty):
        given = (path, reports[1]) if tool == "ncu" else (reports[0], path)
        with pytest.raises(WarplogError, match=f"{tool} report|is empty"):
            extract(given)


def profiled(folder, **tools):
    """Profile records as files, from the record and the report of each tool."""
    provenance = dict.fromkeys(
        ("gpu_name", "gpu_uuid", "driver", "finished", "clocks", "compute_capability"), "x"
    )
    common = {"schema": 1, "stage": "profile", "family": "sgemm", "variant": "naive", "gpu": "h200"}
    common |= {"origin": "live", "source_sha256": "", "library_sha256": "", "command": []}
    common["provenance"] = {**provenance, "content_sha256": "0" * 64}
    paths = {}
    for tool, (found, report) in tools.items():
        paths[tool] = folder / f"sgemm.{tool}.json"
        write_record(paths[tool], {**common, **found, "report": report})
    return paths["ncu"], paths["nsys"]


def extracted(paths, output):
    """The extract record of the variant."""
    cases = {"naive": ("64", "128")}
    stage.extract_family(*paths, cases, cases, output)
    return FamilyRecord.read(output).variants["naive"]


def test_the_record_fits_its_schema_and_names_the_worse_capture(tmp_path, reports):
    denied = record("ncu", "denied", "not permitted")
    paths = profiled(tmp_path, ncu=(denied, ""), nsys=(record("nsys"), reports[1].name))
    output = tmp_path / "out.json"
    written = extracted(paths, output)
    assert (written["status"], written["reason"]) == ("denied", "not permitted")
    assert [c["tool"] for c in written["captures"]] == ["ncu", "nsys"]
    assert [bool(c["sha256"]) for c in written["captures"]] == [False, True]
    assert written["family"] == "sgemm"


@pytest.mark.parametrize("tool", ["ncu", "nsys"])
def test_a_report_of_no_use_costs_its_own_rows_and_they_say_why(tmp_path, reports, capsys, tool):
    whole = {"ncu": (record("ncu"), reports[0].name), "nsys": (record("nsys"), reports[1].name)}
    paths = profiled(tmp_path, **{**whole, tool: (record(tool), "gone")})
    written = extracted(paths, tmp_path / "out.json")
    assert written["status"] == "error"
    states = {t: {r["status"] for r in written["rows"] if r["tool"] == t} for t in whole}
    assert states[tool] == {"error"}
    other = "nsys" if tool == "ncu" else "ncu"
    assert "ok" in states[other]
    assert "error" not in states[other]
    assert {r["case"] for r in written["rows"] if r["tool"] == tool} == {"64", "128"}
    assert "gone" in written["reason"]
    assert "sgemm/naive  error" in capsys.readouterr().err
