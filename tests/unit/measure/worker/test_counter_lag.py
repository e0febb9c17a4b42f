"""The energy counter is late: a batch belongs to the step in which the counter shows its energy."""

from types import SimpleNamespace

from warplog.measure.worker import sampling


def test_a_batch_just_before_a_step_begins_is_counted_in_it_and_one_before_its_end_in_the_next():
    sampler = SimpleNamespace(energy_steps=lambda *_: [(0.02, 0.12, 700.0), (0.12, 0.22, 650.0)])
    found = sampling.steps_of(sampler, 0.0, 0.3, [1.0, 2.0, 3.0], [0.01, 0.11, 0.21])
    assert found == [(700.0, 1.0), (650.0, 2.0)]
