"""The metric registry: what is measured, from which counters, and how it is computed.

`registry` holds every metric, `counters` what to ask ncu for, `evaluation` turns counters into values.
Raw counter names appear in this package and nowhere else.
"""

from warplog.metrics.counters import counters_to_collect, set_for_opcodes
from warplog.metrics.evaluation import Evaluated, absent, dominant_stall, evaluate, occupancy_limiter
from warplog.metrics.metric import Metric
from warplog.metrics.names import OPCODE_COUNTER, STALL_REASONS
from warplog.metrics.registry import METRICS

__all__ = [
    "METRICS",
    "OPCODE_COUNTER",
    "STALL_REASONS",
    "Evaluated",
    "Metric",
    "absent",
    "counters_to_collect",
    "dominant_stall",
    "evaluate",
    "occupancy_limiter",
    "set_for_opcodes",
]
