"""The study of mechanisms: it fits to one half of the planted pairs, and judges by the other."""

import pytest
from benchmarks import mechanism_study

from made_up_work import gpu, work
from warplog.analysis.mechanisms.campaign import Campaign
from warplog.analysis.verdicts import Noise, Timed

EMPTY = ("changes", "sass_steps", "lines", "instructions", "accesses", "bubbles_pct", "compulsory_bytes")


def test_the_fitted_half_of_the_planted_pairs_calibrates_and_the_other_half_judges():
    """Of lines_32, 16, 8 and 1, lines_16 is fitted; here all of them take exactly what L2 does."""
    sectors = {"lines_32": 32, "lines_16": 16, "lines_8": 8, "lines_1": 4}
    works = {
        name: work(loads=1e6, load_bytes=4.0, load_sectors=n * 1e6, l2_requests=1e8 * n, l2_bytes=1e10 * n)
        for name, n in sectors.items()
    }
    keys = {name: ("causes", name, "4Mi") for name in sectors}
    campaign = Campaign(
        gpu=gpu(),
        launches={key: (works[name],) for name, key in keys.items()},
        times={key: Timed(2 + 2000.0 * sectors[name], Noise(0.001)) for name, key in keys.items()},
        parents={
            ("causes", "lines_16"): "lines_32",
            ("causes", "lines_8"): "lines_16",
            ("causes", "lines_1"): "lines_8",
        },
        **{name: {} for name in EMPTY},
    )
    calibration = mechanism_study.calibrated(campaign)
    assert calibration.power in mechanism_study.POWERS
    assert calibration.error == pytest.approx(0, abs=1e-3)
    lines = list(mechanism_study.criteria(mechanism_study.collected(campaign, calibration), []))
    assert "planted pairs: cause named: 2 of 2 (100 %; asked: 100 %)" in lines
    assert "planted pairs: gain within 25 %: 2 of 2 (100 %; asked: 90 %)" in lines
