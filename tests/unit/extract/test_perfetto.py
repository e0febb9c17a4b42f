"""The trace for ui.perfetto.dev: its form, and that slices nest and follow each other within a thread."""

import gzip
import json
from collections import defaultdict

import jsonschema_rs
import pytest

from made_up_launch import lookback, pipelined
from warplog.extract import perfetto
from warplog.records.door import plain

ABOUT = {"family": "made_up", "variant": "ring", "case": "4096", "gpu": "GPU"}
# The parts of the Trace Event Format that the trace uses.
PLACE = {"pid": {"type": "integer", "minimum": 0}, "tid": {"type": "integer", "minimum": 0}}
SLICE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "cat", "ph", "ts", "dur", "pid", "tid", "args"],
    "properties": {
        "name": {
            "type": "string",
            "pattern": "^(block [0-9]+|load|wait|compute|store|handover|lookback|sync)$",
        },
        "cat": {"enum": ["block", "region"]},
        "ph": {"const": "X"},
        "ts": {"type": "number", "minimum": 0},
        "dur": {"type": "number", "minimum": 0},
        "args": {"type": "object", "required": ["clock", "clocks"]},
        **PLACE,
    },
}
NAME = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "ph", "pid", "tid", "args"],
    "properties": {
        "name": {"enum": ["process_name", "thread_name"]},
        "ph": {"const": "M"},
        "args": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        **PLACE,
    },
}
TRACE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["traceEvents", "displayTimeUnit", "otherData"],
    "properties": {
        "traceEvents": {"type": "array", "minItems": 1, "items": {"oneOf": [SLICE, NAME]}},
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
LAUNCHES = {"pipelined": pipelined, "lookback": lookback}


def trace(launch, about, most_events):
    return plain(perfetto.trace(launch, about, most_events))


def tenths_of_ns(us):
    return round(us * 1e4)


def threads(written):
    """The slices of each thread, as (begin, end, kind) in tenths of a nanosecond."""
    own = defaultdict(list)
    for event in written["traceEvents"]:
        if event["ph"] == "X":
            begin = tenths_of_ns(event["ts"])
            own[event["pid"], event["tid"]].append((begin, begin + tenths_of_ns(event["dur"]), event["cat"]))
    return own


def faults(slices):
    """What is wrong with the slices of a thread: an order, a region outside of its block, or an overlap."""
    problems, block_end, last = [], None, 0
    for begin, end, kind in slices:
        if kind == "block":
            problems += ["blocks overlap"] if block_end is not None and begin < block_end else []
            block_end, last = end, begin
            continue
        problems += ["regions overlap"] if begin < last else []
        problems += ["a region is outside of its block"] if block_end is None or end > block_end else []
        last = end
    return problems


@pytest.fixture(scope="module", params=sorted(LAUNCHES))
def launch(request):
    return LAUNCHES[request.param]().read()


def test_the_trace_has_the_form_of_trace_events(launch):
    jsonschema_rs.validator_for(TRACE).validate(trace(launch, ABOUT, 10_000))


def test_regions_lie_within_their_block_and_do_not_overlap(launch):
    own = threads(trace(launch, ABOUT, 10_000))
    assert own
    assert {thread: faults(slices) for thread, slices in own.items()} == {thread: [] for thread in own}


def test_the_trace_holds_every_region_in_its_order(launch):
    written = trace(launch, ABOUT, 10_000)
    regions = [event for event in written["traceEvents"] if event.get("cat") == "region"]
    spans = [span for tracks in launch.tracks.values() for track in tracks for span in track.spans]
    assert [event["name"] for event in regions] == [span.region for span in spans]
    assert [event["args"]["clocks"] for event in regions] == [span.clocks for span in spans]


def test_processes_are_sms_and_threads_are_warps_named_by_their_role():
    written = trace(pipelined().read(), ABOUT, 10_000)
    names = [event["args"]["name"] for event in written["traceEvents"] if event["ph"] == "M"]
    assert names[:4] == [
        "SM 0",
        "slot 0, warp 0: producer",
        "slot 0, warp 4: consumer",
        "slot 0, warp 5: consumer",
    ]
    assert written["otherData"] == {**ABOUT, "shown": "2 of 2 SMs"}


def test_a_long_trace_is_cut_at_an_sm_and_says_so():
    written = trace(pipelined().read(), ABOUT, 200)
    assert {event["pid"] for event in written["traceEvents"]} == {0}
    assert written["otherData"]["shown"] == "1 of 2 SMs"


def test_the_checks_find_slices_that_overlap():
    assert faults([(0, 100, "block"), (0, 50, "region"), (40, 60, "region")]) == ["regions overlap"]
    assert faults([(0, 100, "block"), (90, 110, "region")]) == ["a region is outside of its block"]
    assert faults([(0, 100, "block"), (50, 120, "block")]) == ["blocks overlap"]


def test_the_file_is_compressed_and_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        perfetto.write_trace(tmp_path / f"{name}.json.gz", pipelined().read(), ABOUT, 10_000)
    first, second = ((tmp_path / f"{name}.json.gz").read_bytes() for name in ("a", "b"))
    assert first == second
    assert json.loads(gzip.decompress(first))["otherData"]["variant"] == "ring"
