"""The record of a duel in words: one line per regime, and what to know of it; that of a bisection."""

import collections
from collections.abc import Iterator, Sequence

from warplog.analysis.verdicts import AMBIGUOUS, Verdict
from warplog.core.numbers import signed_percent
from warplog.core.text import join_notes
from warplog.duel.evidence import TURNS, UNCONFIRMED
from warplog.duel.watch import Saved
from warplog.metrics.kernels import short_name
from warplog.records.requested.bisect import Bisection, Commit, Step
from warplog.records.requested.duel import Counter, Duel, Judged, Ratio, Side

SHORT = 12  # digits of a commit
_MOST_NOT_BLOCKED = 0.01
_BARS, _MOST_BARS = "▁▂▃▄▅▆▇█", 40


def lines(duel: Duel) -> list[str]:
    """Returns the verdict of each regime in a line, or why there is none; notes follow, indented."""
    if duel.status != "ok":
        return [f"NO VERDICT  {duel.status}: {duel.reason}"]
    return [*(_verdict(duel, judged) for judged in duel.judged), *(f"  {note}" for note in _notes(duel))]


def step_line(step: Step) -> str:
    """Returns how a commit was judged."""
    return f"{_commit(step.commit)}: " + join_notes(step.word, step.reason, _in_time(step.duel))


def bisected(found: Bisection) -> str:
    """Returns the result of a bisection in a line."""
    where = f"{found.family}/{found.variant} {found.case}"
    last = found.steps[0].duel  # of GOOD and BAD
    spent = f"{found.commits} commits, {found.builds} builds, {found.seconds:.0f} s"
    suspects = ", ".join(map(_commit, found.suspects))
    if found.word == "none":
        what = join_notes(f"no regression of {where} between {found.good} and {found.bad}", _in_time(last))
    elif found.word == "found":
        what = f"{suspects}: {where} {_in_time(found.confirmed)}"
    else:
        what = join_notes(f"{where} {suspects}".rstrip(), found.reason, _in_time(found.confirmed or last))
    return f"{found.word.upper()}  {what}; {spent}"


def counted(counter: Counter) -> str:
    """Returns the name of a counter, and the kernel if it is that of one alone."""
    of = f" of kernel {counter.number}, {short_name(counter.kernel)}" if counter.number else ""
    return f"{counter.name}{of}"


def _commit(commit: Commit) -> str:
    return f"{commit.hash[:SHORT]} {commit.subject}".rstrip()


def _in_time(duel: Duel | None) -> str:
    return f"{_ratio(duel.judged[0].time)} in time" if duel and duel.judged else ""


def saved_line(saved: Saved, session: Sequence[float]) -> str:
    """Returns what became of a save, in a line with the times of all saves of the session."""
    took = f"compiled in {saved.compile_s:.1f} s" + (
        f", judged in {saved.duel_s:.1f} s" if saved.duel_s else ""
    )
    if saved.status == "ok":
        verdicts = (f"{one.word} against {name}: {_ratio(one)}" for name, one in saved.verdicts.items())
        found = f"{saved.us:.5g} us  {'; '.join(verdicts)}"
    else:
        found = f"{saved.status}: {saved.reason}"
    return f"{found}  ({took})  {sparkline(session)}"


def sparkline(session: Sequence[float]) -> str:
    """Draws the last times, the longest as the highest bar; x stands for a save without a time (0)."""
    shown = session[-_MOST_BARS:]
    times = [us for us in shown if us]
    lowest, span = min(times, default=0.0), (max(times, default=0.0) - min(times, default=0.0)) or 1.0
    return "".join(_BARS[int((len(_BARS) - 1) * (us - lowest) / span)] if us else "x" for us in shown)


def _verdict(duel: Duel, judged: Judged) -> str:
    who = f"{duel.b.name} against {duel.a.name}, {duel.a.family} {duel.case}"
    where = "at rest" if judged.regime == "rest" else "sustained"
    cycles = f", {_ratio(judged.cycles)} in cycles" if judged.cycles else ""
    spent = f"{len(judged.windows)} processes, {sum(window.seconds for window in judged.windows):.1f} s"
    times = f"{judged.a_us:.5g} to {judged.b_us:.5g} us"
    return f"{judged.time.word}  {who} {where}: {_ratio(judged.time)} in time{cycles}; {times}; {spent}"


def _ratio(ratio: Ratio | Verdict) -> str:
    return f"{signed_percent(ratio.ratio)} ({signed_percent(ratio.low)} to {signed_percent(ratio.high)})"


def _notes(duel: Duel) -> Iterator[str]:
    yield from _of_code(duel)
    for counter in duel.counters:
        yield f"{counted(counter)}: {counter.a:.6g} to {counter.b:.6g}" + (
            f" ({signed_percent(counter.b / counter.a)})" if counter.a else ""
        )
    if duel.no_counters:
        yield f"no counters: {duel.no_counters}"
    if duel.apart:
        yield f"in alternating processes, with arrays of their own: {duel.apart}"
    elif not duel.same_arrays:
        yield "with arrays of their own, since these are in different kinds of memory"
    for judged in duel.judged:
        yield from _of_regime(judged)


def _of_code(duel: Duel) -> Iterator[str]:
    if duel.a.library_sha256 and duel.a.library_sha256 == duel.b.library_sha256:
        yield "both libraries are equal, byte by byte"
    elif duel.a.sass_sha256 and duel.a.sass_sha256 == duel.b.sass_sha256:
        yield "the machine code of the kernels is the same"
    if "compiler" in duel.differs:
        yield f"nvcc: {duel.a.nvcc} to {duel.b.nvcc}"
    for name, before, after in (
        ("registers per thread", _registers(duel.a), _registers(duel.b)),
        ("machine instructions", str(duel.a.sass), str(duel.b.sass)),
    ):
        if before != after:
            yield f"{name}: {before} to {after}"


def _of_regime(judged: Judged) -> Iterator[str]:
    windows, regime = judged.windows, judged.regime
    if step_us := max(window.step_us for window in windows):
        share, left = 100 * step_us / judged.a_us, 100 * judged.resolution
        yield f"{regime}: the clock's step of {step_us:.3g} us is {share:.2g} % of a launch, {left:.2g} % of their mean"
    if any(window.held for window in windows):
        yield f"{regime}: a limit held the SM clock down in spite of pauses"
    elif discarded := sum(window.discarded for window in windows):
        yield f"{regime}: {discarded} blocks were discarded, since a limit held the SM clock down"
    turns = TURNS * sum(window.blocks for window in windows)
    if sum(window.not_blocked for window in windows) > _MOST_NOT_BLOCKED * turns:
        yield f"{regime}: launches were not queued before they started, so that host time counts"
    if judged.time.reason == UNCONFIRMED:
        yield f"{regime}: a further process shows another ratio than those before it"
    if judged.time.word == AMBIGUOUS:
        yield f"{regime}: more --seconds, and so more processes, narrow the interval"


def _registers(side: Side) -> str:
    counts = collections.Counter(count for _, count in side.registers)
    return ", ".join(f"{count}" if times == 1 else f"{times} x {count}" for count, times in counts.items())
