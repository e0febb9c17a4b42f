"""The recorded campaign that is used without a GPU is complete, and its counters show the known effects."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import shipped_families
from recorded_campaigns import unpacked
from shipped_families import EDITED, FOUND, LACKING
from warplog.catalog import winners
from warplog.core.columns import TABLES
from warplog.metrics import occupancy
from warplog.records import door
from warplog.records.build import Build
from warplog.records.campaign import Campaign
from warplog.records.config import Config, SanitizeSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.measured import Identity, Measured
from warplog.records.requested.tune import Tune
from warplog.records.stages import RECORDED, START
from warplog.records.verification import campaign_folder, manifest

PROJECT = Path(__file__).parents[2]
ROOT = PROJECT / "results" / "recorded" / Config().recorded
EVERY = sorted(path.name for path in ROOT.parent.iterdir() if path.is_dir())
CAMPAIGN = door.read(next((ROOT / "campaign").glob("*.json")), Campaign)
FOLDER = unpacked(ROOT.name)  # its records as files
GPU = CAMPAIGN.gpu
ALL = shipped_families.FAMILIES
FAMILIES = {
    name: family
    for name, family in winners.with_winners(ALL, GPU).items()
    if not (family.draft or family.of_oracle)
}
PROBES = {family.name: family for family in ALL.values() if family.probes}
VARIANTS = [
    v for f in FAMILIES.values() for v in f.variants if not v.draft and (f.name, v.name) not in LACKING
]
SGEMM = FAMILIES["sgemm"]
HEADLINE = SGEMM.headline_case
# Each starts with a fixed character, which Python finds much faster than an alternative or a class.
LEAKS = [
    re.compile(pattern)
    for pattern in (
        r"/(?:home|root|tmp|mnt|work|Users)/",
        r"=/(?<=[A-Z_]{3}=/)",
        r"@(?<=\w@)[a-z]",
        r"HOSTNAME\b",
        r"PASSWORD\b",
        r"TOKEN\b",
    )
]


def table(name: str) -> pd.DataFrame:
    return pd.read_parquet(ROOT / "tables" / f"{name}.parquet")


@pytest.fixture(scope="module")
def measurements() -> pd.DataFrame:
    return table("measurements")


@pytest.fixture(scope="module")
def metrics() -> pd.DataFrame:
    rows = table("metrics")
    return rows[rows["family"] == "sgemm"]


def value(metrics: pd.DataFrame, variant: str, metric: str, case: str = HEADLINE) -> float:
    """Returns a metric of the first kernel of the variant at that case."""
    rows = metrics[(metrics.variant == variant) & (metrics.metric == metric) & (metrics.case == case)]
    assert len(rows), (variant, metric, case)
    assert rows.iloc[0]["status"] == "ok", rows.iloc[0]["reason"]
    return float(rows.iloc[0]["value"])


def records() -> list[tuple[Path, Identity]]:
    """Returns all records with their files: those of all variants, builds and searches."""
    of_stages: list[tuple[Path, Identity]] = []
    for stage in RECORDED:
        for path in stage.files(FOLDER):
            if stage.of_family:
                of_stages += [
                    (path, record) for record in FamilyRecord.read(path, stage.record).variants.values()
                ]
            elif stage is not START:
                of_stages.append((path, door.read(path, stage.record)))
    return of_stages


def test_campaign_names_commit_gpu_driver_and_date() -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", CAMPAIGN.commit)
    assert CAMPAIGN.gpu_name == "NVIDIA H200"
    assert CAMPAIGN.driver
    assert CAMPAIGN.started.startswith("20")


def test_all_records_fit_their_types_and_come_from_the_same_code() -> None:
    entries = records()
    assert len(entries) > 5 * len(VARIANTS)
    for path, record in entries:
        # Searches run before the campaign, whose sources contain their results.
        if isinstance(record, Measured) and not isinstance(record, Tune):
            assert record.provenance.content_sha256 == CAMPAIGN.content_sha256, path


@pytest.mark.parametrize("name", EVERY)
def test_every_recorded_campaign_is_consistent_and_as_its_manifest_says(name: str) -> None:
    folder = ROOT.parent / name
    assert (folder / manifest.NAME).is_file()
    assert manifest.problems(folder) == []
    assert campaign_folder.record_problems(folder) == []


def test_it_contains_the_oracle_with_the_current_probes() -> None:
    entries = [(path, record) for path, record in records() if record.family in PROBES]
    assert {record.family for _, record in entries} == set(PROBES)
    for path, record in entries:
        if isinstance(record, (Measured, Build)):
            variant = PROBES[record.family].variant(record.variant)
            assert record.source_sha256 == variant.fingerprint(), path


def test_compute_sanitizer_found_nothing_unexplained_in_the_current_variants_and_probes() -> None:
    rows = table("sanitize")
    current = [*VARIANTS, *(v for family in PROBES.values() for v in family.variants)]
    keys = {(v.family, v.name, tool) for v in current for tool in SanitizeSettings().tools}
    assert set(zip(rows["family"], rows["variant"], rows["tool"], strict=True)) == keys
    findings = rows[rows["status"] != "ok"]
    expected = {key for key in FOUND if key[:2] not in LACKING}
    assert set(zip(findings["family"], findings["variant"], findings["tool"], strict=True)) == expected
    sources = dict(zip(zip(rows["family"], rows["variant"], strict=True), rows["source_sha256"], strict=True))
    fingerprints = {(v.family, v.name): v.fingerprint() for v in current}
    assert {key for key, source in sources.items() if source != fingerprints[key]} <= EDITED


@pytest.mark.parametrize("name", EVERY)
def test_every_recorded_campaign_is_small_enough_to_be_committed(name: str) -> None:
    sizes = [path.stat().st_size for path in (ROOT.parent / name).rglob("*") if path.is_file()]
    assert (
        sum(sizes) <= 14_000_000
    )  # 25 families take 12.3 MB, of which tracks, instructions and records are two thirds


@pytest.mark.parametrize("text", ["/home/a", "CUDA_HOME=/opt", "me@example.org", "a HOSTNAME", "API_TOKEN"])
def test_a_leak_is_found(text: str) -> None:
    assert any(leak.search(text) for leak in LEAKS)


@pytest.mark.parametrize("name", EVERY)
def test_a_recorded_campaign_names_no_folder_user_or_environment_of_the_machine(name: str) -> None:
    for path in unpacked(name).rglob("*"):
        if path.suffix in (".json", ".csv"):
            text = path.read_text(encoding="utf-8")
            assert not any(match := leak.search(text) for leak in LEAKS), (path, match)


def test_it_has_every_table() -> None:
    names = {path.stem for path in (ROOT / "tables").glob("*.parquet")}
    assert names >= {*TABLES, "claims", "oracle"}
    assert (ROOT / "tables" / "columns.csv").is_file()


def test_every_family_variant_and_case_has_a_row_that_is_ok_or_unsupported(
    measurements: pd.DataFrame,
) -> None:
    expected = {(v.family, v.name, case) for v in VARIANTS for case in FAMILIES[v.family].cases}
    keys = list(zip(measurements.family, measurements.variant, measurements.case, strict=True))
    assert set(keys) == expected
    assert len(keys) == len(expected)
    assert set(measurements.status) <= {"ok", "unsupported"}
    without = measurements[measurements.status != "ok"]
    assert all(without.reason.str.startswith("needs "))
    for variant in VARIANTS:
        family = FAMILIES[variant.family]
        own = measurements[(measurements.family == family.name) & (measurements.variant == variant.name)]
        for row in own.itertuples():  # what it declares, and nothing else, keeps a variant from a case
            why_not = variant.requires.why_not_case(family.cases[row.case])
            assert (row.status, row.reason) == (("unsupported", why_not) if why_not else ("ok", "")), row
        assert "ok" in set(own.status), (variant.family, variant.name)


def test_it_was_measured_from_the_current_sources(measurements: pd.DataFrame) -> None:
    measured = {(r.family, r.variant): r.source_sha256 for r in measurements.itertuples()}
    changed = {(v.family, v.name) for v in VARIANTS if measured[v.family, v.name] != v.fingerprint()}
    assert changed == EDITED, "record the campaign again, and empty tests/support/shipped_families.py"
    assert not LACKING & set(measured), "empty tests/support/shipped_families.py"


def test_the_oracle_finds_nothing_wrong() -> None:
    rows = table("oracle")
    assert set(rows["family"]) == {name for name, family in ALL.items() if family.probes}
    assert set(rows["verdict"]) <= {"right", "not_measured"}
    assert (rows["verdict"] == "right").mean() > 0.9
    assert all(rows.loc[rows["verdict"] == "not_measured", "reason"])


def test_every_variant_that_ncu_captures_has_counters() -> None:
    rows = table("metrics")
    counted = rows[(rows["tool"] == "ncu") & (rows["status"] == "ok") & rows["value"].notna()]
    read = set(zip(counted["family"], counted["variant"], strict=True))
    without_kernel = {("global_access", "memcpy")}  # cudaMemcpyAsync
    assert read | without_kernel == {
        (v.family, v.name)
        for v in VARIANTS
        if "ncu" in (family := FAMILIES[v.family]).measuring.profilers
        and any(not v.requires.why_not_case(family.cases[case]) for case in family.profile_cases)
    }


def test_times_of_sgemm_agree_with_the_profilers(measurements: pd.DataFrame) -> None:
    captured = measurements[(measurements.family == "sgemm") & measurements.case.isin(SGEMM.profile_cases)]
    apart = captured[captured.agreement != "ok"]
    # With several kernels per launch the comparison is inexact, since ncu flushes before each; no others may differ.
    assert all(re.search("kernels (a|per) launch", text) for text in apart.agreement)
    assert len(apart) < len(captured) / 10


def test_times_are_within_a_sixth_of_the_profilers_unless_the_power_limit_lowers_the_clock(
    measurements: pd.DataFrame,
) -> None:
    rows = measurements[(measurements.agreement != "") & ~measurements.throttle_reasons.str.contains("cap")]
    rows = rows[~rows.agreement_notes.str.contains("several_kernels")]
    assert len(rows) > len(VARIANTS) / 2
    for ours, theirs in (("median_us", "ncu_us"), ("hot_us", "nsys_us")):
        pairs = rows[rows[ours].notna() & rows[theirs].notna()]
        if theirs == "nsys_us":
            pairs = pairs[~pairs.agreement_notes.str.contains("tracing_slows")]  # CUDA events show it, too
        far = pairs[(pairs[ours] / pairs[theirs] - 1).abs() > 1 / 6]
        far = far[far[theirs] > 10]
        assert far.empty, far[["family", "variant", "case", ours, theirs]].to_string()


def test_coalescing_lowers_sectors_per_request(metrics: pd.DataFrame) -> None:
    name = "global_load_sectors_per_request"
    assert value(metrics, "naive", name) > 2 * value(metrics, "gmem_coalesced", name)
    assert value(metrics, "naive", "global_store_sectors_per_request") == pytest.approx(32)
    assert value(metrics, "gmem_coalesced", "global_store_sectors_per_request") == pytest.approx(4)


def test_tiling_cuts_traffic(metrics: pd.DataFrame) -> None:
    l1 = [value(metrics, v, "l1_bytes") for v in ("gmem_coalesced", "smem_tiled", "blocktile_2d")]
    assert l1[0] > 5 * l1[1] > 5 * l1[2]
    # Beyond L1 the first tiles save nothing, because L1 already served the same lines; larger ones do.
    for metric in ("l2_bytes", "dram_bytes"):
        assert value(metrics, "gmem_coalesced", metric) > 2 * value(metrics, "blocktile_2d", metric), metric


def test_flops_are_those_of_the_algorithm(metrics: pd.DataFrame) -> None:
    n = SGEMM.cases[HEADLINE].values["M"]
    for variant in (v for v in VARIANTS if v.family == "sgemm" and v.name != SGEMM.baseline):
        assert value(metrics, variant.name, "fp32_flops") == pytest.approx(2 * n**3, rel=0.01), variant.name


def test_vectorized_has_wide_loads_and_its_parent_does_not(metrics: pd.DataFrame) -> None:
    opcodes = metrics[metrics.tool == "cuobjdump"]
    wide = {v: set(opcodes[opcodes.variant == v].metric) for v in ("vectorized", "blocktile_2d")}
    assert {"sass_LDS.128"} <= wide["vectorized"]
    assert any(m.startswith("sass_LDG.E.128") for m in wide["vectorized"])
    assert not any(m.startswith("sass_LDG.E.128") for m in wide["blocktile_2d"])


def test_theoretical_occupancy_equals_the_calculated_one(metrics: pd.DataFrame) -> None:
    registers = value(metrics, "naive", "registers_per_thread")
    by_hand = occupancy.theoretical(int(registers), 1024, 0, (9, 0))
    assert value(metrics, "naive", "theoretical_occupancy_pct") == pytest.approx(
        by_hand.occupancy_pct, abs=0.1
    )


def test_each_step_of_the_ladder_is_faster(measurements: pd.DataFrame) -> None:
    own = measurements[(measurements.family == "sgemm") & (measurements.case == HEADLINE)]
    at = own.set_index("variant")["gflops"]
    ladder = [
        "naive",
        "gmem_coalesced",
        "smem_tiled",
        "blocktile_1d",
        "blocktile_2d",
        "vectorized",
        "warptile",
        "cp_async_pipelined",
        "tma_pipelined",
    ]
    assert list(at[ladder]) == sorted(at[ladder])


def test_parameters_in_the_tables_are_those_that_the_searches_found() -> None:
    rows = table("variants").set_index(["family", "variant"])
    for variant in (v for v in VARIANTS if (v.family, v.name) not in EDITED):
        recorded = json.loads(rows.loc[(variant.family, variant.name), "parameters"])
        assert recorded == dict(variant.parameters), (variant.family, variant.name)


def test_recorded_campaigns_of_several_gpus_are_of_one_commit_whose_answers_are_right() -> None:
    files = [next((ROOT.parent / name / "campaign").glob("*.json")) for name in EVERY]
    assert {door.read(path, Campaign).commit for path in files} == {CAMPAIGN.commit}
    for name in EVERY:
        rows = pd.read_parquet(ROOT.parent / name / "tables" / "oracle.parquet")
        assert set(rows["verdict"]) == {"right"}, name
