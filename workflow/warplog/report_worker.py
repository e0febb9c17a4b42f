"""A process that reads some reports and ends: the reader keeps memory of each report, and a damaged one can kill it.

    python -m warplog.report_worker OUT FILE...

Each file becomes a line of OUT, in order, as soon as it is read: {"rows": [...]} or {"error": "..."}.
"""

import json
import signal
import sys
from pathlib import Path

from warplog.errors import WarplogError
from warplog.process import die_with_parent
from warplog.report_reader import read_any


def main(output: Path, files: list[Path]) -> None:
    """Reads the files into `output`."""
    die_with_parent(signal.SIGKILL)
    with output.open("w", encoding="utf-8") as lines:
        for file in files:
            try:
                told: dict[str, object] = {"rows": list(read_any(file))}
            except WarplogError as error:
                told = {"error": str(error)}
            lines.write(json.dumps(told) + "\n")
            lines.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
