"""What a GPU can do, as its campaign measured it: the table `ceilings`."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from warplog.core.columns import Row, number, text

USABLE = ("met", "within_noise")
_DRAM = "dram_gbytes_per_s"


@dataclass(frozen=True)
class Ceiling:
    """A measured number, the interval in which the same code shows it, and the campaign that measured it."""

    value: float
    low: float
    high: float
    campaign: str = ""


@dataclass(frozen=True)
class Gpu:
    """The GPU of a campaign.

    Attributes:
        ceilings: by the names in the table `ceilings`; what was not measured, or is out of range, is not there.
    """

    sms: float
    ceilings: Mapping[str, Ceiling]

    def value(self, name: str) -> float:
        """Returns a ceiling in its unit; NaN if it was not measured."""
        return self.ceilings[name].value if name in self.ceilings else math.nan

    def us(self, name: str) -> float:
        """Returns what an action takes, in microseconds, from a ceiling in ns or us; NaN if it was not measured."""
        value = self.value(name)
        return value / 1e3 if name.endswith("_ns") else value

    def per_us(self, name: str) -> float:
        """Returns what the GPU does in a microsecond: bytes, floating-point operations, starts; NaN if not measured."""
        value = self.value(name)
        return value * {"gbytes_per_s": 1e3, "tflops": 1e6}.get(_unit(name), 1.0)

    def share(self, name: str) -> float:
        """Returns the share of a unit's cycles that kernels can use at best, from a ceiling in %; 1 if not measured."""
        value = self.value(name)
        return 1.0 if math.isnan(value) else value / 100

    def spread(self) -> Mapping[str, "Gpu"]:
        """Returns, by ceiling, the GPU on which that one has the upper end of its interval."""
        return {
            name: replace(self, ceilings={**self.ceilings, name: replace(ceiling, value=ceiling.high)})
            for name, ceiling in self.ceilings.items()
            if ceiling.high > ceiling.value
        }


def read(ceilings: Iterable[Row], gpu: Row) -> Gpu:
    """Returns the GPU of a row of `gpus`, with the rows of `ceilings`, of which the last one of a name counts.

    Without a measured bandwidth of device memory, its peak is taken, which no kernel reaches.
    """
    found = {
        text(row, "ceiling"): Ceiling(
            number(row, "value"), number(row, "value_low"), number(row, "value_high"), text(row, "campaign")
        )
        for row in ceilings
        if text(row, "word") in USABLE
    }
    if (peak := number(gpu, f"{_DRAM}_peak")) > 0:
        found.setdefault(_DRAM, Ceiling(peak, peak, peak))
    return Gpu(number(gpu, "sms"), found)


def _unit(name: str) -> str:
    return next((unit for unit in ("gbytes_per_s", "tflops") if name.endswith(unit)), "")
