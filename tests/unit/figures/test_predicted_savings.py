"""The figure of all steps of a campaign: what each was predicted to save, against measured."""

from dataclasses import replace

import pandas as pd
import pytest

import made_up_mechanisms as made
from warplog.figures.campaign import predicted_savings as figure
from warplog.figures.shared.settings import STYLES
from warplog.figures.shared.style import Look

OPPOSITE = replace(made.UNDECIDED, variant="vectorized_untransposed", measured_us=20.0)
MECHANISMS = made.table([*made.REASONS, OPPOSITE], gpu_name="GPU", origin="live", campaign="c")


def test_each_step_that_could_be_predicted_is_a_point_of_its_word():
    rows = figure.data(MECHANISMS)
    assert made.UNKNOWN.variant not in set(rows["variant"])
    axes = figure.draw(rows, Look("")).axes[0]
    points = {
        line.get_marker(): [*line.get_xydata()] for line in axes.lines if line.get_linestyle() == "None"
    }
    assert {marker: len(at) for marker, at in points.items()} == {"o": 3, "^": 1, "s": 1, "x": 1}
    assert tuple(points["s"][0]) == (500.0, 510.0), "a cost is drawn by its size"
    assert tuple(points["x"][0]) == (500.0, 20.0)
    assert axes.get_xlim() == axes.get_ylim()


def test_it_fits_a_column_of_a_paper_and_has_its_numbers_beside_it(tmp_path):
    paper = replace(STYLES["paper"], width_in=3.3, formats=("svg",))
    svg, _, csv = figure.write(MECHANISMS, paper, tmp_path)
    text = svg.read_text()
    assert 'width="237.6pt"' in text
    assert "predicted (3)" in text
    numbers = pd.read_csv(csv)
    assert list(numbers["predicted_us"]) == [250e3, -500.0, -500.0, -500.0, 150.0, -500.0]
    assert set(numbers["campaign"]) == {"c"}


@pytest.mark.filterwarnings("error")
def test_a_campaign_without_predictions_says_so(tmp_path):
    settings = replace(STYLES["web"], formats=("svg",))
    for rows in (MECHANISMS.iloc[4:5], MECHANISMS.iloc[:0]):
        svg, csv = figure.write(rows, settings, tmp_path)
        assert figure.NOTHING in svg.read_text()
        assert pd.read_csv(csv).empty
