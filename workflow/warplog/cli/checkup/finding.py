"""A finding: one row in the report of `warplog doctor`."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "info", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """The result of checking one topic.

    Attributes:
        status: ok; info (a fact, or not required here); warn (campaigns run, with limitations); fail (they cannot run).
        remedy: what to do; never empty for warn and fail.
    """

    topic: str
    status: Status
    text: str
    remedy: str = ""
