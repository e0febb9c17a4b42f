"""Record of the duels of a family's steps, whose times in the campaign do not tell them from their parents."""

from typing import Annotated, Literal

from msgspec import Meta

from warplog.records.fields import Frozen, Name, Sha256, Slug
from warplog.records.requested.duel import Duel


class StepDuel(Frozen, frozen=True, kw_only=True):
    """A variant, the side B, against its parent; `inputs_sha256` is the hash of everything that the duel depends on."""

    variant: Name
    parent: Name
    inputs_sha256: Sha256
    duel: Duel


class StepDuels(Frozen, tag_field="stage", tag="duels", frozen=True, kw_only=True):
    """The duels of a family on one GPU."""

    schema: Literal[2] = 2
    gpu: Slug
    family: Name
    duels: Annotated[tuple[StepDuel, ...], Meta(max_length=1000)]
