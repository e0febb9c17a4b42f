"""What a run shows on the terminal: one line per stage and family; Snakemake finds this plugin by its name.

Snakemake's own log is in .snakemake/log/; `--verbose` shows it on the terminal too.

    [12/57]  time     sgemm             41.2 s   about 6 min left
"""

import logging
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

# What the workflow itself logs: a message for the user, and the steps of the run.
MESSAGE, STEPS = "warplog_message", "warplog_steps"
_OTHER_SECONDS = 3
_FIRST_ESTIMATE_S = 5
_TAIL_LINES = 10
# What Snakemake says besides the line on a failed job, its log, and what the job itself printed.
_REPEATED = (
    "At least one job did not complete",
    "Exiting because a job execution failed",
    "CalledProcessError in",
)
# Before the first job; from then on, all of it.
_NOISE = (
    *("Config file", "Assuming unrestricted", "Building DAG", "Using shell", "Provided ", "Group jobs:"),
    *("Singularity containers:", "Conda environments:"),
)

Step = tuple[str, str]  # word of the stage, and family


@dataclass
class Job:
    """A job that was started: its step, its weight, and when it started, in seconds since the epoch."""

    step: Step
    weight: float
    start_s: float


class Progress:
    """The steps of a run; a step is finished when all of its jobs are."""

    def __init__(self, jobs: list[tuple[str, str]]) -> None:
        """Takes rule and family of every job of the run."""
        self._open = Counter(step(*job) for job in jobs)
        self._steps, self._weight = len(self._open), sum(weight(rule) for rule, _ in jobs)
        self._running: dict[int, Job] = {}
        self._first_s: dict[Step, float] = {}
        self._done_weight, self._start_s = 0.0, 0.0

    def start(self, number: int, rule: str, family: str, now_s: float) -> None:
        """Notes that a job was started."""
        self._start_s = self._start_s or now_s
        self._running[number] = Job(step(rule, family), weight(rule), now_s)

    def finish(self, number: int, now_s: float) -> str:
        """Returns the line to show after a job: "" as long as its step has further jobs, or if it is none of a step."""
        job = self._running.pop(number, None)
        if job is None or not self._open[job.step]:
            return ""
        self._done_weight += job.weight
        self._open[job.step] -= 1
        begun_s = self._first_s.setdefault(job.step, job.start_s)
        if self._open[job.step]:
            return ""
        return self._line(job.step, f"{now_s - begun_s:7.1f} s{self._left(now_s)}")

    def fail(self, number: int, log: str) -> str:
        """Returns the line to show after a job failed."""
        job = self._running.pop(number, None)
        return self._line(job.step if job else ("", ""), f" failed   {log}".rstrip())

    def _line(self, step: Step, outcome: str) -> str:
        done = sum(not jobs for jobs in self._open.values())
        width = len(str(self._steps))
        return f"[{done:{width}}/{self._steps}]  {step[0]:8} {step[1]:16} {outcome}"

    def _left(self, now_s: float) -> str:
        elapsed_s = now_s - self._start_s
        if elapsed_s < _FIRST_ESTIMATE_S or self._done_weight >= self._weight:
            return ""
        return f"   about {duration(elapsed_s * (self._weight / self._done_weight - 1))} left"


def step(rule: str, family: str) -> Step:
    """Returns the step that a job belongs to."""
    from warplog.records.stages import BY_RULE

    return BY_RULE[rule].word if rule in BY_RULE else rule.replace("_", " "), family


def weight(rule: str) -> float:
    """Returns the seconds that a job of the rule takes, roughly."""
    from warplog.records.stages import BY_RULE

    return BY_RULE[rule].seconds if rule in BY_RULE else _OTHER_SECONDS


def duration(seconds: float) -> str:
    """Returns a rough duration in words: 40 s, 6 min, 2.5 h."""
    if seconds < 55:
        return f"{5 * max(1, round(seconds / 5))} s"
    return f"{max(1, round(seconds / 60))} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class LogHandler(LogHandlerBase):
    """Shows progress, warnings and errors; with --verbose and for dry runs what Snakemake shows."""

    writes_to_stream, writes_to_file = True, False
    has_filter, has_formatter = True, True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Prepares what Snakemake would show; called by the base class."""
        from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter
        from snakemake.settings.enums import Quietness

        common = self.common_settings
        quiet = set(common.quiet or ())
        self._silent = Quietness.ALL in quiet
        self._progress: Progress | None = None
        self._formatter = DefaultFormatter(quiet, common.show_failed_logs)
        self._own = not (common.verbose or common.dryrun or common.debug_dag or common.printshellcmds)
        if common.dryrun and not quiet and not common.verbose:
            quiet = {Quietness.HOST, Quietness.RULES}
        names = ("debug_dag", "verbose", "dryrun", "printshellcmds")
        self._snakemake = ColorizingTextHandler(
            nocolor=common.nocolor,
            stream=sys.stdout if common.stdout else sys.stderr,
            formatter=DefaultFormatter(quiet, common.show_failed_logs),
            filter=DefaultFilter(quiet, **{name: getattr(common, name) for name in names}),
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Shows what a record is for the user."""
        if not self._own:
            self._snakemake.handle(record)
        elif text := self._text(record, getattr(record, "event", None), vars(record)):
            print(text, file=sys.stderr, flush=True)

    def _text(self, record: logging.LogRecord, event: str | None, values: Mapping[str, Any]) -> str:
        if event == STEPS:
            self._progress = Progress(values["steps"])
            return ""
        if event == LogEvent.JOB_INFO and self._progress:
            family = values["wildcards"].get("family", "")
            self._progress.start(values["jobid"], values["rule_name"], family, record.created)
            return ""
        if event == LogEvent.JOB_FINISHED and self._progress:
            line = self._progress.finish(values["job_id"], record.created)
            return "" if self._silent else line
        if event == LogEvent.JOB_ERROR and self._progress:
            return "\n".join(
                [
                    self._progress.fail(values["jobid"], ", ".join(values["log"])),
                    *_tails(values["log"], not values["aux"]),
                ]
            )
        if any(text in str(record.msg) for text in _REPEATED):
            return ""
        if (
            record.levelno < logging.WARNING
            and event != MESSAGE
            and (self._silent or self._is_noise(record, event))
        ):
            return ""
        return self._formatter.format(record)

    def _is_noise(self, record: logging.LogRecord, event: str | None) -> bool:
        """Returns whether a message is about how Snakemake runs; what --unlock and the like answer is not."""
        return self._progress is not None or event is not None or str(record.msg).startswith(_NOISE)


def _tails(logs: list[str], is_local: bool) -> list[str]:
    """Returns the last lines of the logs of a failed job; a local one has printed its error itself."""
    tails = []
    for log in map(Path, logs):
        if log.is_file():
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            kept = [line for line in lines if not (is_local and line.startswith("error: "))]
            tails += [f"    {line}" for line in kept[-_TAIL_LINES:]]
    return tails
