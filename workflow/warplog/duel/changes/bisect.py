"""The first commit that made a case slower: a binary search in which each decision is a clear duel against GOOD."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from warplog.core.errors import WarplogError, say
from warplog.duel import making
from warplog.duel.changes.gate import Fight, case_word, compared
from warplog.duel.making import Made
from warplog.duel.match import Options, duel
from warplog.duel.sides import Corner, families_at, why_other_work
from warplog.duel.words import SHORT, step_line
from warplog.machine import device
from warplog.records.campaign import Gpu
from warplog.records.requested.bisect import Bisection, Commit, Step


def only_variant(good: str, bad: str, project: Path) -> str:
    """Returns the one variant whose sources differ.

    Raises:
        WarplogError: None differs, or several do.
    """
    names = [f"{b.family.name}/{b.variant.name}" for _, b in compared(good, bad, project).pairs]
    if len(names) != 1:
        differ = f"{len(names)} variants differ ({', '.join(names)})" if names else "no variant differs"
        raise WarplogError(f"{differ} between {good} and {bad}; name one with --variant")
    return names[0]


def corner_at(ref: str, variant: str, project: Path) -> Corner:
    """Returns a variant, FAMILY/VARIANT, at a commit.

    Raises:
        WarplogError: It is not there.
    """
    tree, families = families_at(ref, project)
    name, _, own = variant.partition("/")
    if name not in families or own not in [one.name for one in families[name].variants]:
        raise WarplogError(f"{ref}: no variant {variant!r}")
    return Corner(f"{ref}:{variant}", families[name], families[name].variant(own), tree.commit)


def bisect(
    good: Corner,
    refs: tuple[str, str],
    commits: Sequence[Commit],
    options: Options,
    project: Path,
    fight: Fight = duel,
) -> Bisection:
    """Returns which commit made a case of a variant slower.

    Args:
        good: the variant at GOOD.
        refs: GOOD and BAD, as the command line names them.
        commits: those after GOOD up to BAD, oldest first.

    Raises:
        WarplogError: GOOD does not compile, there is no GPU, or a tool is missing.
    """
    begin = time.monotonic()
    boards = device.boards()
    if not boards:
        raise WarplogError(f"no GPU: {device.why_not()}; run on a machine with a GPU")
    search = _Search(good, commits, options, boards[0], project, fight)
    last, reason, confirmed = search.judge(len(search.commits) - 1), "", None
    suspects: Sequence[Commit] = ()
    if last.word == "stepped around":
        reason = f"{refs[1]}: {last.reason}"
    elif last.word == "bad":
        low, high = search.ends()
        suspects = search.commits[low + 1 : high + 1]
        if len(suspects) > 1:
            reason = "the commits before the last of these have no clear verdict"
        else:
            confirmed = fight((search.corner(low), search.corner(high)), options, project)
            word, why = case_word(confirmed, options.margin)
            reason = "" if word == "loss" else f"not confirmed against the commit before it: {why or word}"
    return Bisection(
        good=refs[0],
        bad=refs[1],
        family=good.family.name,
        variant=good.variant.name,
        case=options.case,
        margin=options.margin,
        commits=len(search.commits),
        builds=len({made.file.parent for made in search.made}),
        word="unclear" if reason else "found" if suspects else "none",
        suspects=tuple(suspects),
        reason=reason,
        steps=tuple(search.steps),
        confirmed=confirmed,
        seconds=time.monotonic() - begin,
    )


@dataclass
class _Search:
    """What is known of the commits after GOOD.

    Attributes:
        made: the builds, GOOD's first.
        known: the builds with a clear verdict, each with the first step that found it.
    """

    good: Corner
    commits: Sequence[Commit]
    options: Options
    gpu: Gpu
    project: Path
    fight: Fight
    steps: list[Step] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    known: list[tuple[Made, Step]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Builds GOOD.

        Raises:
            WarplogError: It does not compile.
        """
        made = making.make(self.good, self.gpu, self.project)
        if why := made.why_not():
            raise WarplogError(f"{self.good.name}: {why}")
        commit = Commit(hash=self.good.commit, subject="")
        self.made, self.known = [made], [(made, Step(commit=commit, word="good"))]

    def corner(self, place: int) -> Corner:
        """Returns the variant at a commit; the one before the first is GOOD."""
        name = f"{self.good.family.name}/{self.good.variant.name}"
        return corner_at(self.commits[place].hash, name, self.project) if place >= 0 else self.good

    def ends(self) -> tuple[int, int]:
        """Returns the last good commit and the first bad one, where the last of all is bad."""
        low, high, around = -1, len(self.commits) - 1, set[int]()
        while left := [place for place in range(low + 1, high) if place not in around]:
            place = left[len(left) // 2]
            match self.judge(place).word:
                case "good":
                    low = place
                case "bad":
                    high = place
                case _:
                    around.add(place)
        return low, high

    def judge(self, place: int) -> Step:
        """Judges a commit against GOOD."""
        step = self._step(place)
        self.steps.append(step)
        say(f"  bisect  {step_line(step)}")
        return step

    def _step(self, place: int) -> Step:
        commit = self.commits[place]
        try:
            corner = self.corner(place)
        except WarplogError as error:
            return Step(commit=commit, word="stepped around", reason=str(error))
        if why := why_other_work(self.good, corner, self.options.case):
            return Step(commit=commit, word="stepped around", reason=why)
        made = making.make(corner, self.gpu, self.project)
        self.made.append(made)
        if why := made.why_not():
            return Step(commit=commit, word="stepped around", reason=why)
        for other, judged in self.known:
            if making.same_code(made, other):
                reason = f"the machine code is that of {judged.commit.hash[:SHORT]}"
                return Step(commit=commit, word=judged.word, reason=reason)
        found = self.fight((self.good, corner), replace(self.options, counters=False), self.project)
        word, why = case_word(found, self.options.margin)
        if word not in ("gain", "same", "loss"):
            return Step(commit=commit, word="stepped around", reason=why, duel=found)
        step = Step(commit=commit, word="bad" if word == "loss" else "good", duel=found)
        self.known.append((made, step))
        return step
