"""The history of a family: the headline time (rest) of each variant over the campaigns, and its changes."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import pandas as pd

from warplog.catalog.family import Family
from warplog.core.columns import Cell, Row
from warplog.core.statistics import summarise
from warplog.judge.comparison import compare
from warplog.judge.floors import with_times
from warplog.judge.samples import Campaign, Key, Measured, about_campaign, gpus, load

COLUMNS = (
    "family", "variant", "order", "is_baseline", "case", "place", "campaign", "commit", "started", "gpu_name",
    "status", "reason",
    "median_us", "q1_us", "q3_us", "samples", "processes", "process_min_us", "process_max_us",
    "gflops", "gbytes_per_s", "step", "change", "floor", "against",
)  # fmt: skip


@dataclass(frozen=True)
class _Step:
    """A verdict against an earlier campaign: FASTER, SLOWER, REFUSED, or "" if no change was shown."""

    step: str
    change: float | None
    floor: float | None
    against: str


def collect_all(folders: Sequence[Path], families: Sequence[Family], gpu: str) -> dict[str, pd.DataFrame]:
    """Returns the history of each family, by name: one row per variant and campaign that timed the family on that GPU.

    Campaigns are sorted by date (`place` counts from 0). Each is compared with the campaign that began the current
    level, not with its predecessor, so that a slow decline shows too. If the verdict is FASTER or SLOWER, `step` holds
    it and a new level begins; `change` is the ratio minus 1. If GPU, driver or clocks differ, `step` is REFUSED and a
    new level begins as well. Each campaign is read once, and only what a level requires is kept of it.

    Raises:
        WarplogError: a record is not readable.
    """
    histories = [_History(family) for family in families]
    keys = {key for history in histories for key in history.keys}
    for folder in _by_date([folder for folder in folders if gpu in gpus(folder)], gpu):
        whole, about = load(folder, gpu), about_campaign(folder, gpu)
        campaign = _reduced(with_times(whole), keys)
        for history in histories:
            history.add(campaign, {key[:2] for key in whole.cases}, about.device.sms if about else 1)
    return {history.family.name: history.table() for history in histories}


def _by_date(folders: Sequence[Path], gpu: str) -> list[Path]:
    """Returns the folders of campaigns by date; of those with the same name and date, the first.

    The live campaign may also be recorded.
    """
    by_date: dict[tuple[str, str], Path] = {}
    for folder in folders:
        about = about_campaign(folder, gpu)
        by_date.setdefault((about.started, about.campaign) if about else ("", str(folder)), folder)
    return [by_date[key] for key in sorted(by_date)]


def _reduced(campaign: Campaign, keys: Collection[Key]) -> Campaign:
    """Returns the campaign and its A/A rounds with these cases only."""
    cases = {key: measured for key, measured in campaign.cases.items() if key in keys}
    return replace(
        campaign, cases=cases, rounds=tuple(_reduced(aa_round, keys) for aa_round in campaign.rounds)
    )


class _History:
    """The rows of one family, to which campaigns are added by date."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.keys: list[Key] = [(family.name, v.name, family.headline_case) for v in family.variants]
        self._rows: dict[Key, list[Row]] = {key: [] for key in self.keys}
        self._levels: dict[Key, Campaign] = {}  # the campaign that began a level
        self._timed: set[tuple[str, str]] = set()
        self._place = 0

    def add(self, campaign: Campaign, timed: Collection[tuple[str, str]], sms: int) -> None:
        """Adds a campaign, reduced to the headline cases, that timed these variants on a GPU with `sms` SMs."""
        own = {variant for variant in timed if variant[0] == self.family.name}
        if not own:
            return
        self._timed |= own
        for order, key in enumerate(self.keys):
            head: Row = {
                "family": key[0],
                "variant": key[1],
                "case": key[2],
                "is_baseline": key[1] == self.family.baseline,
            }
            self._rows[key].append({**head, "order": order, **self._row(key, campaign, sms)})
        self._place += 1

    def _row(self, key: Key, campaign: Campaign, sms: int) -> Row:
        measured = campaign.cases.get(key)
        about: dict[str, Cell] = {
            "place": self._place,
            "campaign": campaign.name,
            "commit": campaign.commit[:12],
            "started": campaign.started,
        }
        about["gpu_name"] = measured.conditions["gpu_name"] if measured else ""
        if measured is None or not measured.processes:
            status, reason = (measured.status, measured.reason) if measured else ("missing", "not timed")
            return {**about, "status": status, "reason": reason, "step": "", "against": ""}
        level = self._levels.get(key)
        step = _step(key, level, campaign) if level else _Step("", None, None, "")
        if level is None or step.step:
            self._levels[key] = campaign
        return {
            **about,
            "status": "ok",
            "reason": "",
            **_times(measured, self.family, key[2], sms),
            **asdict(step),
        }

    def table(self) -> pd.DataFrame:
        """Returns the rows of the variants that any campaign timed."""
        rows = [row for key in self.keys if key[:2] in self._timed for row in self._rows[key]]
        return pd.DataFrame(rows, columns=list(COLUMNS))


def _times(measured: Measured, family: Family, case: str, sms: int) -> dict[str, float]:
    """Returns the columns with numbers: the quartiles are those of all samples, the median that of the processes."""
    times = summarise([us for process in measured.processes for us in process.times_us])
    processes = measured.numbers()
    median_us = median(processes)
    work = {"gflops": family.work.flops, "gbytes_per_s": family.work.bytes}
    rates = {
        name: family.amount(formula, family.cases[case], sms) / median_us / 1e3
        for name, formula in work.items()
    }
    quartiles = {"median_us": median_us, "q1_us": times.q1_us, "q3_us": times.q3_us, "samples": times.samples}
    spread = {"processes": len(processes), "process_min_us": min(processes), "process_max_us": max(processes)}
    return {**quartiles, **spread, **rates}


def _step(key: Key, level: Campaign, campaign: Campaign) -> _Step:
    """Compares one case with the campaign that began the level."""
    before, after = (replace(side, cases={key: side.cases[key]}) for side in (level, campaign))
    row = compare(before, after).rows[0]  # rest comes first
    word = row.word if row.word in ("FASTER", "SLOWER", "REFUSED") else ""
    if row.verdict is None:
        return _Step(word, None, None, level.name)
    return _Step(word, row.verdict.ratio - 1, row.verdict.floor, level.name)
