"""What a run says at its end: the stored summary if it is of this run, else what the records say so far."""

import time
from collections.abc import Collection, Iterable
from pathlib import Path

from warplog.core.errors import WarplogError, say
from warplog.judge.summary import shown
from warplog.judge.summary.rows import Summary
from warplog.plan.plan import Plan


def show(plans: Iterable[Plan], wanted: Collection[str], missing: Collection[str]) -> None:
    """Prints the result of each campaign.

    Args:
        plans: the plans of the campaigns.
        wanted: the files that the run was to make, or that were there already.
        missing: those of them that it did not make.
    """
    for plan in plans:
        rows = plan.results / "summary.json"
        try:
            lines = _lines(plan, rows, str(rows) in wanted and str(rows) not in missing, bool(missing))
        except WarplogError as error:
            lines = [f"error: {error}"]
        for line in ("", *lines):
            say(line)


def _lines(plan: Plan, rows: Path, is_present: bool, stopped: bool) -> list[str]:
    if is_present:
        lines = shown.lines(Summary.read(rows))
        lines += ["the run did not come to its end: jobs failed, see above, or it was stopped"] if stopped else []
        page, table = rows.with_name("index.html"), rows.with_suffix(".md")
        return [*lines, f"open {page}; all variants: {table}"]
    lines = shown.known_lines(plan.known())
    if stopped:
        lines.append("the run did not come to its end: jobs failed, see above, or it was stopped")
    if rows.is_file():
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(rows.stat().st_mtime))
        lines.append(f"{rows.with_name('index.html')} shows an earlier evaluation, of {made}")
    return lines
