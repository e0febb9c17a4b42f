"""Default configuration; config/config.yaml holds the same values."""

from collections.abc import Mapping
from typing import Any

DEFAULTS: Mapping[str, Any] = {
    "families": "all",
    "variants": "all",
    "cases": "all",
    "kernel_folders": [],
    "gpu": "auto",
    "mode": "auto",
    "recorded": "h200",
    "campaign": "auto",
    "commit": "auto",
    "check": {"rounds": 3, "timeout_s": 60},
    "sanitize": {
        "tools": ["memcheck", "racecheck", "initcheck", "synccheck"],
        "largest_elements": 300_000,
        "timeout_s": 120,
    },
    "time": {
        "processes": 3,
        "most_processes": 15,
        "further_seconds": 0.8,
        "run_error": 0.0035,
        "min_samples": 8,
        "max_samples": 20,
        "max_seconds": 0.045,
        "rel_error": 0.003,
        "warmup_launches": 3,
        "warmup_ms": 2,
        "hot_seconds": 0.1,
        "hot_cases": "captured",
        "timeout_s": 120,
    },
    "profile": {"ncu": True, "nsys": True, "metrics": "all", "launches": 10, "timeout_s": 300},
    "tune": {"minutes": 10, "timeout_s": 60},
    "timeline": {"rounds": 6, "samples": 5, "pause_us": 2000, "most_mib": 512, "timeout_s": 120},
    "figures": {"style": "web"},
    "track": {"uri": "sqlite:///results/mlflow.db"},
    "baseline": "auto",
    "candidate": "results",
    "aa": {"rounds": 3},
    "history": "all",
    "strict": False,
}
