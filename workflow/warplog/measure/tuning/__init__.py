"""Stage tune: searches the best parameters of a variant on this GPU."""

from warplog.measure.tuning.record import tune_variant

__all__ = ["tune_variant"]
