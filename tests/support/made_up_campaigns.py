"""Campaigns made from a recorded one: samples drawn again, with an offset for each process and planted steps.

Their names say made-up: no machine measured them as they are.
"""

import json
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).parents[2] / "results" / "recorded" / "h200-first"
DRIFT = 0.002


def make(folder, seed, steps=None, about=None, driver=None, source=RECORDED):
    """Time records in `folder`, `steps` (variant -> factor) as long; `about` goes into a campaign record."""
    random = np.random.default_rng(seed)

    def put(path, record):
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(record))

    for path in sorted(source.glob("time/*/*.json")):
        together = json.loads(path.read_text())
        for variant, record in sorted(together["variants"].items()):
            record["provenance"]["driver"] = driver or record["provenance"]["driver"]
            for case in record["cases"]:
                redraw(random, case["cold"], (steps or {}).get(variant, 1.0))
        put(path, together)
    for path in source.glob("campaign/*.json") if about else ():
        put(path, json.loads(path.read_text()) | about)
    return folder


def redraw(random, cold, factor):
    """Other samples of the same process, and the process another one."""
    factor *= np.exp(random.normal(0, DRIFT))
    drawn = random.integers(0, len(cold["samples_us"]), len(cold["samples_us"]))
    for key, scale in (("samples_us", factor), ("sm_mhz_samples", 1.0)):
        cold[key] = [cold[key][i] * scale for i in drawn]


def dated(day):
    """The identity of the campaign of that day."""
    return {"campaign": f"made-up-{day}", "started": f"2026-11-{day:02}T00:00:00Z", "commit": f"{day:x}" * 40}
