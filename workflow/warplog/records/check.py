"""Record of stage check: the errors of a variant's results against the reference."""

from warplog.records.config import CheckSettings
from warplog.records.fields import Count
from warplog.records.measured import Case, Measured, Session


class CheckCase(Case, frozen=True, kw_only=True):
    """A checked case; `rounds` of new random inputs. The errors are None if it did not run to its end."""

    rounds: Count | None = None
    max_abs_error: float | None = None
    max_error_over_tolerance: float | None = None


class Check(Measured, tag="check", frozen=True, kw_only=True):
    """The check of a variant."""

    cases: tuple[CheckCase, ...]
    session: Session
    settings: CheckSettings
