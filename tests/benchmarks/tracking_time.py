"""Times how long the runs of a recorded campaign take to log, and to log again without a change.

    MLFLOW_TRACKING_URI=http://127.0.0.1:5056 MLFLOW_TRACKING_USERNAME=... MLFLOW_TRACKING_PASSWORD=... \\
        python tests/benchmarks/tracking_time.py [RECORDED_CAMPAIGN]

Each run has its tables as files. tests/cluster/mlflow_up.sh brings up a server with PostgreSQL and login. The name of
the campaign is new in each call, so that runs are added to the store.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from msgspec.structs import replace

from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.track import log

PROJECT = Path(__file__).parents[2]


def main(root: Path, uri: str) -> None:
    """Logs the campaign twice, under a name of its own, and prints the times and the number of runs."""
    name = f"timed-{os.getpid()}-{int(time.time())}"
    (record,) = (root / "campaign").glob("*.json")
    campaign = replace(door.read(record, Campaign), campaign=name)
    with tempfile.TemporaryDirectory() as folder:
        for path in (root / "tables").glob("*.parquet"):
            table = pd.read_parquet(path)
            renamed = table.assign(campaign=name) if "campaign" in table else table
            renamed.to_parquet(Path(folder) / path.name, index=False)
        for what in ("new", "unchanged"):
            begin, cpu = time.monotonic(), time.process_time()
            done = log.log_campaign(Path(folder), campaign, {}, uri)
            runs = sum(len(family.runs) for family in done.experiments)
            took, own = time.monotonic() - begin, time.process_time() - cpu
            print(
                f"{what}: {runs} runs in {took:.1f} s, of which {own:.1f} s on this process's CPU", flush=True
            )


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else PROJECT / "results" / "recorded" / "h200"
    main(place, os.environ["MLFLOW_TRACKING_URI"])
