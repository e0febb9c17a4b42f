"""Rows of the tables `launches` and `tracks`: one launch seen from inside its kernel."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from warplog.catalog.family import Variant
from warplog.core.records import Record
from warplog.metrics.tracks import Numbers, Track, numbers, roles
from warplog.records import remarks

Row = dict[str, Any]
_FACTS = (
    "sm",
    "sms",
    "blocks",
    "warps",
    "events",
    "lost_events",
    "lost_warps",
    "sm_mhz",
    "step_ns",
    "span_us",
)
_TIMES = ("plain_us", "marked_us", "overhead_pct", "noise_pct")
_SHARES = ("compute", "wait", "sync", "store", "handover", "lookback")


def rows(record: Record, variant: Variant, origin: str) -> dict[str, list[Row]]:
    """Returns the rows of a variant by table, given its timeline record; none if nothing was captured."""
    if record["status"] == "missing":
        return {}
    source = record.get("source_sha256", "")
    is_old = origin == "recorded" and source != variant.fingerprint()
    case: Record = next(
        iter(record["cases"]), {"case": "", "status": record["status"], "reason": record["reason"]}
    )
    row = {"case": case["case"], "status": case["status"], "reason": case["reason"], "source_sha256": source}
    if not record["cases"] and row["status"] == "ok":
        row |= {"status": "error", "reason": "the record has no launch; capture the timeline again"}
    if row["status"] != "ok":
        return {"launches": [row]}
    launch = case["launch"]
    tracks = [_track(launch["sm"], one) for one in launch["tracks"]]
    row |= {"remarks": remarks.cell([remarks.EarlierSource()] if is_old else [])}
    row |= {name: launch[name] for name in _FACTS} | {name: case["overhead"][name] for name in _TIMES}
    row |= _numbers(numbers(tracks, launch["sm_mhz"]))
    row |= {"wait_pct_min": launch["wait_pct"][0], "wait_pct_max": launch["wait_pct"][2]}
    return {"launches": [row], "tracks": list(_spans(case["case"], launch, tracks))}


def _track(sm: int, track: Record) -> Track:
    block, warp, slot, begin, end = (track[name] for name in ("block", "warp", "slot", "begin", "end"))
    starts, regions = tuple(track["starts"]), tuple(track["regions"])
    return Track(sm, block, warp, slot, begin, end, starts, regions, track["lost"])


def _numbers(found: Numbers) -> Row:
    shares = found.consumer_pct
    kept = {name: value for name, value in asdict(found).items() if name != "consumer_pct"}
    return {**kept, **{f"{region}_pct": shares.get(region, 0.0) for region in _SHARES}}


def _spans(case: str, launch: Record, tracks: list[Track]) -> Iterator[Row]:
    role, mhz = roles(tracks), launch["sm_mhz"]
    for track in tracks:
        place = {"case": case, "role": role(track)}
        place |= {name: getattr(track, name) for name in ("sm", "slot", "block", "warp")}
        for span in track.spans():
            yield {
                **place,
                "region": span.region,
                "start_us": launch["origin_us"] + span.begin / mhz,
                "duration_us": span.clocks / mhz,
                "start_clocks": span.begin,
                "duration_clocks": span.clocks,
            }
