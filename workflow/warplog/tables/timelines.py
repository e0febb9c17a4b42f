"""Rows of the tables `launches` and `tracks`: one launch seen from inside its kernel."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from warplog.catalog.family import Variant
from warplog.core.columns import Cell, Row
from warplog.metrics.tracks import Numbers, Track, numbers, roles
from warplog.records import remarks
from warplog.records.measured import Absent
from warplog.records.remarks import EarlierSource
from warplog.records.requested import timeline as records
from warplog.records.requested.timeline import Launch, Timeline

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


def rows(record: Timeline | Absent, variant: Variant, origin: str) -> Iterator[tuple[str, Row]]:
    """Yields table and row of a variant, given its timeline record; none if nothing was captured."""
    if isinstance(record, Absent):
        if record.status != "missing":
            yield "launches", {"status": record.status, "reason": record.reason}
        return
    row: dict[str, Cell] = {"source_sha256": record.source_sha256}
    if not record.cases:
        status, reason = record.status, record.reason
        if status == "ok":
            status, reason = "error", "the record has no launch; capture the timeline again"
        yield "launches", {**row, "status": status, "reason": reason}
        return
    case = record.cases[0]
    row |= {"case": case.case, "status": case.status, "reason": case.reason}
    launch, overhead = case.launch, case.overhead
    if launch is None or overhead is None:
        yield "launches", row
        return
    tracks = [_track(launch.sm, track) for track in launch.tracks]
    is_old = origin == "recorded" and record.source_sha256 != variant.fingerprint()
    row["remarks"] = remarks.cell([EarlierSource()] if is_old else [])
    row |= {name: getattr(launch, name) for name in _FACTS}
    row |= {name: getattr(overhead, name) for name in _TIMES}
    row |= _numbers(numbers(tracks, launch.sm_mhz))
    row |= {"wait_pct_min": launch.wait_pct[0], "wait_pct_max": launch.wait_pct[2]}
    yield "launches", row
    yield from (("tracks", span) for span in _spans(case.case, launch, tracks))


def _track(sm: int, track: records.Track) -> Track:
    return Track(
        sm, track.block, track.warp, track.slot, track.begin, track.end, track.starts, track.regions, track.lost,
    )  # fmt: skip


def _numbers(summary: Numbers) -> Row:
    kept = {name: value for name, value in asdict(summary).items() if name != "consumer_pct"}
    return {**kept, **{f"{region}_pct": summary.consumer_pct.get(region, 0.0) for region in _SHARES}}


def _spans(case: str, launch: Launch, tracks: Sequence[Track]) -> Iterator[Row]:
    role, mhz = roles(tracks), launch.sm_mhz
    for track in tracks:
        place: Row = {"case": case, "role": role(track)}
        place = {**place, "sm": track.sm, "slot": track.slot, "block": track.block, "warp": track.warp}
        for span in track.spans:
            yield {
                **place,
                "region": span.region,
                "start_us": launch.origin_us + span.begin / mhz,
                "duration_us": span.clocks / mhz,
                "start_clocks": span.begin,
                "duration_clocks": span.clocks,
            }
