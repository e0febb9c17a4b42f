"""The stage timeline with host functions: one build writes events as marks do, the other does not."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from host_family import HEADER, STRUCT, compile_c, make_job, make_timer
from made_up_launch import case_of, pipelined, times
from warplog.core.hashing import sha256_file
from warplog.measure.stages import timeline
from warplog.measure.stages.check import check_family
from warplog.records import door
from warplog.records.build import Build
from warplog.records.config import TimelineSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.measured import Absent
from warplog.records.requested.timeline import Timeline
from warplog.records.verification import invariants, marked_launch
from warplog.records.verification.campaign_folder import record_problems
from warplog.tables import timelines as tables

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
# Two warps: a producer that loads every 10,000 clocks, and a consumer that computes from 2,000 clocks later on.
MARKS = """
#include <stdint.h>
typedef struct { uint32_t kernels, blocks, threads, lost_warps; } Head;
typedef struct { uint64_t begin_clock, end_clock, begin_ns, end_ns; uint32_t sm, block, warp, events; } Warp;
typedef struct { uint32_t clock, region; } Event;
static struct { Head* head; Warp* warps; Event* events; uint32_t most_warps, most_events; } buffer;
int warplog_timeline(const void* from) { memcpy(&buffer, from, sizeof buffer); return 0; }
static void mark(int warp, uint32_t clock, uint32_t region) {
    const uint32_t place = buffer.warps[warp].events++;
    if (place < buffer.most_events) buffer.events[warp * buffer.most_events + place] = (Event){1000 + clock, region};
}
static void marks() {
    buffer.head->kernels++, buffer.head->blocks = 1, buffer.head->threads = 64;
    for (int w = 0; w < 2; ++w) {
        buffer.warps[w] = (Warp){1000, 501000, 1000000000, 1000250000, 5, 0, w, 0};
        for (int step = 0; step < 20; ++step) {
            mark(w, 20000 * step + 2000 * w, w ? 3 : 1);
            mark(w, 20000 * step + 15000 + w, 2);
        }
    }
    mark(1, 400000, 4);
}
"""


def build_with_marks(folder: Path, job, body=RIGHT, marks=MARKS) -> Path:
    """Compiles the second build and writes its record; returns the record's path."""
    folder.mkdir(exist_ok=True)
    source, library = folder / "launcher.c", folder / "kernel.so"
    call = "marks();" if marks else ""
    launcher = f"int warplog_launch(const struct A* a, void* stream) {{ {body} {call} return 0; }}\n"
    source.write_text(f"{HEADER}#include <string.h>\n{STRUCT}{marks}{launcher}")
    compile_c(source, library)
    record = structs.replace(job.build, library_sha256=sha256_file(library))
    door.write(folder / "record.json", record)
    return folder / "record.json"


SETTINGS = TimelineSettings(rounds=2, samples=3, pause_us=0.0, most_mib=4, timeout_s=20.0)


@pytest.fixture
def checked(tmp_path):
    """Returns a job whose variant passed its check and has a timeline."""
    job = make_job(tmp_path, RIGHT)
    check_family([job])
    family = structs.replace(job.family, timeline={"right": "64"})
    record = tmp_path / "timeline" / "none" / "scale.json"
    return replace(job, family=family, record=record, settings=SETTINGS)


def captured(tmp_path, job, **changes):
    """Captures the timeline; returns the variant's record."""
    marked = build_with_marks(tmp_path / "marked", job, **changes)
    check = tmp_path / "check" / "none" / "scale.json"
    timeline.capture_timelines([job], check, make_timer(tmp_path), [marked])
    return FamilyRecord.read(job.record, Timeline).variants["right"]


def test_a_launch_is_captured_with_its_overhead_and_its_trace(tmp_path, checked):
    record = captured(tmp_path, checked)
    assert (record.status, record.reason) == ("ok", "")
    (case,) = record.cases
    launch = case.launch
    assert (launch.sm, launch.sms, launch.blocks, launch.threads) == (5, 1, 1, 64)
    assert (launch.events, launch.lost_events, launch.lost_warps) == (81, 0, 0)
    assert launch.sm_mhz == pytest.approx(2000)
    assert [(t.warp, t.starts[:3], t.regions[:3]) for t in launch.tracks] == [
        (0, (0, 15_000, 20_000), (1, 2, 1)),
        (1, (2_000, 15_001, 22_000), (3, 2, 3)),
    ]
    assert len(case.overhead.marked_samples_us) == 6
    trace = json.loads(gzip.decompress((tmp_path / "timeline/none/scale/right.json.gz").read_bytes()))
    assert trace["otherData"]["variant"] == "right"
    assert not list((tmp_path / "timeline").rglob("*.npz"))


def test_events_beyond_the_largest_buffer_are_counted_as_lost(tmp_path, checked):
    many = (
        MARKS.replace("step < 20", "step < 80000").replace("20000 * step", "2 * step").replace("15000", "1")
    )
    job = replace(checked, settings=structs.replace(SETTINGS, most_mib=1))
    launch = captured(tmp_path, job, marks=many.replace("2000 * w", "0")).cases[0].launch
    assert launch.events == (1 << 20) // 8
    assert launch.events + launch.lost_events == 4 * 80_000 + 1
    assert all(track.lost for track in launch.tracks)


