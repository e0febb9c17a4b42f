"""What every script of the workflow does around its work: a log, and errors as one line."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from warplog.core.errors import as_one_line
from warplog.core.process import die_with_parent
from warplog.core.records import sha256_file, sha256_of


def values_of(rule: Any) -> dict[str, Any]:
    """What jobs.make_job takes, from the `snakemake` object of a measuring rule's script."""
    return {
        "family_file": Path(rule.params.family_file),
        "variant": rule.wildcards.variant,
        "gpu": rule.wildcards.gpu,
        "build": Path(rule.input.build),
        "campaign": Path(rule.input.campaign),
        "settings": rule.params.settings,
    }


def values_of_family(rule: Any) -> dict[str, Any]:
    """What jobs.make_jobs takes, from the `snakemake` object of a rule that measures a whole family.

    Of its inputs, those that hold for all variants make the hash that tells which records are still good.
    """
    named = set(rule.input.keys())
    single = [rule.input[name] for name in ("campaign", "reference", "timer") if name in named]
    shared = [*single, *rule.input.code]
    return {
        "family_file": Path(rule.params.family_file),
        "variants": list(rule.params.variants),
        "gpu": rule.params.gpu,
        "builds": [Path(path) for path in rule.input.builds],
        "campaign": Path(rule.input.campaign),
        "settings": rule.params.settings,
        "records": [Path(path) for path in rule.output],
        "inputs_sha256": sha256_of(
            [sha256_file(Path(p)) for p in shared], rule.params.contract, rule.params.settings
        ),
    }


class _Tee:
    """Standard error that also goes into the log."""

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
    """Copies standard error into the log; a WarplogError becomes one line and exit status 1."""
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
