"""tests/benchmarks/growth.py still calls the stages that it measures, and reports one that grows too fast."""

import pytest
from benchmarks import growth


def test_the_steps_that_draw_and_log_nothing_run_on_copies_of_a_family(tmp_path, monkeypatch):
    growth.make_campaign(tmp_path, ["power"], 3)
    monkeypatch.chdir(tmp_path)
    assert len(growth.plan_of().pairs()) == 2 * 3
    for step in ("plan", "tables", "compare"):
        growth.STEPS[step]()
    assert (tmp_path / "results/tables/steps.parquet").is_file()


@pytest.mark.parametrize(("seconds", "linear"), [(11.0, True), (12.0, False)])
def test_a_step_that_grows_faster_than_its_variants_is_reported(capsys, seconds, linear):
    assert growth.show("tables", [1, 10], [(1.0, 100), (seconds, 100)]) == linear
    assert ("faster than linear" in capsys.readouterr().out) != linear