def test_wrong_results_of_the_captured_launch_are_no_timeline(tmp_path, checked):
    record = captured(tmp_path, checked, body=RIGHT.replace("a->factor *", "2 * a->factor *"))
    assert record.status == "wrong"
    assert record.reason.startswith("with marks: y: 64 of 64 elements are outside the tolerance")
    assert record.cases[0].launch is None


def test_a_build_without_marks_is_named(tmp_path, checked):
    record = captured(tmp_path, checked, marks="")
    assert record.status == "error"
    assert "no kernel is marked; include timeline.cuh in it" in record.reason


def test_two_marked_kernels_in_a_launch_are_an_error_of_the_variant(tmp_path, checked):
    record = captured(tmp_path, checked, marks=MARKS.replace("head->kernels++", "head->kernels += 2"))
    assert record.status == "error"
    assert "the launch ran 2 marked kernels" in record.reason


def test_a_build_with_marks_that_does_not_compile_is_skipped(tmp_path, checked):
    marked = build_with_marks(tmp_path / "marked", checked)
    built = door.read(marked, Build)
    failed = structs.replace(built, status="compile_error", reason="no such region", library_sha256="")
    door.write(marked, failed)
    timeline.capture_timelines([checked], tmp_path / "check/none/scale.json", make_timer(tmp_path), [marked])
    record = FamilyRecord.read(checked.record, Timeline).variants["right"]
    assert (record.status, record.marked_sha256) == ("skipped", "")
    assert record.reason == "its build has status compile_error: no such region"


def test_the_sm_in_the_record_is_the_one_with_the_median_share_of_waiting():
    launch = timeline.launch_record(pipelined().read())
    assert launch.sm == 0
    assert launch.wait_pct[0] <= launch.wait_pct[1] <= launch.wait_pct[2]


def test_verify_names_a_timeline_that_was_edited(tmp_path, checked):
    captured(tmp_path, checked)
    assert record_problems(tmp_path) == []
    data = json.loads(checked.record.read_text())
    data["variants"]["right"]["cases"][0]["overhead"]["overhead_pct"] += 1
    checked.record.write_text(json.dumps(data))
    (problem,) = record_problems(tmp_path)
    assert "timeline/none/scale.json: right: case 64: overhead.overhead_pct is" in problem


def with_overhead(case, **changes):
    return structs.replace(case, overhead=structs.replace(case.overhead, **changes))


def with_track(case, number, **changes):
    tracks = list(case.launch.tracks)
    tracks[number] = structs.replace(tracks[number], **changes)
    return structs.replace(case, launch=structs.replace(case.launch, tracks=tuple(tracks)))


STARTS = pipelined().read().tracks[0][0].starts


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda case: with_overhead(case, marked_us=99.0),
            "overhead.marked_us is 99, its samples give 100.5",
        ),
        (
            lambda case: with_overhead(case, overhead_pct=0.1),
            "overhead.overhead_pct is 0.1, its samples give",
        ),
        (lambda case: with_track(case, 0, starts=STARTS[::-1]), "block 0, warp 0: clock"),
        (lambda case: with_track(case, 1, end=5), "block 0, warp 4: clock 5 follows"),
        (lambda case: with_track(case, 1, starts=STARTS[1:]), "starts, but"),
        (lambda case: with_track(case, 1, warp=0), "block 0, warp 0 occurs twice"),
    ],
)
def test_a_launch_that_contradicts_itself_is_not_believed(change, words, tmp_path, checked):
    case = case_of(pipelined(), "64")
    assert marked_launch.inconsistent(case) == ""
    case = change(case)
    assert words in marked_launch.inconsistent(case)
    record = structs.replace(captured(tmp_path, checked), cases=(case,))
    found = invariants.consistent(record)
    assert (found.status, found.cases[0].status, found.cases[0].launch) == ("error", "error", None)


def test_overhead_is_relative_to_the_mean_of_both_times_without_marks():
    found = times(plain=100.0, marked=102.0, again=104.0)
    assert marked_launch.overhead(100.0, 102.0, 104.0) == {
        "overhead_pct": 0.0,
        "noise_pct": pytest.approx(4.0),
    }
    assert found.noise_pct == pytest.approx(4.0)


def rows_of(record, variant, origin="live"):
    found = {"launches": [], "tracks": []}
    for table, row in tables.rows(record, variant, origin):
        found[table].append(row)
    return found["launches"], found["tracks"]


def test_tables_hold_the_numbers_and_every_region_of_the_sm(tmp_path, checked):
    (launch,), regions = rows_of(captured(tmp_path, checked), checked.variant)
    assert (launch["case"], launch["status"], launch["sm"]) == ("64", "ok", 5)
    assert launch["lead_steps"] == 0  # each step is requested 2,000 clocks before it is computed
    assert launch["bubbles"] == 0
    assert launch["starved_pct"] == pytest.approx(100 * 19 * 7 / (20 * 13 + 19 * 7), rel=0.001)
    assert len(regions) == 81
    assert {row["role"] for row in regions} == {"producer", "consumer"}
    assert regions[1]["start_us"] == pytest.approx(7.5)
    assert regions[1]["duration_clocks"] == 5_000


def test_a_record_of_an_earlier_source_says_so(tmp_path, checked):
    record = structs.replace(captured(tmp_path, checked), source_sha256="0" * 64)
    ((old,), _) = rows_of(record, checked.variant, "recorded")
    assert old["remarks"] == '[{"code": "earlier_source"}]'
    assert rows_of(Absent(status="missing", reason=""), checked.variant, "recorded") == ([], [])
