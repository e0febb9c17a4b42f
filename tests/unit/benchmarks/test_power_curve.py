"""The recorded tables of duels follow from the recorded windows."""

from pathlib import Path

import pandas as pd
import pytest
from benchmarks import power_curve

RECORDED = Path(power_curve.HERE, "recorded", "duels")


@pytest.fixture(scope="module")
def processes() -> pd.DataFrame:
    return power_curve.processes_of(RECORDED)


def test_what_the_processes_show(processes: pd.DataFrame) -> None:
    made = power_curve.spread(processes).to_csv(index=False, lineterminator="\n")
    assert made == (RECORDED / "power_processes.csv").read_text()


@pytest.mark.parametrize("gpu", ["NVIDIA H100 80GB HBM3", "NVIDIA H200"])
def test_a_point_of_the_curve(processes: pd.DataFrame, gpu: str) -> None:
    """On the H100, all processes loaded A first; on the H200, every other one loaded B first."""
    found = pd.read_csv(RECORDED / "power_curve.csv")
    row = found.query(
        "gpu == @gpu and family == 'planted_copy' and case == '3us' and looks == 1 and effect_percent == 1"
    )
    own = processes.query("gpu == @gpu and family == 'planted_copy' and case == '3us' and change == 'base'")
    assert power_curve.point(own, 0.01, 1) == row.iloc[0].to_dict()
