"""Labels along lines."""

import numpy as np
import pytest

from warplog.figures.shared.placement import along, sampled

LIMITS, TEXT = (5.0, 3.0), (1.0, 0.1)
NOTHING = np.empty((0, 2))


def test_a_free_line_has_its_label_at_its_start_or_at_its_end():
    first, _ = along((0, 1), (5, 1), TEXT, NOTHING, LIMITS)
    last, _ = along((0, 1), (5, 1), TEXT, NOTHING, LIMITS, late=True)
    assert 0 < first[0] < 0.1
    assert 3.9 < last[0] < 4.0


def test_a_label_moves_beyond_the_line_that_crosses_it():
    crossing = sampled((0.5, 0), (0.5, 3))
    at, covered = along((0, 1), (5, 1), TEXT, crossing, LIMITS)
    assert at[0] > 0.5
    assert covered[:, 0].min() == pytest.approx(at[0])
    second, _ = along((0, 1), (5, 1), TEXT, np.vstack([crossing, covered]), LIMITS)
    assert second[0] > at[0] + TEXT[0]


def test_a_slanted_label_stays_inside_the_axes():
    at, covered = along((0, 0), (3, 3), (2.0, 0.1), NOTHING, LIMITS)
    assert covered.min() >= 0
    assert (covered <= LIMITS).all()
    assert at[0] == at[1] > 0
