"""Compares our times with those of the profilers, like with like."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypedDict

from warplog.records.remarks import (
    Differ,
    Note,
    Regime,
    SeveralKernels,
    ToolOnOtherBoard,
    TracingSlows,
    VariesInNcu,
)

AGREE_RELATIVE, AGREE_US = 0.03, 1.0


class _Ours(TypedDict):
    """Our times of a regime, as the notes name them."""

    regime: Regime
    low_us: float
    high_us: float


@dataclass(frozen=True)
class Agreement:
    """Whether our times agree with the profilers': "ok", "disagree", or "" if nothing was compared.

    `notes` are the pairs of times that differ, then what is not compared or varies: times in microseconds.
    """

    code: str
    notes: tuple[Note, ...] = ()


def agreement(
    rest_us: Sequence[float],
    hot_us: Sequence[float],
    ncu_us: float | None,
    nsys_us: float | None,
    kernels: int = 1,
    traced_us: float | None = None,
    elsewhere: Collection[str] = (),
    other_pass_us: float | None = None,
) -> Agreement:
    """Returns whether our times and those of the profilers agree.

    Times agree if the profiler's is within 3 % + 1 us per kernel of the range of the process medians: a profiled
    process is one more process, with other addresses.

    The time at rest is compared with ncu's duration, which follows a cache flush, unless a launch consists of several
    kernels, since ncu flushes before each. ncu runs the kernel several times and takes the duration from one of these
    passes; a kernel whose time depends on where its blocks are placed has another time in each.

    The hot time is compared with nsys' back-to-back launches. If these take longer, and CUDA events under nsys, which
    include the gaps between launches, at least as long, tracing itself slows the kernel down.

    Args:
        rest_us: median time at rest in each process.
        hot_us: median hot time in each process; may be empty.
        ncu_us: ncu's duration of a launch; None without a capture.
        nsys_us: median duration of a launch in nsys; None without a capture.
        kernels: number of kernels per launch.
        traced_us: time per launch by CUDA events under nsys.
        elsewhere: profilers (ncu, nsys) that ran on another board than the timing.
        other_pass_us: time of another of ncu's passes, see `other_pass`.
    """
    compared = False
    apart: list[Differ] = []
    notes: list[Note] = [ToolOnOtherBoard(tool=tool) for tool in elsewhere]
    rest, hot = _ours("rest", rest_us), _ours("hot", hot_us)
    ncu_us = None if "ncu" in elsewhere else ncu_us
    nsys_us = None if "nsys" in elsewhere else nsys_us
    if ncu_us is not None and kernels > 1:
        notes.append(SeveralKernels(kernels=kernels))
    elif ncu_us is not None:
        compared = True
        passes_us = [us for us in (ncu_us, other_pass_us) if us is not None]
        agreeing = [us for us in passes_us if _agree(us, rest_us, 1)]
        if agreeing and agreeing[0] != ncu_us:
            notes.append(VariesInNcu(**rest, ncu_us=ncu_us, other_us=agreeing[0]))
        elif not agreeing:
            apart.append(Differ(**rest, tool="ncu", tool_us=ncu_us))
    if nsys_us is not None and hot_us:
        compared = True
        if not _agree(nsys_us, hot_us, kernels):
            if traced_us is not None and _agree(nsys_us, [*hot_us, traced_us], kernels):
                notes.append(TracingSlows(**hot, nsys_us=nsys_us, traced_us=traced_us))
            else:
                apart.append(Differ(**hot, tool="nsys", tool_us=nsys_us))
    return Agreement("disagree" if apart else "ok" if compared else "", (*apart, *notes))


def _ours(regime: Regime, us: Sequence[float]) -> _Ours:
    return {"regime": regime, "low_us": min(us, default=0.0), "high_us": max(us, default=0.0)}


def other_pass(duration_us: float, gpu_cycles: float, sm_mhz: float) -> float:
    """Returns the kernel's time in the pass of ncu that counted the cycles of the SMs, in microseconds.

    ncu's SM clock is these cycles per duration. The clock itself is the same in all passes, gpu_cycles / duration_us:
    both of these stem from the pass that measured the duration.
    """
    return sm_mhz * duration_us / (gpu_cycles / duration_us)


def _agree(profiler_us: float, own_us: Sequence[float], kernels: int) -> bool:
    slack = AGREE_RELATIVE * profiler_us + AGREE_US * kernels
    return min(own_us) - slack <= profiler_us <= max(own_us) + slack
