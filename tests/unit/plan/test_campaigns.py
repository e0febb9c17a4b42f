"""Several GPU models in one run: a plan each, with files of its own; refused where they cannot be measured."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from made_up_campaigns import record_as
from small_campaign import FOLDER as RECORDED
from warplog.core import paths, schema
from warplog.core.errors import WarplogError
from warplog.core.verification import digests
from warplog.machine import device
from warplog.machine.device import gpu_of
from warplog.plan.campaigns import Campaigns, make_campaigns
from warplog.plan.judging import Judging
from warplog.plan.plan import Plan

FEW = {"families": "quantization", "mode": "live"}
MODELS = ["h200", "h100-80gb-hbm3"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; the kernels are those of the checkout."""
    monkeypatch.chdir(tmp_path)
    return paths.project()


def on(gpu: str) -> SimpleNamespace:
    return SimpleNamespace(gpu=gpu, family="quantization", round="1")


def test_a_single_gpu_keeps_the_files_of_a_campaign_in_results(project: Path) -> None:
    for config in ({"gpus": "h200"}, {"gpu": "h200"}):
        found = make_campaigns({**FEW, **config}, project)
        assert found.gpus == ["h200"]
        assert found.path("time/{gpu}/{family}.json") == "results/time/{gpu}/{family}.json"
        assert found.all(Plan.files, "time") == ["results/time/h200/quantization.json"]
        assert found.joined() == []


@pytest.mark.parametrize("gpus", [MODELS, ",".join(MODELS)])
def test_each_model_gets_a_plan_and_a_folder_of_its_own_without_a_gpu(
    project: Path, gpus: list[str] | str
) -> None:
    found = make_campaigns({**FEW, "gpus": gpus}, project)
    assert found.gpus == MODELS
    assert found.path("tables/claims.csv") == "results/{gpu}/tables/claims.csv"
    assert found.all(Plan.files, "time") == [f"results/{gpu}/time/{gpu}/quantization.json" for gpu in MODELS]
    assert [found.each(Plan.gres)(on(gpu)) for gpu in MODELS] == ["h200", "h100"]
    builds = [found.each(Plan.builds)(on(gpu)) for gpu in MODELS]
    assert not set(builds[0]) & set(builds[1]), "winners of searches differ per GPU, although both are sm_90"
    assert found.everywhere("results/{gpu}/worklog/{family}.html", family=["a", "b"]) == [
        f"results/{gpu}/worklog/{family}.html" for gpu in MODELS for family in ("a", "b")
    ]


def test_a_round_of_one_model_waits_for_that_models_checks_only(project: Path) -> None:
    found = make_campaigns({**FEW, "gpus": MODELS}, project)
    for gpu in MODELS:
        assert found.each(Judging.before)(on(gpu)) == [f"results/{gpu}/check/{gpu}/quantization.json"]


def test_jobs_on_other_machines_read_the_plans_of_all_models(project: Path) -> None:
    found = make_campaigns({**FEW, "gpus": MODELS}, project)
    found.write(Path("plan.json"))
    schema.check(json.loads(Path("plan.json").read_text()), "plan", "plan.json")
    again = Campaigns.read(Path("plan.json"))
    assert again.gpus == MODELS
    for method in (Plan.decisions, Plan.time_job, Plan.builds):
        assert [again.each(method)(on(gpu)) for gpu in MODELS] == [
            found.each(method)(on(gpu)) for gpu in MODELS
        ]


@pytest.mark.parametrize(("key", "value"), [("gpu", "h200"), ("campaign", "mine")])
def test_keys_of_a_single_campaign_are_refused_beside_several_models(
    project: Path, key: str, value: str
) -> None:
    with pytest.raises(
        WarplogError, match=rf"config: {key}: '{value}' is for one campaign, but `gpus` names h200"
    ):
        make_campaigns({**FEW, "gpus": MODELS, key: value}, project)


def test_models_of_this_machine_are_refused_with_the_way_to_measure_them(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = gpu_of(json.loads((RECORDED / "campaign" / "h200.json").read_text()))
    monkeypatch.setattr(device, "boards", lambda: [own])
    with pytest.raises(
        WarplogError, match=r"this machine has the GPU h200.*--directory FOLDER --config gpu=MODEL"
    ):
        make_campaigns({**FEW, "gpus": MODELS}, project)


def test_a_model_without_a_recorded_campaign_is_named(project: Path) -> None:
    config = {"mode": "recorded", "families": "sgemm", "gpus": ["h200", "h100-pcie"]}
    with pytest.raises(WarplogError, match="no campaign in results/recorded/ was measured on h100-pcie"):
        make_campaigns(config, project)


def test_a_models_recorded_campaign_is_the_named_one_or_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, started in (("spring", "2026-03-01T00:00:00Z"), ("autumn", "2026-10-01T00:00:00Z")):
        place = tmp_path / "results" / "recorded" / folder
        record_as(RECORDED, place, "a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB", 108, [])
        file = place / "campaign" / "a100-sxm4-80gb.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "started": started}))
        digests.write_manifest(place, json.loads(file.read_text()))
    config = {"mode": "recorded", "families": "sgemm", "gpus": ["h200", "a100-sxm4-80gb"]}
    found = make_campaigns(config, paths.project())
    assert found.plans["a100-sxm4-80gb"].root.name == "autumn"
    assert found.plans["h200"].gpu == "h200"
    named = make_campaigns({**config, "recorded": "spring"}, paths.project())
    assert named.plans["a100-sxm4-80gb"].root.name == "spring"
