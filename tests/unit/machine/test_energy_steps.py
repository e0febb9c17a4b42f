"""Power between updates of the energy counter, also where a reading missed one."""

from types import SimpleNamespace

import pytest

from warplog.machine.clocks import Sampler


def test_a_step_over_an_update_that_no_reading_saw_has_the_power_of_both_updates():
    """60 J every 0.1 s; the update at 0.4 s was not seen."""
    seen = [(0.1 * i, 60.0 * i) for i in range(9) if i != 4]
    steps = Sampler.energy_steps(SimpleNamespace(_updates=seen), 0.0, 1.0)
    assert [round(end - begin, 3) for begin, end, _ in steps] == [0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1]
    assert [power_w for *_, power_w in steps] == pytest.approx([600.0] * 7)
