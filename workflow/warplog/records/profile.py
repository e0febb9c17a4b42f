"""Record of stage profile: what a profiler captured of a variant, and the report that holds it."""

from typing import Annotated

from warplog.records.fields import Count, Text, Tool, matching
from warplog.records.measured import Case, Measured, Session


class CapturedCase(Case, frozen=True, kw_only=True):
    """A captured case.

    Attributes:
        launches: number of captured launches; None if it was not captured.
        traced_us: time per launch by CUDA events while nsys traced it; None under ncu.
    """

    launches: Count | None = None
    traced_us: float | None = None


class Profile(Measured, tag="profile", frozen=True, kw_only=True):
    """The capture of a variant by one of the profilers; `report` is beside the record, "" if there is none."""

    tool: Tool
    tool_version: Text
    command: tuple[Text, ...]
    report: Annotated[str, matching("[A-Za-z0-9_.-]*", "letters, digits and _ . -")] = ""
    cases: tuple[CapturedCase, ...]
    session: Session
