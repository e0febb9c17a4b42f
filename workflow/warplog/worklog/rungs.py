"""The content of a worklog page as data; the renderers only format it."""

from dataclasses import dataclass, field
from pathlib import Path

from warplog.catalog.header import Header
from warplog.core.text import Table
from warplog.figures.shared.memory_boxes import MemoryChart
from warplog.worklog.code.heat import HeatMap
from warplog.worklog.code.listing import Code
from warplog.worklog.code.sources import SourceView
from warplog.worklog.excerpt import Excerpt
from warplog.worklog.pictures.story import Waterfall


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
        figures: Headline numbers as (value, description), without `got`.
        got: What to compare with the expectation: the gain over the parent, or the share of the baseline without one,
            or the baseline's speed; None if nothing was expected or there is no time.
        elsewhere: The same at the other cases that the expectation names, as (value, case).
        speed: The speed at the headline case; "" without a time.
        answer: Whether the gain over the parent is within the expected range; "" if no range was expected.
        verdict: How many of its claims are confirmed; "" without claims.
        percent: Speed in percent of the baseline, drawn as a bar; None if unknown.
        noise: The number of timed launches, their median and quartiles.
        excerpt: The lines of the source that show the idea; None if an earlier rung shows the same source.
        printed: Published results, after the result of this campaign.
        story: Sentences about why it is faster than its parent; `factors` and `states` hold the numbers.
        limits: Sentences about what bounds it, its memory traffic and its occupancy.
        lines: Its hottest source lines.
        claims: The claims that name this variant last.
        remarks: Caveats about the numbers.
        header: The fields of the source's header: what was expected, and at what cost.
        on_path: Whether it is a step of the main path; the others are detours.
        code: Its code as a diff to its parent's.
        counters: The two or three counters that explain the step, as (name, before, after).
        sources: Its sources with all line numbers; `heat` is where the samples fall.
        sass: The machine code of its longest kernel; empty where the campaign did not keep it.
        memory: The memory charts of its parent, if that has counters, and of its own longest kernel.
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
    header: Header = field(default_factory=Header)
    on_path: bool = True
    code: Code | None = None
    counters: tuple[tuple[str, str, str], ...] = ()
    sources: tuple[SourceView, ...] = ()
    heat: HeatMap = field(default_factory=HeatMap)
    sass: tuple[str, ...] = ()
    memory: tuple[MemoryChart, ...] = ()
    got: tuple[str, str] | None = None
    elsewhere: tuple[tuple[str, str], ...] = ()
    verdict: str = ""
    answer: str = ""
    speed: str = ""


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
        waterfall: The main path, factor by factor; None if it is too short for one.
        chart: The Vega-Lite specification of the interactive charts; "" for none.
        regimes: A sentence that explains the regimes of the times; "" for none.
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
    waterfall: Waterfall | None = None
    chart: str = ""
    regimes: str = ""

    @property
    def about(self) -> str:
        """GPU and campaign on one line."""
        facts = dict(self.facts)
        return "; ".join(facts[name] for name in ("GPU", "Campaign") if name in facts)
