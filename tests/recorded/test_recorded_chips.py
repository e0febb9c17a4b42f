"""The builds for other chips in recorded campaigns: complete, and on the campaign's own architecture as measured."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from warplog.catalog.family import load_family
from warplog.catalog.winners import with_winners
from warplog.metrics.occupancy import LIMITS
from warplog.plan.files import Files
from warplog.plan.making import make_plan
from warplog.records.build import GPUS

PROJECT = Path(__file__).parents[2]
ROOT = PROJECT / "results" / "recorded"
CAMPAIGNS = sorted(path.name for path in ROOT.iterdir() if path.is_dir())
OWN = "sm_90"
KEYS = ["family", "variant"]
# nvcc 13.0.88 makes one of three PTX texts of this source, by chance: with the same command and files, 213 or 215
# registers.
BY_CHANCE = [("sgemm", "stream_k")]
ROUNDING_PCT = 0.01
PADDING = 128  # a formula may ignore what the alignment of an array takes


def table(campaign: str, name: str) -> pd.DataFrame:
    return pd.read_parquet(ROOT / campaign / "tables" / f"{name}.parquet")


@pytest.fixture(scope="module", params=CAMPAIGNS)
def campaign(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_variant_has_a_row_for_every_architecture_and_none_fails_to_compile(campaign: str) -> None:
    variants, chips = table(campaign, "variants"), table(campaign, "chips")
    pairs = set(variants[KEYS].itertuples(index=False, name=None))
    assert set(chips[[*KEYS, "arch"]].itertuples(index=False, name=None)) == {
        (*pair, arch) for pair in pairs for arch in GPUS
    }
    assert set(chips["status"]) == {"ok", "unsupported"}
    assert (chips["reason"] != "")[chips["blocks_per_sm"].isna()].all()
    assert not (chips["reason"] != "")[chips["blocks_per_sm"].notna()].any()


def test_on_the_architecture_that_was_measured_builds_are_those_of_the_campaign(campaign: str) -> None:
    own = table(campaign, "chips").query("arch == @OWN and kernel != ''").set_index(KEYS).drop(BY_CHANCE)
    built = table(campaign, "variants").set_index(KEYS).loc[own.index]
    assert len(own) > 100
    assert (own["registers_per_thread"] == built["registers_per_thread"]).all()
    assert (own["static_shared_bytes"] == built["static_shared_bytes"]).all()
    assert (own["spill_store_bytes"] + own["spill_load_bytes"] == built["spill_bytes"]).all()


def test_the_occupancy_of_that_architecture_is_what_nsight_compute_says(campaign: str) -> None:
    own = table(campaign, "chips").query("arch == @OWN and reason == ''").set_index(KEYS)
    variants = table(campaign, "variants")[[*KEYS, "kernel", "headline_case"]]
    metrics = table(campaign, "metrics").query("metric == 'theoretical_occupancy_pct' and tool == 'ncu'")
    shown = metrics.merge(variants, on=[*KEYS, "kernel"]).query("case == headline_case")
    counted = shown.drop_duplicates(KEYS).set_index(KEYS)["value"]
    both = own.index.intersection(counted.index)
    assert len(both) > 100
    assert ((own.loc[both, "occupancy_pct"] - counted.loc[both]).abs() < ROUNDING_PCT).all()


def test_the_dynamic_shared_memory_that_a_family_states_is_what_was_launched() -> None:
    chips = table("h200", "chips").query("arch == @OWN and dynamic_shared_bytes >= 0").set_index(KEYS)
    families = {
        name: load_family(PROJECT / "kernels" / name / "family.yaml") for name in chips.index.levels[0]
    }
    stated = {
        (name, variant.name): stated
        for name, family in with_winners(families, "h200").items()
        for variant in family.variants
        if (stated := variant.dynamic_shared_bytes(LIMITS[9, 0])) and (name, variant.name) in chips.index
    }
    assert {"tma_pipelined", "cluster_2", "warp_specialised", "tile_32"} <= {variant for _, variant in stated}
    launched = chips.loc[list(stated), "dynamic_shared_bytes"].to_dict()
    assert all(0 <= stated[key] - launched[key] < PADDING for key in stated)


def test_kernels_of_hopper_name_what_they_need_and_large_blocks_the_limit_that_they_exceed() -> None:
    chips = table("h200", "chips").set_index([*KEYS, "arch"])
    wgmma = chips.loc["bf16_gemm", "wgmma_cluster", "sm_120"]
    assert (wgmma["reason"], wgmma["reason_of"]) == ("needs_arch", "sm_90a")
    assert set(wgmma["features"].split(",")) >= {"wgmma", "tma", "clusters"}
    large = chips.loc["sgemm", "register_reuse", "sm_120"]
    assert (large["status"], large["reason"], large["shared_limit_bytes"]) == (
        "unsupported",
        "shared_memory",
        99 * 1024,
    )
    assert large["dynamic_shared_bytes"] > 99 * 1024
    assert chips.loc["sgemm", "register_reuse", "sm_100"]["status"] == "ok"
    assert chips.loc["sgemm", "cublas", "sm_80"]["reason"] == "library_kernels"


def test_pages_use_recorded_builds_and_a_changed_source_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("include", "transpose"):
        shutil.copytree(PROJECT / "kernels" / name, Path("kernels", name))
    shutil.copytree(ROOT / "h200", Path("results/recorded/h200"))

    def planned() -> Files:
        return Files(make_plan({"mode": "recorded", "recorded": "h200"}, tmp_path))

    files = planned()
    assert [Path(file).name for file in files.chips()] == ["chips.tar.xz"]
    assert files.chips_on_pages() == ["results/tables/chips.parquet"]
    source = Path("kernels/transpose/naive.cu")
    source.write_text(source.read_text() + "// edited\n")
    files = planned()
    assert files.chips() == [f"results/chips/{arch}/transpose/record.json" for arch in GPUS]
    assert files.chips_on_pages() == [], "pages compile nothing"
