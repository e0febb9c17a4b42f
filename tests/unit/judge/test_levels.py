"""The history of a variant: each campaign is compared with the one that began its level, not with the one before."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from process_drift import CONDITIONS, measured

from warplog.analysis.verdicts import Noise, Timed
from warplog.judge.history import _History
from warplog.judge.samples import Campaign, Samples

VARIANT, CASE = ("f", "v"), "c"
FAMILY = SimpleNamespace(
    name="f",
    variants=[SimpleNamespace(name="v")],
    headline_case=CASE,
    baseline="",
    cases={CASE: {}},
    work=SimpleNamespace(flops=2e9, bytes=4e6),
    amount=lambda amount, _, sms: amount,
)


def test_a_slow_decline_is_a_step_and_other_conditions_begin_a_level():
    """The floor is 1.3 %: 0.9 % twice is a step. Another driver cannot be compared, and 2 % from there on is one."""
    history = _History(FAMILY)
    for us, driver in ((100.0, "1"), (100.9, "1"), (101.8, "1"), (101.9, "1"), (150.0, "2"), (147.0, "2")):
        times = {"rest": Timed(us, Noise(0.003))}
        one = replace(measured(Samples((us,) * 3)), conditions=CONDITIONS | {"driver": driver}, times=times)
        history.add(Campaign(f"at {us:g}", {(*VARIANT, CASE): one}), {VARIANT}, sms=132)
    rows = history.table().to_dict("records")
    assert [row["step"] for row in rows] == ["", "", "SLOWER", "", "REFUSED", "FASTER"]
    assert [row["against"] for row in rows[1:]] == ["at 100", "at 100", "at 101.8", "at 101.8", "at 150"]
    assert [row["change"] for row in rows if row["step"] in ("SLOWER", "FASTER")] == pytest.approx(
        [0.018, -0.02]
    )
    assert (rows[0]["gflops"], rows[0]["gbytes_per_s"]) == pytest.approx((20_000, 40))
