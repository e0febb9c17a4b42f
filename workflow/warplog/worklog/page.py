"""The content of a worklog page as data; the renderers only format it."""

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
    """One variant on the page; a text or table that does not apply is empty or None.

    Attributes:
        language: Language of the source if the family has several, else "".
        badge: A status other than ok, "baseline", "draft", or "".
        gap: Why there are no numbers.
        idea: The variant's idea in one sentence.
        origins: Parent, credit and parameters, one text each.
        figures: Headline numbers as (value, description).
        percent: Speed in percent of the baseline, drawn as a bar; None if unknown.
        noise: The number of timed launches, their median and quartiles.
        excerpt: The lines of the source that show the idea; None if an earlier rung shows the same source.
        printed: Published results, after the result of this campaign.
        story: Sentences about why it is faster than its parent; `factors` and `states` hold the numbers.
        limits: Sentences about what bounds it, its memory traffic and its occupancy.
        lines: Its hottest source lines.
        claims: The claims that name this variant last.
        remarks: Caveats about the numbers.
    """

    name: str
    language: str
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
    """A table about all rungs, with its heading."""

    heading: str
    table: Table


@dataclass(frozen=True)
class Page:
    """The worklog of a family.

    Attributes:
        facts: GPU, campaign and tools as (name, text).
        lead: Sentences that summarize the ladder.
        method: Sentences about how it was measured.
        key: The pictures that belong to this family alone, which come first.
        ladder: The picture of the ladder; `pictures` are the others.
        notes: How to read the tables of the rungs.
        waiting: Drafts that this campaign did not measure.
        summaries: Tables about all rungs.
    """

    family: str
    title: str
    summary: str
    facts: tuple[tuple[str, str], ...]
    lead: tuple[str, ...]
    method: tuple[str, ...]
    key: tuple[Picture, ...]
    ladder: Picture | None
    notes: tuple[str, ...]
    rungs: tuple[Rung, ...]
    waiting: Table | None
    summaries: tuple[Summary, ...]
    pictures: tuple[Picture, ...]
