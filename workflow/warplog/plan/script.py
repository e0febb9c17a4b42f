"""What all scripts of the workflow share: the log, errors on one line, and the parameters of jobs."""

import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, TypeVar

from warplog.catalog.family import load_family
from warplog.core.errors import as_one_line
from warplog.core.process import die_with_parent
from warplog.core.text import Screen
from warplog.measure import job as jobs
from warplog.measure.building.job import BuildJob
from warplog.measure.family_board import board_of
from warplog.plan.jobs import BuildParameters, FamilyJob, Settings
from warplog.records import door

_T = TypeVar("_T")


def parameters(rule: Any, kind: type[_T]) -> _T:
    """Returns the parameter `job` of a rule as the type that the plan made it of; `rule` is its `snakemake` object."""
    return door.decode(rule.params.job, kind, "params.job")


def family_jobs(rule: Any, job: FamilyJob[Settings]) -> list[jobs.Job[Settings]]:
    """Returns the measuring jobs of a family, from the `snakemake` object of the rule and its decoded parameter.

    Raises:
        WarplogError: This machine has no GPU, another one or no free one, or a record is invalid.
    """
    shared = [Path(rule.input[name]) for name in ("campaign", "reference") if hasattr(rule.input, name)]
    family, campaign = load_family(Path(job.family_file)), Path(rule.input.campaign)
    return jobs.make_jobs(
        family=family,
        variants=job.variants,
        gpu=board_of(family.name, rule.wildcards.gpu, campaign.parents[1]),
        builds=[Path(path) for path in rule.input.builds],
        campaign=campaign,
        settings=job.settings,
        record=Path(rule.output[0]),
        inputs_sha256=job.inputs_sha256(rule.params.version, shared),
    )


def build_job(rule: Any) -> BuildJob:
    """Returns what a rule that builds is to build, from its `snakemake` object."""
    given, keys = parameters(rule, BuildParameters), rule.wildcards
    return given.job(keys.variant, keys.arch, Path(rule.output.record).parent, rule.params.version)


class _Log:
    """Writes to the log of a job; what does not fit, since the disk is full, is lost."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()


class _Tee:
    """Writes to standard error and to the log, which `warplog.core.errors.note` finds as `log`."""

    def __init__(self, terminal: TextIO, log: TextIO) -> None:
        self._terminal, self.log = terminal, _Log(log)

    def write(self, text: str) -> int:
        self.log.write(text)
        return self._terminal.write(text)

    def flush(self) -> None:
        self.log.flush()
        self._terminal.flush()

    def fileno(self) -> int:
        return self._terminal.fileno()


@contextmanager
def job(log: str) -> Iterator[None]:
    """Copies standard error to the file `log`; prints an error that users can remedy on one line and exits."""
    die_with_parent(signal.SIGTERM)
    # A job is short and has memory: looking for garbage as often as Python does takes a seventh of the time of figures.
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    path, terminal = Path(log), sys.stderr
    with as_one_line(), _opened(path) as file:
        sys.stderr = Screen(_Tee(terminal, file))
        try:
            with as_one_line():
                yield
        finally:
            sys.stderr = terminal


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Opens a log for writing, and closes it even if its last lines cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("w", encoding="utf-8")
    try:
        yield file
    finally:
        with suppress(OSError):
            file.close()
