"""The metric registry: every metric with its unit, its counters and its formula.

`registry` defines the metrics, `counters` selects the counters to request from ncu, `substitutes` computes counters
that a report lacks from others, `evaluation` turns counters into values. Raw counter names appear only here and in
`parsers.ncu`.
"""

from warplog.metrics.counters import counters_to_collect, set_for_opcodes
from warplog.metrics.evaluation import (
    NO_STALL,
    Evaluated,
    absent,
    dominant_stall,
    dominant_state,
    evaluate,
    evaluate_any,
    occupancy_limiter,
)
from warplog.metrics.metric import Metric
from warplog.metrics.names import OPCODE_COUNTER, STALL_REASONS
from warplog.metrics.registry import METRICS

__all__ = [
    "METRICS",
    "NO_STALL",
    "OPCODE_COUNTER",
    "STALL_REASONS",
    "Evaluated",
    "Metric",
    "absent",
    "counters_to_collect",
    "dominant_stall",
    "dominant_state",
    "evaluate",
    "evaluate_any",
    "occupancy_limiter",
    "set_for_opcodes",
]
