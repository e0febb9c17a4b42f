"""What a worklog tells, as data: three renderers write it, and none of them computes a fact."""

from dataclasses import dataclass
from pathlib import Path

from warplog.core.text import Table
from warplog.worklog.excerpt import Excerpt


@dataclass(frozen=True)
class Picture:
    """A figure drawn from the tables, with its caption."""

    name: str
    title: str
    caption: str
    path: Path


@dataclass(frozen=True)
class Rung:
    """One variant as the page tells it; a text or table that does not apply is empty or None.

    Attributes:
        badge: "", or what must be seen at once: the status where it is not ok, baseline, draft.
        gap: why there are no numbers.
        origins: parent, credit and parameters, one text each.
        figures: the headline numbers as (value, what it is).
        percent: speed in percent of the baseline, for a bar; None where there is none.
        noise: how many launches, and how far they lie apart.
        printed: what others printed, ours first.
        story: why it is faster, in sentences; `factors` and `states` are the numbers behind them.
        limits: what bounds it and its occupancy, in sentences; `lines`: its hottest source lines.
        remarks: what a reader must know before the numbers are believed.
    """

    name: str
    badge: str
    gap: str
    idea: str
    origins: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]
    percent: float | None
    noise: str
    excerpt: Excerpt | None
    printed: Table | None
    story: tuple[str, ...]
    factors: Table | None
    states: Table | None
    limits: tuple[str, ...]
    lines: Table | None
    claims: Table | None
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """A table over all rungs, under its heading."""

    heading: str
    table: Table


@dataclass(frozen=True)
class Page:
    """The worklog of a family.

    Attributes:
        facts: GPU, campaign and tools as (what, text).
        lead: what the ladder comes to, in sentences; `method`: how it was measured.
        ladder: the picture that opens the page; `pictures` are the others.
        notes: how the tables of the rungs are read, once for all of them.
        waiting: drafts that this campaign does not hold.
    """

    family: str
    title: str
    summary: str
    facts: tuple[tuple[str, str], ...]
    lead: tuple[str, ...]
    method: tuple[str, ...]
    ladder: Picture | None
    notes: tuple[str, ...]
    rungs: tuple[Rung, ...]
    waiting: Table | None
    summaries: tuple[Summary, ...]
    pictures: tuple[Picture, ...]
