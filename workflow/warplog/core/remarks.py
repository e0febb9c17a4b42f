"""Remarks in the column `reason` of rows whose status is "ok".

The timing worker and the tables write these remarks; readers recognise them by the same templates. Recorded campaigns
contain the remarks as text: if the wording of a template changes, add its old wording to `_RECORDED_TIMING`.
"""

import re

EARLIER_SOURCE = "recorded for an earlier source"
FEW_SAMPLES = "only {samples}"
DISCARDED = "{dropped} of {taken} launches discarded: set SM clock below {mhz:.0f} MHz"
HELD_CLOCK = "clock held at {mhz:.0f} MHz in spite of pauses"
NOT_BLOCKED = "{samples} not blocked: the launcher synchronises"
OTHER_BOARD = "no ratio: the baseline was measured on another board"
HOST_TIME = "with the host's part of each launch"
NO_GRAPH = "hot times without a CUDA graph"

_TIMING = (FEW_SAMPLES, DISCARDED, HELD_CLOCK, NOT_BLOCKED, HOST_TIME, NO_GRAPH)
_RECORDED_TIMING = (
    "{dropped} of {taken} launches discarded: clock below {mhz:.0f} MHz",
    "{samples} in the {seconds:g} s allowed",
    "{samples} below {mhz:.0f} MHz",
    "{samples} below {mhz:.0f} MHz, {outcome}",
)


def of_samples(template: str, count: int, **values: object) -> str:
    """Fills a template that begins with a number of samples: `10 samples below 1485 MHz, discarded`."""
    return template.format(samples=f"{count} sample{'' if count == 1 else 's'}", **values)


def in_present_words(reason: str) -> str:
    """Returns the remarks of a record with the clock named as today: the set SM clock, not the mean one."""
    return reason.replace("launches discarded: clock below", "launches discarded: set SM clock below")


def is_about_timing(remark: str) -> bool:
    """Returns whether a remark only concerns how the times were taken, and therefore not the counters."""
    return any(pattern.fullmatch(remark) for pattern in _TIMING_PATTERNS)


def _pattern(template: str) -> re.Pattern[str]:
    escaped = re.escape(template).replace(r"\{samples\}", r"\d+ samples?")
    return re.compile(re.sub(r"\\\{.*?\\\}", r"\\S+", escaped))


_TIMING_PATTERNS = tuple(map(_pattern, (*_TIMING, *_RECORDED_TIMING)))
