"""What all scripts of the workflow share: the log, errors on one line, and the arguments of measuring jobs."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from warplog.core.errors import as_one_line
from warplog.core.process import die_with_parent
from warplog.core.records import sha256_file, sha256_of


def values_of_family(rule: Any) -> dict[str, Any]:
    """Returns the arguments of `measure.job.make_jobs`, from the `snakemake` object of a rule that measures a family.

    `inputs_sha256` is the hash of the inputs that all variants share; records with another hash are measured again.
    """
    job = rule.params.job
    named = set(rule.input.keys())
    single = [rule.input[name] for name in ("campaign", "reference", "timer") if name in named]
    shared = [*single, *rule.input.code]
    return {
        "family_file": Path(job["family_file"]),
        "variants": list(job["variants"]),
        "gpu": rule.wildcards.gpu,
        "builds": [Path(path) for path in rule.input.builds],
        "campaign": Path(rule.input.campaign),
        "settings": job["settings"],
        "record": Path(rule.output[0]),
        "inputs_sha256": sha256_of(
            [sha256_file(Path(path)) for path in shared], job["contract"], job["settings"]
        ),
    }


class _Tee:
    """Writes to standard error and to the log."""

    def __init__(self, terminal: TextIO, log: TextIO) -> None:
        self._terminal, self._log = terminal, log

    def write(self, text: str) -> int:
        self._log.write(text)
        return self._terminal.write(text)

    def flush(self) -> None:
        self._log.flush()
        self._terminal.flush()

    def isatty(self) -> bool:
        return self._terminal.isatty()

    def fileno(self) -> int:
        return self._terminal.fileno()


@contextmanager
def job(log: str) -> Iterator[None]:
    """Copies standard error to the file `log`; prints a WarplogError on one line and exits with status 1."""
    die_with_parent(signal.SIGTERM)
    path = Path(log)
    path.parent.mkdir(parents=True, exist_ok=True)
    terminal = sys.stderr
    with path.open("w", encoding="utf-8") as file:
        sys.stderr = _Tee(terminal, file)
        try:
            with as_one_line():
                yield
        finally:
            sys.stderr = terminal
