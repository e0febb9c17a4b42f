"""The history of a family: the headline time (rest) of each variant over the campaigns, and its changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from warplog.catalog.family import Family
from warplog.core.statistics import summarise
from warplog.judge.comparison import compare
from warplog.judge.floors import measure_floors
from warplog.judge.samples import Campaign, Key, Measured, gpus, load

COLUMNS = (
    "family", "variant", "order", "is_baseline", "case", "place", "campaign", "commit", "started", "gpu_name",
    "status", "reason",
    "median_us", "q1_us", "q3_us", "samples", "processes", "process_min_us", "process_max_us",
    "gflops", "gbytes_per_s", "step", "change", "least_gap", "against",
)  # fmt: skip


@dataclass(frozen=True)
class _Step:
    """A verdict against an earlier campaign: FASTER, SLOWER, REFUSED, or "" if no change was shown."""

    step: str
    change: float | None
    least_gap: float | None
    against: str


def collect(folders: Sequence[Path], family: Family, gpu: str) -> pd.DataFrame:
    """Returns one row per variant and campaign that timed the family on that GPU; see COLUMNS.

    Campaigns are sorted by date (`place` counts from 0). Each is compared with the campaign that began the current
    level, not with its predecessor, so that a slow decline shows too. If the verdict is FASTER or SLOWER, `step` holds
    it and a new level begins; `change` is the ratio minus 1. If GPU, driver or clocks differ, `step` is REFUSED and a
    new level begins as well.

    Raises:
        WarplogError: a record is not readable.
    """
    found = [load(folder, gpu) for folder in folders if gpu in gpus(folder)]
    of_family = [one for one in found if any(key[0] == family.name for key in one.cases)]
    campaigns = sorted(_distinct(of_family), key=lambda one: (one.started, one.name))
    names = [v.name for v in family.variants]
    timed = {key[1] for one in campaigns for key in one.cases if key[0] == family.name}
    keys = [(family.name, name, family.headline_case) for name in names if name in timed]
    rows = [row for key in keys for row in _rows(key, campaigns, family)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _distinct(campaigns: Sequence[Campaign]) -> list[Campaign]:
    """Keeps the first of campaigns with the same name and date, as the live campaign may also be recorded."""
    return list({(one.name, one.started): one for one in reversed(campaigns)}.values())


def _rows(key: Key, campaigns: Sequence[Campaign], family: Family) -> Iterator[Mapping[str, Any]]:
    head = {"family": key[0], "variant": key[1], "case": key[2], "is_baseline": key[1] == family.baseline}
    head["order"] = [v.name for v in family.variants].index(key[1])
    level: Campaign | None = None
    for place, one in enumerate(campaigns):
        measured = one.cases.get(key)
        about = {"place": place, "campaign": one.name, "commit": one.commit[:12], "started": one.started}
        about["gpu_name"] = measured.conditions["gpu_name"] if measured else ""
        if measured is None or not measured.processes:
            status, reason = (measured.status, measured.reason) if measured else ("missing", "not timed")
            yield {**head, **about, "status": status, "reason": reason, "step": "", "against": ""}
            continue
        step = _step(key, level, one) if level else _Step("", None, None, "")
        if level is None or step.step:
            level = one
        numbers = _times(measured, family, key[2])
        yield {**head, **about, "status": "ok", "reason": "", **numbers, **asdict(step)}


def _times(measured: Measured, family: Family, case: str) -> dict[str, float]:
    """Returns the columns with numbers: the quartiles are those of all samples, the median that of the processes."""
    times = summarise([us for process in measured.processes for us in process.times_us])
    processes = measured.numbers()
    median_us = median(processes)
    work = {"gflops": family.flops, "gbytes_per_s": family.bytes_moved}
    rates = {
        name: family.value(formula, family.cases[case]) / median_us / 1e3 for name, formula in work.items()
    }
    found = {"median_us": median_us, "q1_us": times.q1_us, "q3_us": times.q3_us, "samples": times.samples}
    spread = {"processes": len(processes), "process_min_us": min(processes), "process_max_us": max(processes)}
    return {**found, **spread, **rates}


def _step(key: Key, level: Campaign, one: Campaign) -> _Step:
    """Compares one case with the current level, using the floors of the level's campaign, else of `one`."""
    floors = measure_floors((level, *level.rounds)) or measure_floors((one, *one.rounds))
    before, after = (replace(side, cases={key: side.cases[key]}) for side in (level, one))
    row = compare(before, after, floors).rows[0]  # rest comes first
    word = row.word if row.word in ("FASTER", "SLOWER", "REFUSED") else ""
    if row.verdict is None:
        return _Step(word, None, None, level.name)
    return _Step(word, row.verdict.time.ratio - 1, row.verdict.least, level.name)
