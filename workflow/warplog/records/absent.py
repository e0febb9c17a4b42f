"""What stands in the place of a record that cannot be used."""

from typing import Literal

from warplog.records.fields import Frozen, Text


class Absent(Frozen, frozen=True, kw_only=True):
    """No record, and why: it is missing, or damaged, misplaced or of another GPU (error)."""

    status: Literal["missing", "error"]
    reason: Text
