"""The recorded campaign is whole, names its origin, and its counters tell the story that is known."""

import json
from pathlib import Path

import pandas as pd
import pytest

from warplog import extract, occupancy
from warplog.catalog import load_family
from warplog.records import read_json

PROJECT = Path(__file__).parents[2]
ROOT = PROJECT / "results" / "recorded" / "h200"
FAMILY = load_family(PROJECT / "kernels" / "sgemm" / "family.yaml")
HEADLINE = FAMILY.headline_case
VARIANTS = [v for v in FAMILY.variants if not v.draft]


@pytest.fixture(scope="module")
def measurements() -> pd.DataFrame:
    return pd.read_csv(ROOT / "tables" / "measurements.csv", keep_default_na=False, dtype={"case": str})


@pytest.fixture(scope="module")
def metrics() -> pd.DataFrame:
    return pd.read_csv(ROOT / "tables" / "metrics.csv", keep_default_na=False, dtype={"case": str})


def value(metrics: pd.DataFrame, variant: str, metric: str, case: str = HEADLINE) -> float:
    """Of the first kernel of the variant in that case."""
    rows = metrics[(metrics.variant == variant) & (metrics.metric == metric) & (metrics.case == case)]
    assert len(rows), (variant, metric, case)
    assert rows.iloc[0]["status"] == "ok", rows.iloc[0]["reason"]
    return float(rows.iloc[0]["value"])


def test_campaign_names_commit_gpu_driver_and_date() -> None:
    campaign = read_json(ROOT / "campaign" / "h200.json", "record")
    assert len(campaign["commit"]) >= 7
    assert "dirty" not in campaign["commit"]
    assert campaign["gpu_name"] == "NVIDIA H200"
    assert campaign["driver"]
    assert campaign["started"].startswith("20")


def test_all_records_fit_the_schema_and_come_from_the_same_code() -> None:
    records = list(ROOT.rglob("*.json"))
    assert len(records) > 5 * len(VARIANTS)
    campaign = read_json(ROOT / "campaign" / "h200.json", "record")
    for path in records:
        record = read_json(path, "record")
        if "provenance" in record:
            assert record["provenance"]["content_sha256"] == campaign["content_sha256"], path


def test_it_is_small_enough_to_be_committed() -> None:
    assert sum(p.stat().st_size for p in ROOT.rglob("*") if p.is_file()) < 20 << 20


def test_every_variant_and_case_is_ok(measurements: pd.DataFrame) -> None:
    expected = {(v.name, case) for v in VARIANTS for case in FAMILY.cases}
    assert set(zip(measurements.variant, measurements.case, strict=True)) == expected
    assert set(measurements.status) == {"ok"}


def test_times_agree_with_the_profilers(measurements: pd.DataFrame) -> None:
    captured = measurements[measurements.case.isin(FAMILY.profile_cases)]
    apart = captured[captured.agreement != "ok"]
    # Launches of several kernels are not quite alike: ncu flushes before each. Nothing else may differ.
    assert all("kernels a launch" in text for text in apart.agreement)
    assert len(apart) < len(captured) / 10


def test_coalescing_lowers_sectors_per_request(metrics: pd.DataFrame) -> None:
    name = "global_load_sectors_per_request"
    assert value(metrics, "naive", name) > 2 * value(metrics, "gmem_coalesced", name)
    assert value(metrics, "naive", "global_store_sectors_per_request") == pytest.approx(32)
    assert value(metrics, "gmem_coalesced", "global_store_sectors_per_request") == pytest.approx(4)


def test_tiling_cuts_traffic(metrics: pd.DataFrame) -> None:
    l1 = [value(metrics, v, "l1_bytes") for v in ("gmem_coalesced", "smem_tiled", "blocktile_2d")]
    assert l1[0] > 5 * l1[1] > 5 * l1[2]
    # Behind L1 the first tiles bring nothing, L1 served the same lines before; larger ones do.
    for metric in ("l2_bytes", "dram_bytes"):
        assert value(metrics, "gmem_coalesced", metric) > 2 * value(metrics, "blocktile_2d", metric), metric


def test_flops_are_those_of_the_algorithm(metrics: pd.DataFrame) -> None:
    n = FAMILY.cases[HEADLINE].values["M"]
    for variant in VARIANTS:
        if variant.name != FAMILY.baseline:
            assert value(metrics, variant.name, "fp32_flops") == pytest.approx(2 * n**3, rel=0.01), (
                variant.name
            )


def test_vectorized_has_wide_loads_and_its_parent_has_not(metrics: pd.DataFrame) -> None:
    opcodes = metrics[metrics.tool == "cuobjdump"]
    wide = {v: set(opcodes[opcodes.variant == v].metric) for v in ("vectorized", "blocktile_2d")}
    assert {"sass_LDS.128"} <= wide["vectorized"]
    assert any(m.startswith("sass_LDG.E.128") for m in wide["vectorized"])
    assert not any(m.startswith("sass_LDG.E.128") for m in wide["blocktile_2d"])


def test_theoretical_occupancy_is_the_hand_calculation(metrics: pd.DataFrame) -> None:
    registers = value(metrics, "naive", "registers_per_thread")
    by_hand = occupancy.theoretical(int(registers), 1024, 0, (9, 0))
    assert value(metrics, "naive", "theoretical_occupancy_pct") == pytest.approx(
        by_hand.occupancy_pct, abs=0.1
    )


def test_ladder_climbs(measurements: pd.DataFrame) -> None:
    at = measurements[measurements.case == HEADLINE].set_index("variant")["gflops"].astype(float)
    ladder = [
        "naive",
        "gmem_coalesced",
        "smem_tiled",
        "blocktile_1d",
        "blocktile_2d",
        "vectorized",
        "warptile",
    ]
    assert list(at[ladder]) == sorted(at[ladder])


def test_parameters_in_the_tables_are_those_of_the_family() -> None:
    variants = pd.read_csv(ROOT / "tables" / "variants.csv", keep_default_na=False).set_index("variant")
    for variant in VARIANTS:
        assert json.loads(variants.loc[variant.name, "parameters"]) == dict(variant.parameters)


@pytest.mark.parametrize("variant", ["naive", "vectorized"])
def test_raw_reports_read_today_as_they_were_recorded(variant: str) -> None:
    folder = ROOT / "profile" / "h200" / "sgemm"
    ncu = read_json(folder / f"{variant}.ncu.json", "record")
    absent = {"tool": "nsys", "status": "missing", "reason": "not recorded", "tool_version": "", "cases": []}
    evidence = extract.extract_variant(
        folder / f"{variant}.ncu-rep", None, ncu, absent, list(FAMILY.profile_cases)
    )
    recorded = read_json(ROOT / "extract" / "h200" / "sgemm" / f"{variant}.json", "record")["rows"]
    read = [row for row in evidence.rows if row["tool"] == "ncu"]
    before = [row for row in recorded if row["tool"] == "ncu"]
    assert len(read) > 300
    assert [r | {"value": None} for r in read] == [r | {"value": None} for r in before]
    # Python 3.12 sums floats with compensation, 3.11 does not: the last digit may differ.
    assert [r["value"] is None for r in read] == [r["value"] is None for r in before]
    values = [[r["value"] for r in rows if r["value"] is not None] for rows in (read, before)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
