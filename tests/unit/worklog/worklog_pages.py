"""Worklog pages of sgemm in the small campaign, and a parser for their visible text."""

import atexit
import math
import shutil
import tempfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import pandas as pd
from msgspec import structs

import shipped_families
from small_campaign import FOLDER as RECORDED
from warplog import worklog
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.family_file import FamilyRecord
from warplog.records.time import Time
from warplog.worklog.pictures import charts

PROJECT = Path(__file__).parents[3]
_TODAY = shipped_families.FAMILIES["sgemm"]
_THEN = set(FamilyRecord.read(RECORDED / "time" / "h200" / "sgemm.json", Time).variants)
FAMILY = structs.replace(  # variants that the campaign lacks are drafts
    _TODAY, variants=tuple(structs.replace(v, draft=v.name not in _THEN) for v in _TODAY.variants)
)
CAMPAIGN = door.read(RECORDED / "campaign" / "h200.json", Campaign)
# Where the figures of a run would be; a recorded campaign keeps only those that the README shows.
_DRAWN = Path(tempfile.mkdtemp(prefix="warplog-figures-"))
atexit.register(shutil.rmtree, _DRAWN, ignore_errors=True)
for _name in (
    *("bank_conflicts", "claims", "ladder", "memory_chart", "occupancy", "roofline", "swim_lanes"),
    *("throughput_vs_size", "warp_stalls"),
):
    shutil.copy(RECORDED / "figures" / "sgemm" / "ladder.png", _DRAWN / f"{_name}.png")
PICTURES = sorted(_DRAWN.glob("*.png"))
SHOWN = [path for path in PICTURES if path.stem != "claims"]  # which are in tables
CAPTIONS = PROJECT / "workflow" / "report"
HOSTILE = (
    "<script>alert(1)</script> \\input{x} a_b & 50 % $y^2$ #1 {z} | ~ [u](v) *w* `q` \"r\" 's'\nnew\tline"
)
SAFE = " ".join(HOSTILE.split())
CLAIM = {
    "family": "sgemm", "cases": "4096", "about": "",
    "id": "C1", "claim": "coalescing brings 6x", "source": "someone", "published": "6x", "measured": 11.79,
    "unit": "", "condition": ">= 5", "measure": "median_us[naive] / median_us[gmem_coalesced]",
    "verdict": "confirmed", "reason": math.nan, "margin": "exceeded", "case": "4096", "kernels": "kernel 1 = naive",
}  # fmt: skip


class Page(HTMLParser):
    """The tags, addresses that are loaded, links and visible text of an HTML page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("dd", "div", "dt", "h2", "li", "p", "summary", "td", "th"):
            self.words.append(" ")
        named = [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "poster")]
        (self.links if tag == "a" else self.addresses).extend(named)
        assert tag != "a" or named[:1] == [] or named[0].startswith("#") or ("rel", "noopener") in attrs
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).replace("\u00a0", " ").split())


def charted(tables, family=FAMILY, claims=(), lines=()):
    """The page of these tables."""
    tables = replace(tables, claims=pd.DataFrame(claims), lines=pd.DataFrame(lines))
    return worklog.gather(family, tables, CAMPAIGN, [], CAPTIONS)


def uncharted(*args, **options):
    """The same without its chart, which takes a third of the time."""
    with mock.patch.object(charts, "chart", return_value=""):
        return charted(*args, **options)


def hot_line(tables, number, share):
    """A row of the table `lines` for warptile's kernel."""
    kernels = tables.counters([]).set_index("variant")["kernel"]
    return {
        "family": "sgemm", "variant": "warptile", "case": "4096", "kernel": kernels["warptile"], "launch": 0,
        "file": "k/warptile.cu",
        "line": number, "text": "  sum += a;", "sample_share": share, "instruction_share": math.nan,
        "instructions": 1e6,
        "shared_wavefronts_excess": 0.0, "stall": "wait",
    }  # fmt: skip


def section(page, name):
    return next(variant for variant in page.sections if variant.name == name)
