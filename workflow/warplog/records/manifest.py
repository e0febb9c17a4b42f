"""The manifest of a recorded campaign: the SHA-256 of every file."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from warplog.records.campaign import CampaignName
from warplog.records.fields import Frozen

_Path = Annotated[str, Meta(max_length=1000)]
_Digest = Annotated[
    str, Meta(pattern="^[0-9a-f]{64}$", extra_json_schema={"$comment": "a SHA-256 in hexadecimal digits"})
]


class Manifest(Frozen, frozen=True, kw_only=True):
    """What `warplog record` wrote.

    Attributes:
        commit: commit that the campaign measured.
        warplog: version of warplog that wrote the manifest.
        files: SHA-256 of every file, by path relative to the manifest.
    """

    schema: Literal[2] = 2
    campaign: CampaignName
    commit: Annotated[str, Meta(max_length=100)]
    warplog: Annotated[str, Meta(max_length=100)]
    files: Annotated[Mapping[_Path, _Digest], Meta(max_length=100_000)]
