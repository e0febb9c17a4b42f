"""A summary in words: for the terminal, and as results/summary.md."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.numbers import percent_digits, rate_digits, signed_percent
from warplog.core.text import Table, escape_markdown, listed, markdown_table, one_line
from warplog.judge.summary.rows import DENIED, DISAGREE, FamilyResult, Summary, Trouble, VariantResult
from warplog.judge.summary.stage_results import StageResults

# One line for all variants: what they lack is not their fault, and the same for all of them.
_FOLDED = ("unsupported", "missing", "skipped", DENIED)
_MOST_LINES = 8  # of one kind on the terminal
_MOST_REASON = 110


def lines(summary: Summary, base: Path = Path()) -> list[str]:
    """Returns the lines for the end of a run: a heading, a line per family, and what is not ok.

    `base` is the path to the folder of the project.
    """
    rows = [_family_cells(family) for family in summary.families]
    head = f"{_head(summary)}; the fastest variant of each family, besides its baseline:"
    return [one_line(head), *_aligned(rows), *trouble_lines(summary.troubles, base)]


def stage_result_lines(results: StageResults, base: Path = Path()) -> list[str]:
    """Returns the lines for the end of a run without a summary: how far each stage is, and what is not ok so far."""
    words = {
        "build": "compiled",
        "check": "checked",
        "time": "timed",
        "ncu": "captured",
        "sanitize": "sanitized",
    }
    done = [f"{results.done[stage]} {word}" for stage, word in words.items() if results.done.get(stage)]
    head = f"of {results.variants} variant{'' if results.variants == 1 else 's'}: {', '.join(done) or 'none compiled'}"
    return [head, *trouble_lines(results.troubles, base)]


def trouble_lines(troubles: Iterable[Trouble], base: Path = Path()) -> list[str]:
    """Returns a line per thing that is not ok, with its reason and log; what variants lack is one line for all."""
    lines = []
    ordered = sorted(
        troubles, key=lambda trouble: (trouble.code in _FOLDED, trouble.code == DISAGREE, trouble.code)
    )
    for code, group in groupby(ordered, key=lambda trouble: trouble.code):
        same = list(group)
        if code in _FOLDED:
            lines.append(f"  {words(code)}: {_counted(same)} ({_short(same[0].reason)})")
            continue
        cells = [
            (
                f"  {words(code)}",
                f"{trouble.family}/{trouble.variant}",
                " ".join(filter(None, (trouble.case, _short(trouble.reason)))),
            )
            for trouble in same[:_MOST_LINES]
        ]
        for trouble, line in zip(same, _aligned(cells), strict=False):
            lines += [line, *([f"      {base / trouble.log}"] if trouble.log else [])]
        if more := len(same) - _MOST_LINES:
            lines += [f"  {words(code)}: {more} more in summary.md"] if more > 0 else []
    return lines


def markdown(summary: Summary) -> str:
    """Returns results/summary.md: what is not ok, and a table per family with the result of every variant."""
    parts = [f"# {escape_markdown(_head(summary))}", "[The pages of all families](index.html)"]
    if summary.troubles:
        parts += ["## Not ok", "\n".join(markdown_table(trouble_table(summary)))]
    for family in summary.families:
        parts += [f"## {family.family}", escape_markdown(f"{family.title}, at {family.case}.")]
        parts.append("\n".join(markdown_table(_table(family))))
    return "\n\n".join(parts) + "\n"


def refuse(troubles: Iterable[Trouble]) -> None:
    """Does nothing if no variant failed.

    Raises:
        WarplogError: Variants failed; the text names them.
    """
    failures = (trouble for trouble in troubles if trouble.is_failure)
    failed = dict.fromkeys(
        f"{trouble.family}/{trouble.variant} ({words(trouble.code)})" for trouble in failures
    )
    if failed:
        raise WarplogError(f"strict: not ok: {listed(list(failed))}")


def trouble_table(summary: Summary) -> Table:
    """Returns everything that is not ok as a table."""
    rows = tuple(
        (
            words(trouble.code),
            f"{trouble.family}/{trouble.variant}",
            trouble.stage,
            trouble.case,
            trouble.reason,
            trouble.log,
        )
        for trouble in summary.troubles
    )
    return Table(("what", "variant", "stage", "case", "reason", "log"), rows)


def speed(family: FamilyResult, variant: VariantResult) -> str:
    """Returns the speed of a variant with its unit, its time for a family without FLOPs and bytes, or ""."""
    if variant.rate is not None:
        return f"{rate_digits(variant.rate)} {family.rate_unit}"
    return f"{_microseconds(variant)} us" if variant.median_us else ""


def share(variant: VariantResult) -> str:
    """Returns the speed in percent of the baseline's; "" without one."""
    return percent_digits(variant.ratio_to_baseline) if variant.ratio_to_baseline else ""


def words(code: str) -> str:
    """Returns the name of a kind of trouble: "compile error"."""
    return "times disagree" if code == DISAGREE else code.replace("_", " ")


def _microseconds(variant: VariantResult) -> str:
    us = variant.median_us
    return f"{us:.4g}" if us and us < 1000 else f"{us:.0f}" if us else ""


def _head(summary: Summary) -> str:
    return f"{summary.campaign}, {summary.origin} on {summary.gpu_name}"


def _family_cells(family: FamilyResult) -> tuple[str, ...]:
    best, count = family.fastest, len(family.variants)
    head = (f"  {family.family}", f"{family.ok} of {count} ok")
    if best is None:
        return (*head, "no times", "", "", "")
    if best.variant == family.baseline:
        of_baseline = "the baseline"
    else:
        of_baseline = f"{share(best)} % of {family.baseline}" if share(best) else ""
    return (*head, best.variant, speed(family, best), of_baseline, f"at {family.case}{_moves(family)}")


def _moves(family: FamilyResult) -> str:
    """Returns what moved, the largest change first, as change of the speed."""
    ordered = sorted(family.moved, key=lambda move: abs(move.speedup - 1), reverse=True)
    shown = [f"{move.variant} {signed_percent(move.speedup)}" for move in ordered[:2]]
    more = [f"{len(ordered) - 2} more"] if len(ordered) > 2 else []
    return f"; changed since the last run: {listed([*shown, *more])}" if shown else ""


def _table(family: FamilyResult) -> Table:
    moved = {move.variant: signed_percent(move.speedup) for move in family.moved}
    rows = tuple(
        (
            variant.variant,
            words(variant.status),
            _microseconds(variant),
            speed(family, variant),
            share(variant),
            moved.get(variant.variant, ""),
            variant.reason,
        )
        for variant in family.variants
    )
    titles = (
        "variant",
        "status",
        "time, us",
        "speed",
        f"% of {family.baseline or 'the baseline'}",
        "since the last run",
        "note",
    )
    return Table(titles, rows, frozenset({2, 3, 4, 5}))


def _counted(troubles: Sequence[Trouble]) -> str:
    """Returns how many variants of which families: "3 of sgemm, 1 of scan"."""
    ordered = sorted({(trouble.family, trouble.variant) for trouble in troubles})
    groups = [(family, len(list(group))) for family, group in groupby(ordered, key=lambda pair: pair[0])]
    return ", ".join(f"{count} of {family}" for family, count in groups)


def _short(reason: str) -> str:
    text = one_line(reason)
    return text if len(text) <= _MOST_REASON else f"{text[: _MOST_REASON - 3]}..."


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the rows as lines whose columns are as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
