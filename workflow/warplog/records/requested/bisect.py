"""Record of a bisection: which commit made a case of a variant slower, and how each commit was judged."""

from typing import Literal

from warplog.records.fields import CaseName, Count, Frozen, Name, Text
from warplog.records.requested.duel import Duel


class Commit(Frozen, frozen=True, kw_only=True):
    """A commit: its hash, and the first line of its message."""

    hash: Text
    subject: Text


class Step(Frozen, frozen=True, kw_only=True):
    """A commit against GOOD.

    Attributes:
        word: `bad` if it is slower by more than the margin; a commit without a clear verdict is stepped around.
        reason: why there was no duel, or no clear verdict; "" if a duel was clear.
    """

    commit: Commit
    word: Literal["good", "bad", "stepped around"]
    reason: Text = ""
    duel: Duel | None = None


class Bisection(Frozen, frozen=True, kw_only=True):
    """The first commit after GOOD that made a case slower.

    Attributes:
        good, bad: as the command line names them.
        commits: number of commits after GOOD up to BAD, along first parents.
        builds: number of different builds.
        word: `none` if BAD is not slower than GOOD.
        suspects: the commit that was found; several if those between could not be judged; none if there is none.
        reason: why no commit is named, although BAD is slower or could not be judged; else "".
        confirmed: the last duel, of the suspect with the commit before it.
    """

    schema: Literal[2] = 2
    good: Text
    bad: Text
    family: Name
    variant: Name
    case: CaseName
    margin: float
    commits: Count
    builds: Count
    word: Literal["found", "none", "unclear"]
    suspects: tuple[Commit, ...]
    reason: Text
    steps: tuple[Step, ...]
    confirmed: Duel | None
    seconds: float
