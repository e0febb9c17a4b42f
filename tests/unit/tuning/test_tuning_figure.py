"""The heat map of a search: the best setting per pair of values, and a text if there is none."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import made_up_records
from warplog.figures.shared import style
from warplog.measure.tuning import figure as tuning_figure
from warplog.records.requested.tune import Look, Setting, Tune, TuneCheck, TunedCase


def record(scores: dict[tuple[int, int, int], float | None]) -> Tune:
    """Returns the record of a search over A, B and C; None stands for a setting without a time."""
    entries = tuple(
        Setting(
            setting=f"A{a}_B{b}_C{c}",
            parameters={"A": a, "B": b, "C": c},
            is_default=False,
            status="wrong" if score is None else "ok",
            reason="C is all zero" if score is None else "",
            score_us=score,
            cases=() if score is None else (timed(score),),
        )
        for (a, b, c), score in scores.items()
    )
    ranking = sorted((e for e in entries if e.score_us is not None), key=lambda e: e.score_us)
    return Tune(
        family="f",
        variant="v",
        status="ok" if ranking else "wrong",
        reason="" if ranking else "no setting has a time; the first: C is all zero",
        origin="live",
        gpu="h200",
        source_sha256="",
        library_sha256="",
        provenance=made_up_records.provenance(gpu_name="a GPU"),
        campaign="c",
        minutes=1.0,
        check=TuneCheck(cases=(), rounds=1),
        look=LOOK,
        parameters=("A", "B", "C"),
        cases=("4096",),
        seen=len(ranking),
        settings=entries,
        ranking=tuple(e.setting for e in ranking),
    )


def timed(us: float) -> TunedCase:
    times = dict.fromkeys(("median_us", "q1_us", "q3_us", "hot_us"), us)
    return TunedCase(case="4096", **times, rel_spread=0.0, samples=1, final_us=None)


LOOK = Look(
    min_samples=7,
    max_samples=15,
    max_seconds=0.25,
    warmup_launches=2,
    warmup_ms=10.0,
    hot_seconds=0.02,
    hot_cases="all",
)
SCORES = {(a, b, c): 10.0 * a * b + c for a, b, c in product((1, 2), (4, 8, 16), (0, 5))}


def test_cell_is_the_best_over_the_other_parameters() -> None:
    grid = tuning_figure.best_of_pair(record(SCORES), "A", "B")
    assert grid.shape == (3, 2)
    assert grid == pytest.approx(np.array([[100, 50], [50, 25], [25, 12.5]]))


def test_cell_without_a_time_is_empty() -> None:
    scores = {key: None if key[:2] == (2, 8) else score for key, score in SCORES.items()}
    grid = tuning_figure.best_of_pair(record(scores), "A", "B")
    assert np.isnan(grid[1, 1])
    assert np.isfinite(grid).sum() == 5


def test_figure_has_a_panel_for_each_pair_names_the_winner_and_is_the_same_each_time(tmp_path: Path) -> None:
    figure = tuning_figure.draw(record(SCORES))
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) == 3
    assert all(len(axes.patches) == 1 for axes in panels)
    for name in "ab":
        style.save(tuning_figure.draw(record(SCORES)), tmp_path / f"{name}.png", tmp_path / f"{name}.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "A 1 B 4 C 0" in text
    assert "12 of 12 settings measured" in text
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("fixed", [("B", "C"), ("C",)])
def test_parameters_with_one_value_take_no_room(fixed: tuple[str, ...]) -> None:
    first = {"B": 4, "C": 0}
    kept = {k: v for k, v in SCORES.items() if all(k["ABC".index(n)] == first[n] for n in fixed)}
    figure = tuning_figure.draw(record(kept))
    assert len([axes for axes in figure.axes if axes.axison]) == 1


def test_search_without_a_time_says_why(tmp_path: Path) -> None:
    figure = tuning_figure.draw(record(dict.fromkeys(SCORES)))
    style.save(figure, tmp_path / "x.png", tmp_path / "x.svg")
    assert "C is all zero" in (tmp_path / "x.svg").read_text()
