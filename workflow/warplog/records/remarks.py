"""Remarks on the times of a case: how they were taken, if it matters."""

from warplog.records.fields import Count, Frozen


class _Remark(Frozen, tag_field="code", frozen=True, kw_only=True):
    """A code with its values; the words are made where it is shown (warplog.core.remarks)."""


class FewSamples(_Remark, tag="few_samples", frozen=True, kw_only=True):
    """Fewer samples than the settings ask for."""

    samples: Count


class Discarded(_Remark, tag="discarded", frozen=True, kw_only=True):
    """Launches that were discarded since a limit held the clock below `below_mhz`; `taken` includes them."""

    dropped: Count
    taken: Count
    below_mhz: float


class HeldClock(_Remark, tag="held_clock", frozen=True, kw_only=True):
    """The clock stayed at `mhz` in spite of pauses; None if it could not be read."""

    mhz: float | None


class NotBlocked(_Remark, tag="not_blocked", frozen=True, kw_only=True):
    """Samples whose stream block timed out, since the launcher synchronises."""

    samples: Count


class HostTime(_Remark, tag="host_time", frozen=True, kw_only=True):
    """All samples include the host's part of each launch."""


class NoGraph(_Remark, tag="no_graph", frozen=True, kw_only=True):
    """The hot launches are no CUDA graph."""


TimeRemark = FewSamples | Discarded | HeldClock | NotBlocked | HostTime | NoGraph
