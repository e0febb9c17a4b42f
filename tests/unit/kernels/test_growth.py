"""tests/benchmarks/growth.py still calls the stages that it measures."""

from pathlib import Path

import pytest
from benchmarks import growth


def test_every_step_runs_on_a_campaign_of_one_family(tmp_path, monkeypatch):
    growth.make_campaign(tmp_path, ["power"], 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("warplog.figures.shared.style.PNG_DPI", 20)
    for step in growth.STEPS.values():
        step()
    made = (
        "tables/claims.parquet",
        "tables/steps.parquet",
        "figures/power/ladder.png",
        "worklog/power.html",
        "mlflow.db",
        "done.json",
    )
    assert [name for name in made if not Path("results", name).is_file()] == []


def test_the_history_runs_on_two_campaigns(tmp_path, monkeypatch):
    growth.make_history(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    growth.do_history()
    assert list(Path("results/history").iterdir())


def test_a_step_that_grows_faster_than_its_variants_is_reported(capsys):
    assert growth.show("tables", [1, 10], [(1.0, 100), (11.0, 100)])
    assert not growth.show("tables", [1, 10], [(1.0, 100), (12.0, 100)])
    assert "faster than linear" in capsys.readouterr().out


@pytest.mark.parametrize("times", [1, 3])
def test_a_campaign_has_so_many_copies_of_each_variant(tmp_path, monkeypatch, times):
    growth.make_campaign(tmp_path, ["power"], times)
    monkeypatch.chdir(tmp_path)
    assert len(growth.plan_of().pairs()) == 2 * times
