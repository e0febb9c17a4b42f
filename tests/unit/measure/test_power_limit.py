"""The time at the power limit, from steps of power and time."""

import pytest

from warplog.measure.power_limit import LEAST_STEPS, times_at_limit

LIMIT_W = 700.0


def process(*powers: float, us: float = 100.0, k: float = 0.5) -> list[tuple[float, float]]:
    """Steps of a kernel that takes `us` at the limit, and follows the power with the exponent `k`."""
    return [(power, us * (LIMIT_W / power) ** k) for power in powers]


@pytest.mark.parametrize("k", [0.0, 0.3, 0.5, 0.6])
def test_the_time_at_the_limit_does_not_depend_on_the_phase_of_the_swing(k: float) -> None:
    high, low = process(740, 730, 710, 690, k=k), process(690, 670, 660, 680, k=k)
    assert times_at_limit([high, low], LIMIT_W) == pytest.approx([100.0, 100.0])


def test_processes_that_differ_keep_their_difference() -> None:
    first, second = process(740, 700, 660, us=100.0), process(740, 700, 660, us=102.0)
    assert times_at_limit([first, second], LIMIT_W) == pytest.approx([100.0, 102.0])


def test_noise_of_steps_does_not_turn_into_an_impossible_exponent() -> None:
    """All steps have the same power but for a watt, and times that differ by 4 %."""
    noisy = [(700.0, 100.0), (700.5, 104.0), (701.0, 100.0), (700.5, 98.0), (700.0, 102.0), (701.0, 99.0)]
    (time_us,) = times_at_limit([noisy], LIMIT_W) or ()
    assert time_us == pytest.approx(100.5, rel=0.002)


def test_nothing_is_extrapolated_or_told_from_a_few_steps() -> None:
    assert times_at_limit([process(640, 650, 660, 670, 680, 685)], LIMIT_W) is None
    assert times_at_limit([process(730, 740, 750, 760, 720, 725)], LIMIT_W) is None
    assert times_at_limit([process(*[700.0 + i for i in range(LEAST_STEPS - 1)])], LIMIT_W) is None
    assert times_at_limit([process(740, 700, 660, 690, 710, 680), []], LIMIT_W) is None
    assert times_at_limit([process(740, 700, 660, 690, 710, 680)], None) is None
