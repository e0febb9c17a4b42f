"""Record of a gate: what a change of the sources does to the time of each variant that it concerns."""

from collections.abc import Mapping
from typing import Literal

from warplog.records.fields import CaseName, Frozen, Name, Sha256, Text
from warplog.records.requested.duel import Difference, Duel

CaseWord = Literal["gain", "loss", "same", "unclear", "no verdict", "not measured"]
ChangeWord = Literal["gain", "loss", "same", "machine", "not enough data", "nothing to measure"]


class GateCase(Frozen, frozen=True, kw_only=True):
    """A variant against itself at the base, at one case.

    Attributes:
        control: whether nothing about the variant has changed, so that only the machine can move it.
        differs: what changed; empty for a control.
        reason: why there is no clear word; "" if there is one.
        duel: None if it was not measured.
    """

    family: Name
    variant: Name
    case: CaseName
    control: bool
    word: CaseWord
    differs: tuple[Difference, ...] = ()
    reason: Text = ""
    duel: Duel | None = None


class Gate(Frozen, frozen=True, kw_only=True):
    """The verdict on a change.

    Attributes:
        base, head: as the command line names them; head is "" for the working tree.
        base_commit, head_commit: their commits; "" for the working tree.
        margin: the relative gap up to which two times are the same.
        unchanged: number of variants whose machine code is that of the base.
        added, removed: variants that only head or only the base has.
    """

    schema: Literal[2] = 2
    base: Text
    head: Text
    base_commit: Text
    head_commit: Text
    margin: float
    word: ChangeWord
    unchanged: int
    added: tuple[Text, ...]
    removed: tuple[Text, ...]
    cases: tuple[GateCase, ...]
    seconds: float


class Pack(Frozen, frozen=True, kw_only=True):
    """What a gate needs where there is no repository.

    Attributes:
        base, head, base_commit, head_commit: as in `Gate`.
        families: those that are looked at; empty for all.
        sha256: of the other files, by path.
    """

    schema: Literal[2] = 2
    base: Text
    head: Text
    base_commit: Text
    head_commit: Text
    families: tuple[Name, ...]
    sha256: Mapping[Text, Sha256]
