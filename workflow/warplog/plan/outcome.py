"""What a run says at its end: the stored summary if it is of this run, else what the records say so far."""

import contextlib
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from warplog.core import locks, paths
from warplog.core.errors import WarplogError, say
from warplog.judge.summary import shown
from warplog.judge.summary.rows import Summary
from warplog.plan.files import Files
from warplog.plan.plan import Plan
from warplog.records import door

_STOPPED = "the run did not come to its end: jobs failed, see above, or it was stopped"


def show(workflow: Any, plan: Plan, folder: Path) -> None:
    """Prints the result of the campaign, unless Snakemake was asked for something else than a run.

    `workflow` is Snakemake's object, `folder` that of the project, which Snakemake has left with --directory. A run
    that could not start, since another one works in the folder, says nothing.
    """
    is_run = workflow.scheduler and not workflow.dryrun and not workflow.touch
    if not (workflow.is_main_process and is_run):
        return
    left = {file for job in workflow.dag.needrun_jobs() for file in job.output}
    if left and not locks.holds_folder():
        return
    present = {file for job in workflow.dag.jobs for file in job.output} - left
    base = Path(os.path.relpath(folder))
    with contextlib.chdir(folder):
        try:
            stopped = any(Path(file).name != ".strict" for file in left)  # its failure is said by itself
            lines = _lines(plan, base, present, stopped)
        except WarplogError as error:
            lines = [f"error: {error}"]
        for line in ("", *lines):
            say(line)


def _lines(plan: Plan, base: Path, present: Collection[str], stopped: bool) -> list[str]:
    rows = paths.RESULTS / "summary.json"
    page, table = base / paths.RESULTS / "index.html", base / paths.RESULTS / "summary.md"
    if _is_present(rows, paths.RESULTS / "tables" / "variants.parquet", present):
        lines = shown.lines(door.read(rows, Summary), base)
        lines += [_STOPPED] if stopped else []
        return [*lines, f"open {page}; all variants: {table}"]
    lines = shown.stage_result_lines(Files(plan).stage_results(), base)
    if stopped:
        lines.append(_STOPPED)
    if (former := paths.RESULTS / "index.html").is_file():
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(former.stat().st_mtime))
        lines.append(f"{page} shows an earlier evaluation, of {made}")
    return lines


def _is_present(rows: Path, table: Path, present: Collection[str]) -> bool:
    """Returns whether a summary is that of the present tables; a run of one stage may have made these only."""
    if not rows.is_file() or str(table) not in present:
        return False
    return str(rows) in present or rows.stat().st_mtime >= table.stat().st_mtime
