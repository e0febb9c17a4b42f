"""The end of a search: settings that its times do not tell apart duel; the winner is the one that none of them beats.

A duel resolves what the times of a search do not; the function is given, since `warplog.duel` is of a higher layer.
Each finished duel is kept in a file until the search is complete: one that was interrupted repeats none.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from msgspec import structs

from warplog.analysis.noise import ASSUMED
from warplog.analysis.verdicts import FASTER, SAME, SLOWER, Timed, judge
from warplog.catalog.space import name_of
from warplog.core.errors import say
from warplog.core.numbers import signed_percent
from warplog.measure.job import Job
from warplog.measure.tuning.search import Finding, Search
from warplog.records import door
from warplog.records.requested.duel import Duel, Ratio, Word
from warplog.records.requested.tune import FinalDuel

MOST = 4
Fight = Callable[[Job[Any], Job[Any], str], Duel]  # the duel of two builds at a case


@dataclass(frozen=True)
class Decision:
    """Which setting wins, and why.

    Attributes:
        ranking: settings with a time, the winner first.
        finalists: those that the times of the search do not tell from the best one, which comes first.
        duels: between them.
        no_duel: why these did not decide, as in the record.
    """

    ranking: Sequence[Finding]
    finalists: Sequence[Finding] = ()
    duels: tuple[FinalDuel, ...] = ()
    no_duel: Literal["", "one_finalist", "no_verdict", "no_time"] = ""


def decide(search: Search, fight: Fight) -> Decision:
    """Lets the finalists duel: each with the leader, and one that beats it leads from then on.

    Without a verdict on one of them, the pick of the search wins.

    Raises:
        WarplogError: A tool is missing or fails, or a file cannot be written.
    """
    ranking = search.ranking()
    finalists = finalists_of(ranking)
    if len(finalists) < 2:
        return Decision(ranking, finalists, no_duel="one_finalist" if finalists else "no_time")
    search.builds.make([finding.setting for finding in finalists])
    duels: list[FinalDuel] = []
    (leader, *waiting), held = finalists, list[Finding]()
    while waiting:
        challenger = waiting.pop(0)
        duels.append(_final_duel(search, leader, challenger, fight))
        if duels[-1].status != "ok":
            return Decision(ranking, finalists, tuple(duels), "no_verdict")
        if duels[-1].word == FASTER:
            waiting, leader, held = held + waiting, challenger, []
        else:
            held.append(challenger)
    others = [finding for finding in ranking if finding is not leader]
    return Decision([leader, *others], finalists, tuple(duels))


def finalists_of(ranking: Sequence[Finding]) -> list[Finding]:
    """Returns the best setting and those that are not clearly slower, best first, at most MOST.

    If there was a final, only settings that took part.
    """
    pool = [finding for finding in ranking if finding.final] or list(ranking)
    return [one for one in pool if judge(_timed(pool[0]), _timed(one)).word != SLOWER][:MOST]


def _timed(finding: Finding) -> Timed:
    return ASSUMED.timed([[finding.score_us or math.inf]])


def _final_duel(search: Search, leader: Finding, challenger: Finding, fight: Fight) -> FinalDuel:
    names = name_of(leader.setting), name_of(challenger.setting)
    folder = search.job.scratch / "duels" / search.task.fingerprint()[:16]
    cases: list[Duel] = []
    for number, case in enumerate(search.work.cases):
        file = folder / f"{'.'.join(names)}.{number}.json"
        if not file.is_file():
            a, b = (_job(search, finding) for finding in (leader, challenger))
            door.write(file, fight(a, b, case))
        cases.append(door.read(file, Duel))
        if cases[-1].status != "ok":
            break
    bad = cases[-1] if cases[-1].status != "ok" else None
    word, ratio, low, high = (None,) * 4 if bad else _mean([one.judged[0].time for one in cases])
    shown = bad.reason if bad else f"{word}  {signed_percent(ratio or 1.0)}"
    variant = f"{search.job.family.name}/{search.job.variant.name}"
    say(f"  tune    {variant}  duel  {names[1]} against {names[0]}  {shown}")
    return FinalDuel(
        leader=names[0],
        challenger=names[1],
        status=bad.status if bad else "ok",
        reason=bad.reason if bad else "",
        word=word,
        ratio=ratio,
        low=low,
        high=high,
        cases=tuple(cases),
    )


def _job(search: Search, finding: Finding) -> Job[Any]:
    parameters = search.builds.space.parameters(finding.setting)
    variant = structs.replace(search.job.variant, parameters=parameters)
    return replace(search.job, variant=variant, build_folder=search.builds.place(finding.setting))


def _mean(ratios: Sequence[Ratio]) -> tuple[Word, float, float, float]:
    """Returns word, ratio and interval of the geometric mean of ratios; of a single one, its own.

    The ends of the interval are the means of theirs, which is wider than it had to be if noise were independent.
    """
    logs = zip(*((math.log(one.ratio), math.log(one.low), math.log(one.high)) for one in ratios), strict=True)
    ratio, low, high = (math.exp(fmean(ends)) for ends in logs)
    if high < 1 or low > 1:
        return "FASTER" if high < 1 else "SLOWER", ratio, low, high
    return "SAME" if all(one.word == SAME for one in ratios) else "AMBIGUOUS", ratio, low, high
