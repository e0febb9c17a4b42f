"""One line of the doctor's report."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "info", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """What was found about one topic.

    status: ok; info (a fact, or not needed here); warn (the campaign runs, with less); fail (it cannot run).
    remedy: what to do, never empty for warn and fail.
    """

    topic: str
    status: Status
    text: str
    remedy: str = ""
