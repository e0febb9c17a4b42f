"""Campaigns made from a recorded one: samples drawn again, with an offset for each process and planted steps.

Their names say made-up: no machine measured them as they are.
"""

import json
from typing import Any

import numpy as np

from small_campaign import FOLDER as RECORDED

DRIFT = 0.002
SAMPLES = 20  # of each process
SUSTAINED = 1.2  # a sustained time against one at rest, of the cases named here
BRAKED = ("4096", "8192")
# The GPU of a campaign record.
H200: dict[str, Any] = {
    **{"slug": "h200", "name": "NVIDIA H200", "uuid": "GPU-0", "compute_capability": [9, 0], "arch": "sm_90"},
    **{"sms": 132, "memory_bytes": 0, "driver": "580.0", "cuda_driver": "13.0", "max_sm_mhz": 1980},
    **{"power_limit_w": None, "pci_bus_id": ""},
}


def make(folder, seed, steps=None, about=None, driver=None, source=RECORDED, processes=1, board=None):
    """Time records of sgemm in `folder`, `steps` (variant -> factor) as long; `about` goes into a campaign record.

    Every case has as many `processes`; if these are several, the cases BRAKED also have sustained times.
    """
    random = np.random.default_rng(seed)

    def put(path, record):
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(record))

    for path in sorted(source.glob("time/*/sgemm.json")):
        together = json.loads(path.read_text())
        for variant, record in sorted(together["variants"].items()):
            record["provenance"]["driver"] = driver or record["provenance"]["driver"]
            if variant in (steps or {}):
                record["source_sha256"] = "e" * 64
            record["provenance"]["gpu_uuid"] = board or record["provenance"]["gpu_uuid"]
            for case in record["cases"]:
                if case["status"] == "ok":
                    redraw(random, case, (steps or {}).get(variant, 1.0), processes)
        put(path, together)
    for path in source.glob("campaign/*.json") if about else ():
        put(path, json.loads(path.read_text()) | about)
    return folder


def redraw(random, case, factor, processes):
    """Draws other samples for each process of the case; those of the processes follow each other."""
    cold, one = case["cold"], case["processes"][0]
    known, cold["samples_us"], case["processes"] = cold["samples_us"], [], []
    for number in range(1, processes + 1):
        drawn = random.choice(known, SAMPLES) * factor * np.exp(random.normal(0, DRIFT))
        cold["samples_us"] += drawn.tolist()
        own = {
            **one,
            "process": number,
            "samples": SAMPLES,
            "median_us": float(np.median(drawn)),
            "set_mhz": 1980.0,
        }
        if processes > 1 and case["case"] in BRAKED:
            own["sustained"] = {
                **{
                    "mean_us": own["median_us"] * SUSTAINED * np.exp(random.normal(0, DRIFT)),
                    "sm_mhz": 1650.0,
                },
                **{"power_w": 700.0, "limits": ["sw_power_cap"], "launches": 100, "seconds": 1.0},
            }
        case["processes"].append(own)


def dated(day):
    """The identity of the campaign of that day."""
    return {"campaign": f"made-up-{day}", "started": f"2026-11-{day:02}T00:00:00Z", "commit": f"{day:x}" * 40}
