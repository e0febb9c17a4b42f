"""A change of the sources against its base: every variant whose machine code differs duels with itself.

Controls, variants that are the same on both sides, duel first and last: if one moves, the machine did, and nothing that
was found in between is said of the change.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warplog.analysis.verdicts import FASTER, SAME, SLOWER
from warplog.catalog.family import Family
from warplog.core.errors import WarplogError, say
from warplog.core.schema import suggest
from warplog.duel import making, sides
from warplog.duel.making import Target
from warplog.duel.match import Options, duel
from warplog.duel.sides import Corner, families_at, families_of, why_other_work
from warplog.duel.sources import Tree
from warplog.machine import device
from warplog.measure.building.launcher import launcher_source
from warplog.records.campaign import Gpu
from warplog.records.requested.duel import Duel, Judged
from warplog.records.requested.gate import CaseWord, ChangeWord, Gate, GateCase

_CONTROLS = 2
_UNJUDGED = ("unclear", "no verdict", "not measured")

Fight = Callable[[Sequence[Corner], Options, Path], Duel]


@dataclass(frozen=True)
class GateOptions:
    """What a gate looks at.

    Attributes:
        cases: names of timed cases; empty for the headline case of each family.
        minutes: after which no further duel starts.
        seconds, margin: of a duel.
    """

    cases: tuple[str, ...] = ()
    minutes: float = 30.0
    seconds: float = 9.0
    margin: float = 0.005


@dataclass
class Found:
    """The variants of both sides.

    Attributes:
        base, head: as the command line names them; head is "" for the working tree.
        commits: of base and head; "" for the working tree.
        pairs: variants that may differ.
        same: those whose sources and options are equal.
        added, removed: those that one side lacks.
    """

    base: str
    head: str
    commits: tuple[str, str]
    pairs: list[tuple[Corner, Corner]] = field(default_factory=list)
    same: list[tuple[Corner, Corner]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def compared(base: str, head: str, project: Path, only: Sequence[str] = ()) -> Found:
    """Returns the variants of both sides, without drafts.

    Args:
        base, head: commits; head is "" for the working tree.
        project: the project.
        only: names of families; empty for all.

    Raises:
        WarplogError: There is no such commit, a family is invalid, or there is no family of a name in `only`.
    """
    before_tree, before = families_at(base, project)
    tree, after = families_at(head, project) if head else (Tree(project), families_of(project))
    return differences((base, head), (before_tree.commit, tree.commit), (before, after), only)


def differences(
    names: tuple[str, str],
    commits: tuple[str, str],
    families: tuple[Mapping[str, Family], Mapping[str, Family]],
    only: Sequence[str],
    packed: Path | None = None,
) -> Found:
    """Returns the variants of both sides; see `compared`.

    Args:
        names, commits, families: of base and head.
        only: names of families; empty for all.
        packed: folder with the builds of a pack.

    Raises:
        WarplogError: There is no family of a name in `only`.
    """
    base, head = names
    before, after = families
    if unknown := [name for name in only if name not in after]:
        raise WarplogError(f"no family {unknown[0]!r}; {suggest(unknown[0], after)}")
    found = Found(base, head, commits)
    for name in only or dict.fromkeys((*after, *before)):
        own, former = (
            {v.name: v for v in side[name].variants if not v.draft} if name in side else {}
            for side in (after, before)
        )
        found.added += [f"{name}/{one}" for one in own if one not in former]
        found.removed += [f"{name}/{one}" for one in former if one not in own]
        for one in (one for one in own if one in former):
            a = Corner(f"{base}:{name}/{one}", before[name], former[one], commits[0], packed)
            b = Corner(f"{head}:{name}/{one}".lstrip(":"), after[name], own[one], commits[1], packed)
            if _sources(a) == _sources(b):
                found.same.append((a, b))
            else:
                found.pairs.append((a, b))
    return found


def gate(found: Found, options: GateOptions, project: Path, fight: Fight = duel) -> Gate:
    """Returns the verdict on a change.

    Raises:
        WarplogError: There is no GPU, or a tool is missing.
    """
    begin = time.monotonic()
    boards = device.boards()
    if found.pairs and not boards:
        raise WarplogError(f"no GPU: {device.why_not()}; run on a machine with a GPU")
    changed, controls = chosen(found, boards[0], project) if found.pairs else ([], [])
    planned = [(a, b, case, True) for a, b, case in controls[:1]]
    planned += [(a, b, case, False) for a, b in changed for case in _cases(b, options)]
    planned += [(a, b, case, True) for a, b, case in controls[1:]]
    cases: list[GateCase] = []
    for a, b, case, control in planned:
        left = begin + 60 * options.minutes - time.monotonic()
        one = _case(a, b, case, options, project, fight if left > 0 else None)
        cases.append(_as_case((a, b), case, one, options.margin, control))
        say(f"  gate    {b.family.name}/{b.variant.name} {case}: {cases[-1].word}")
    return Gate(
        base=found.base,
        head=found.head,
        base_commit=found.commits[0],
        head_commit=found.commits[1],
        margin=options.margin,
        word=word_of(cases),
        unchanged=len(found.same) + len(found.pairs) - len(changed),
        added=tuple(found.added),
        removed=tuple(found.removed),
        cases=tuple(cases),
        seconds=time.monotonic() - begin,
    )


def chosen(
    found: Found, gpu: Gpu | Target, project: Path
) -> tuple[list[tuple[Corner, Corner]], list[tuple[Corner, Corner, str]]]:
    """Builds the variants that may differ; returns those that do, and the controls, each with its case.

    Raises:
        WarplogError: A tool is missing.
    """
    changed = [pair for pair in found.pairs if not _same_code(pair, gpu, project)]
    return changed, _controls(found.same, {a.family.name for a, _ in changed}) if changed else []


def _sources(corner: Corner) -> tuple[str, str]:
    launcher = "" if corner.variant.is_python else launcher_source(corner.family, corner.variant)
    return corner.variant.fingerprint(), launcher


def _same_code(pair: Sequence[Corner], gpu: Gpu | Target, project: Path) -> bool:
    return making.same_code(*(making.make(corner, gpu, project) for corner in pair))


def _cases(corner: Corner, options: GateOptions) -> list[str]:
    """Returns the named cases that a variant supports, by default the headline case, else its first one.

    If there is none, returns one that it does not support, so that it is listed as not measured.
    """
    family, requires = corner.family, corner.variant.requires
    named = options.cases or (family.headline_case,)
    fitting = [name for name, case in family.cases.items() if not requires.why_not_case(case)]
    chosen = [name for name in named if name in fitting]
    return chosen or ([] if options.cases else fitting[:1]) or [named[0]]


def _controls(same: Sequence[tuple[Corner, Corner]], changed: set[str]) -> list[tuple[Corner, Corner, str]]:
    """Returns unchanged variants, each at its headline case, those of the changed families first."""
    fitting = [
        (a, b, case) for a, b in same for case in _cases(b, GateOptions()) if not why_other_work(a, b, case)
    ]
    return sorted(fitting, key=lambda one: one[0].family.name not in changed)[:_CONTROLS]


def _case(
    a: Corner, b: Corner, case: str, options: GateOptions, project: Path, fight: Fight | None
) -> Duel | str:
    """Returns the duel at one case, or why there is none."""
    if why := why_other_work(a, b, case):
        return why
    if fight is None:
        return f"{options.minutes:g} minutes are over"
    return fight((a, b), Options(case, options.seconds, options.margin, sustained=False), project)


def _as_case(
    pair: tuple[Corner, Corner], case: str, found: Duel | str, margin: float, control: bool
) -> GateCase:
    word, reason = case_word(found, margin)
    return GateCase(
        family=pair[1].family.name,
        variant=pair[1].variant.name,
        case=case,
        control=control,
        word=word,
        differs=sides.differences(*pair),
        reason=reason,
        duel=None if isinstance(found, str) else found,
    )


def case_word(found: Duel | str, margin: float) -> tuple[CaseWord, str]:
    """Returns the word of a case, and why it is not a clear one."""
    if isinstance(found, str):
        return "not measured", found
    if found.status != "ok":
        return "no verdict", f"{found.status}: {found.reason}"
    judged: Judged = found.judged[0]
    time_, cycles = judged.time, judged.cycles
    within = max(time_.ratio, 1 / time_.ratio) <= 1 + margin
    if time_.word == SAME or (time_.word in (FASTER, SLOWER) and within):
        return "same", ""
    if time_.word not in (FASTER, SLOWER):
        return "unclear", "the interval exceeds the margin"
    if cycles is not None and cycles.word != time_.word:
        return "unclear", "not in cycles: the clock differed"
    return ("gain" if time_.word == FASTER else "loss"), ""


def word_of(cases: Sequence[GateCase]) -> ChangeWord:
    """Returns the verdict on the change: that of its worst case, unless a control has moved."""
    words = {one.word for one in cases if not one.control}
    if any(one.control and one.word in ("gain", "loss") for one in cases):
        return "machine"
    if not words:
        return "nothing to measure"
    if "loss" in words:
        return "loss"
    if words & set(_UNJUDGED):
        return "not enough data"
    return "gain" if "gain" in words else "same"
