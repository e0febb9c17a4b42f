"""Record of stage sanitize: what the tools of compute-sanitizer found."""

from warplog.records.config import SanitizerTool, SanitizeSettings
from warplog.records.fields import CaseName, Count, Frozen, Name, Status, Text
from warplog.records.measured import Measured


class SanitizerFinding(Frozen, frozen=True, kw_only=True):
    """One kind of error at one place, and how often it was reported."""

    kind: Name
    message: Text
    kernel: Text
    file: Text
    line: Count
    count: Count


class ToolCheck(Frozen, frozen=True, kw_only=True):
    """The result of one tool; `errors` is what it counted, None if it did not finish. seconds: its wall time."""

    tool: SanitizerTool
    status: Status
    reason: Text
    seconds: float
    errors: int | None
    findings: tuple[SanitizerFinding, ...]

    def __post_init__(self) -> None:
        """Checks that status ok means that the tool finished and counted no error."""
        if self.status == "ok" and (self.errors != 0 or self.findings):
            raise ValueError("status: is ok in spite of errors")


class Sanitize(Measured, tag="sanitize", frozen=True, kw_only=True):
    """The checks of a variant; `cases` ran under each tool."""

    tool_version: Text
    cases: tuple[CaseName, ...]
    checks: tuple[ToolCheck, ...]
    settings: SanitizeSettings
