"""Campaigns made from a recorded one: samples drawn again, with an offset for each process and planted steps.

Their names say made-up: no machine measured them as they are.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "recorded" / "h200-first"
DRIFT = 0.002
SUSTAINED = 1.2  # a sustained time against one at rest, of the cases named here
BRAKED = ("4096", "8192")
# The GPU of a campaign record.
H200: dict[str, Any] = {
    **{"slug": "h200", "name": "NVIDIA H200", "uuid": "GPU-0", "compute_capability": [9, 0], "arch": "sm_90"},
    **{"sms": 132, "memory_bytes": 0, "driver": "580.0", "cuda_driver": "13.0", "max_sm_mhz": 1980},
    **{"power_limit_w": None, "pci_bus_id": ""},
}


def make(folder, seed, steps=None, about=None, driver=None, source=RECORDED, processes=0, board=None):
    """Time records in `folder`, `steps` (variant -> factor) as long; `about` goes into a campaign record.

    With `processes`, every case has that many, and the cases BRAKED sustained times; without, records are as before.
    """
    random = np.random.default_rng(seed)

    def put(path, record):
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(record))

    for path in sorted(source.glob("time/*/*.json")):
        together = json.loads(path.read_text())
        for variant, record in sorted(together["variants"].items()):
            record["provenance"]["driver"] = driver or record["provenance"]["driver"]
            record["provenance"]["gpu_uuid"] = board or record["provenance"]["gpu_uuid"]
            for case in record["cases"]:
                factor = (steps or {}).get(variant, 1.0)
                if processes:
                    split(random, case, factor, processes)
                else:
                    redraw(random, case["cold"], factor)
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


def split(random, case, factor, processes):
    """The case in several processes, whose samples follow each other."""
    cold, parts = case["cold"], []
    case["processes"] = []
    for number in range(1, processes + 1):
        part = {key: list(cold[key]) for key in ("samples_us", "sm_mhz_samples")}
        redraw(random, part, factor)
        parts.append(part)
        us = float(np.median(part["samples_us"]))
        case["processes"].append(
            {"process": number, "median_us": us, "samples": len(part["samples_us"]), "set_mhz": 1980.0}
        )
        if case["case"] in BRAKED:
            mean_us = us * SUSTAINED * np.exp(random.normal(0, DRIFT))
            case["processes"][-1]["sustained"] = {"mean_us": mean_us, "limited_by": "power"}
    for key in ("samples_us", "sm_mhz_samples"):
        cold[key] = [value for part in parts for value in part[key]]


def dated(day):
    """The identity of the campaign of that day."""
    return {"campaign": f"made-up-{day}", "started": f"2026-11-{day:02}T00:00:00Z", "commit": f"{day:x}" * 40}
