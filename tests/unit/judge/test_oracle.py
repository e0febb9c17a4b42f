"""Verdicts of the oracle: exact, within a tolerance, by name; missing or denied numbers give no verdict."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from msgspec import structs

import shipped_families
from small_campaign import FOLDER
from warplog.analysis.quantities import Quantities
from warplog.catalog.contract import Probe, matched
from warplog.catalog.family import load_family
from warplog.core.columns import MEASUREMENTS, METRICS
from warplog.core.errors import WarplogError
from warplog.core.formula import evaluate
from warplog.judge.oracle import Oracle
from warplog.metrics import STALL_REASONS
from warplog.plan.files import Files
from warplog.plan.making import make_plan
from warplog.plan.selection import choose_families
from warplog.records import stages
from warplog.tables import files

PROJECT = Path(__file__).parents[3]
FAMILY = shipped_families.FAMILIES["oracle"]
HOPPER = shipped_families.FAMILIES["oracle_sm90"]
LAUNCH = {"registers_per_thread": 128, "block_threads": 256, "shared_bytes_per_block": 1024}


def timed(case, **columns):
    key = {"family": "oracle", "variant": "probes", "case": case, "size": 1, "status": "ok", "reason": ""}
    return {**key, **columns}


def counted(case, kernel="k(float *)", status="ok", reason="", tool="ncu", **metrics):
    key = {"family": "oracle", "variant": "probes", "case": case, "kernel": kernel, "launch": 0, "unit": "u"}
    key |= {"status": status, "reason": reason, "tool": tool}
    return [{**key, "metric": name, "value": value} for name, value in metrics.items()]


def measured(*rows, _frames={}):  # noqa: B006
    """Returns a table of measurements, made once: it has many columns, and most probes need only the clock."""
    key = repr(rows)
    if key not in _frames:
        _frames[key] = files.as_frame(list(rows), MEASUREMENTS, "m")
    return _frames[key]


def judge(probe, measurements=(), metrics=()):
    """Returns the row of a probe with one case, judged for an H200."""
    numbers = Quantities(measured(*measurements), files.as_frame(list(metrics), METRICS, "m"))
    family = structs.replace(FAMILY, probes=(probe,))
    (row,) = Oracle(numbers, (9, 0)).judge([family])
    return row


def stalls(**pct):
    return {f"stall_{reason}_pct": pct.get(reason, 0.0) for reason in STALL_REASONS}


@pytest.mark.parametrize(("value", "verdict"), [(7.0, "right"), (7.000001, "wrong"), (6.0, "wrong")])
def test_without_a_tolerance_only_the_same_number_is_right(value, verdict):
    probe = Probe(name="ways", cases=("bank_7",), quantity="shared_conflict_ways", expected="amount")
    row = judge(probe, metrics=counted("bank_7", shared_conflict_ways=value))
    assert (row["verdict"], row["tolerance"], row["expected"]) == (verdict, "exact", "7")
    assert row["deviation"] == pytest.approx(value - 7)


@pytest.mark.parametrize(
    ("value", "verdict"), [(101.9, "right"), (103.1, "wrong"), (97.1, "right"), (96.9, "wrong")]
)
def test_relative_and_absolute_tolerance_add_up(value, verdict):
    probe = Probe(
        name="spin",
        cases=("spin_100us",),
        quantity="median_us",
        expected="amount / 1000",
        relative=0.02,
        absolute=1,
    )
    row = judge(probe, [timed("spin_100us", median_us=value)])
    assert (row["verdict"], row["tolerance"], row["unit"]) == (verdict, "2 % + 1 us", "us")


def test_what_another_case_takes_is_taken_off_first():
    probe = Probe(
        name="spin", cases=("spin_100us",), quantity="median_us", expected="amount / 1000", minus="spin_0"
    )
    rows = [timed("spin_100us", median_us=102.5), timed("spin_0", median_us=2.5)]
    row = judge(probe, rows)
    assert (row["verdict"], row["measured"], row["quantity"]) == ("right", "100", "median_us - spin_0")
    assert "spin_0" in judge(probe, rows[:1])["reason"]


def test_expected_may_name_other_quantities_of_the_case():
    probe = Probe(
        name="spin", cases=("spin_1980000c",), quantity="median_us", expected="amount / sm_mhz", absolute=1
    )
    assert judge(probe, [timed("spin_1980000c", median_us=1000.5, sm_mhz=1980.0)])["verdict"] == "right"
    missing = judge(probe, [timed("spin_1980000c", median_us=1000.5)])
    assert (missing["verdict"], missing["expected"]) == ("not_measured", "")
    assert "no sm_mhz" in missing["reason"]


@pytest.mark.parametrize(("value", "verdict"), [(1.0, "right"), (500.0, "right"), (0.0, "wrong")])
def test_at_least_has_no_upper_end(value, verdict):
    probe = Probe(name="spills", cases=("spill",), quantity="inst_stl", expected=1, at_least=True)
    row = judge(probe, metrics=counted("spill", inst_stl=value))
    assert (row["verdict"], row["tolerance"]) == (verdict, "at least")


@pytest.mark.parametrize(("value", "verdict"), [(98.1, "right"), (97.9, "wrong")])
def test_at_least_has_its_tolerance_at_the_lower_end(value, verdict):
    probe = Probe(
        name="spin", cases=("spin_0",), quantity="median_us", expected=100, relative=0.02, at_least=True
    )
    assert judge(probe, [timed("spin_0", median_us=value)])["verdict"] == verdict


def test_dominant_stall_is_judged_by_name_and_says_its_share():
    probe = Probe(name="stall", cases=("stall_wait",), quantity="dominant_stall", expected="wait")
    row = judge(probe, metrics=counted("stall_wait", **stalls(wait=70.0, selected=25.0)))
    assert (row["verdict"], row["measured"], row["deviation"]) == ("right", "wait", None)
    assert "70 %" in row["reason"]
    row = judge(probe, metrics=counted("stall_wait", **stalls(wait=30.0, barrier=60.0)))
    assert (row["verdict"], row["measured"]) == ("wrong", "barrier")


def test_a_stall_reason_that_the_gpu_does_not_have_is_no_verdict():
    shares = stalls(wait=70.0)
    del shares["stall_imc_miss_pct"]
    rows = counted("stall_imc_miss", **shares)
    rows += counted("stall_imc_miss", status="missing", reason="no such counter", stall_imc_miss_pct=None)
    row = judge(
        Probe(name="stall", cases=("stall_imc_miss",), quantity="dominant_stall", expected="imc_miss"),
        metrics=rows,
    )
    assert (row["verdict"], row["reason"]) == ("not_measured", "stall_imc_miss_pct: missing: no such counter")


def test_limiter_is_right_where_it_is_among_those_that_limit_alike_and_says_what_would_lift_it():
    limits = {"warps": 8, "registers": 2, "blocks": 32, "shared_memory": 99, "barriers": 32}
    rows = {f"occupancy_limit_{name}_blocks": float(n) for name, n in limits.items()} | LAUNCH
    probe = Probe(name="limit", cases=("by_registers",), quantity="occupancy_limiter", expected="registers")
    row = judge(probe, metrics=counted("by_registers", **rows))
    assert (row["verdict"], row["measured"]) == ("right", "registers")
    assert row["reason"] == "16 warps per SM; 80 registers would allow 24"
    tied = counted("by_registers", **(rows | {"occupancy_limit_warps_blocks": 2.0}))
    assert judge(probe, metrics=tied)["measured"] == "warps, registers"
    assert judge(probe, metrics=tied)["verdict"] == "right"
    other = counted("by_registers", **(rows | {"occupancy_limit_warps_blocks": 1.0}))
    assert judge(probe, metrics=other)["verdict"] == "wrong"


def test_occupancy_by_formula_takes_what_the_driver_reserves_off():
    probe = Probe(
        name="occupancy",
        cases=("by_registers",),
        quantity="theoretical_occupancy_pct",
        expected="occupancy_by_formula_pct",
    )
    row = judge(probe, metrics=counted("by_registers", theoretical_occupancy_pct=25.0, **LAUNCH))
    assert (row["verdict"], row["expected"]) == ("right", "25")
    shared = {"registers_per_thread": 32, "block_threads": 256, "shared_bytes_per_block": 57 * 1024}
    row = judge(probe, metrics=counted("by_registers", theoretical_occupancy_pct=50.0, **shared))
    assert (row["verdict"], row["expected"]) == ("right", "50"), "four blocks of 57 KiB fit into 228 KiB"


@pytest.mark.parametrize("quantity", ["dram_bytes_read", "dominant_stall", "occupancy_limiter"])
def test_denied_counters_are_no_verdict(quantity):
    names = {"dram_bytes_read": None, **dict.fromkeys(stalls()), "occupancy_limit_warps_blocks": None}
    expected = {"dominant_stall": "wait", "occupancy_limiter": "warps"}.get(quantity, "4*n")
    denied = counted("copy_96Mi", status="denied", reason="counters are not permitted", **names)
    row = judge(Probe(name="p", cases=("copy_96Mi",), quantity=quantity, expected=expected), metrics=denied)
    assert (row["verdict"], row["measured"]) == ("not_measured", "")
    assert "denied: counters are not permitted" in row["reason"]


def test_a_case_that_never_ran_is_no_verdict():
    row = judge(Probe(name="p", cases=("copy_96Mi",), quantity="dram_bytes_read", expected="4*n"))
    assert row["verdict"] == "not_measured"
    assert "not measured at copy_96Mi" in row["reason"]


def test_a_wrong_answer_is_no_verdict():
    bad = timed("spin_0") | {"status": "wrong", "reason": "y is all zero"}
    row = judge(Probe(name="p", cases=("spin_0",), quantity="median_us", expected=0), [bad])
    assert (row["verdict"], row["reason"]) == ("not_measured", "probes at spin_0: wrong: y is all zero")


def test_what_the_compiler_says_is_that_of_the_kernel_that_ran():
    built = [
        *counted("", kernel="twin(float const*)", tool="ptxas", spill_store_bytes=0.0),
        *counted("", kernel="void spills<7>(float const*)", tool="ptxas", spill_store_bytes=96.0),
    ]
    launched = counted("by_registers", kernel="twin(const float *)", duration_us=2.0)
    launched += counted("spill", kernel="void spills<(int)7>(const float *)", duration_us=3.0)
    for case, expected in (("by_registers", 0), ("spill", 96)):
        row = judge(
            Probe(name="spills", cases=(case,), quantity="spill_store_bytes", expected=expected),
            metrics=built + launched,
        )
        assert row["verdict"] == "right", row


@pytest.mark.parametrize(
    ("quantity", "expected", "remedy"),
    [
        ("median_su", 1, "did you mean 'median_us'"),
        ("dominant_stall", "waiting", "did you mean 'wait'"),
        ("occupancy_limiter", "smem", "known: barriers, blocks"),
    ],
)
def test_a_misspelt_probe_is_refused_by_name(quantity, expected, remedy):
    with pytest.raises(WarplogError, match=remedy):
        judge(Probe(name="p", cases=("spin_0",), quantity=quantity, expected=expected))


def family_with(tmp_path, **probe):
    data = yaml.safe_load(FAMILY.file.read_text())
    data["probes"] = [{"probe": "p", "cases": ["spin_0"], "quantity": "median_us", "expected": 0} | probe]
    folder = tmp_path / "oracle"
    folder.mkdir()
    (folder / "probes.cu").touch()
    (folder / "family.yaml").write_text(yaml.safe_dump(data))
    return folder / "family.yaml"


@pytest.mark.parametrize(
    ("probe", "error"),
    [
        ({"cases": ["spin_1"]}, "unknown name 'spin_1'"),
        ({"minus": "spin_00"}, "did you mean 'spin_0'"),
        ({"toleranz": 1}, "unknown key 'toleranz'"),
        ({"relative": -1}, "relative"),
    ],
)
def test_a_probe_that_does_not_fit_is_refused(tmp_path, probe, error):
    with pytest.raises(WarplogError, match=error):
        load_family(family_with(tmp_path, **probe))


def test_patterns_name_cases_in_their_order_and_strangers_stay():
    assert matched(["b_*", "a"], ["a", "b_2", "b_1", "c"]) == ("a", "b_2", "b_1")
    assert matched(["x_*", "a"], ["a"]) == ("a", "x_*")


def test_all_probes_of_the_project_can_be_judged():
    nothing = Quantities(files.as_frame([], MEASUREMENTS, "m"), files.as_frame([], METRICS, "m"))
    rows = list(Oracle(nothing, (9, 0)).judge([FAMILY, HOPPER]))
    assert {row["verdict"] for row in rows} == {"not_measured"}
    assert all(row["reason"] for row in rows)
    stalls_known = {r["expected"] for r in rows if r["quantity"] == "dominant_stall"}
    assert stalls_known == set(STALL_REASONS) - {"selected", "misc", "dispatch_stall", "branch_resolving"}
    ways = {r["case"] for r in rows if r["quantity"] == "shared_conflict_ways"}
    assert ways >= {f"bank_{n}" for n in range(1, 33)}


def test_a_jump_resolves_for_longer_than_the_cycle_asked_for_and_shorter_than_it_waits():
    """Holds in the recorded loops; ptxas schedules a jump for at least five cycles, all but one of them `wait`."""
    recorded = pd.read_parquet(FOLDER / "tables" / "metrics.parquet")
    kernels = recorded[(recorded["tool"] == "ncu") & (recorded["case"] == "4096")].pivot_table(
        index=["variant", "launch"], columns="metric", values="value"
    )
    stalled = kernels["stall_branch_resolving_cycles_per_issue"] * kernels["instructions_executed"]
    assert (stalled / kernels["inst_bra"]).between(2.5, 3.5).all()


JUMPING = {"inst_bra": 13.0, "instructions_executed": 20.0}
OF_A_LAUNCH = {**JUMPING, "sm_mhz": 1980.0, "occupancy_by_formula_pct": 25.0}
NUMBERS = [
    structs.replace(probe, cases=(case,))
    for probe in FAMILY.probes
    for case in probe.cases
    if probe.quantity not in ("dominant_stall", "occupancy_limiter")
]


def judged(probe, number):
    """Returns the row of a probe whose quantity is `number`."""
    case = probe.cases[0]
    if probe.quantity in MEASUREMENTS:
        rows = [timed(case, **{probe.quantity: number, "sm_mhz": 1980.0})]
        return judge(probe, rows + [timed(probe.minus, **{probe.quantity: 0.0})] * bool(probe.minus))
    rows = counted(case, **(LAUNCH | JUMPING | {probe.quantity: number}))
    rows += counted(probe.minus, **{probe.quantity: 0.0}) if probe.minus else []
    return judge(probe, [timed(case, sm_mhz=1980.0)], rows)


@pytest.mark.parametrize("quantity", sorted({probe.quantity for probe in NUMBERS}))
def test_each_probe_is_right_at_the_truth_and_wrong_beside_it(quantity):
    for probe in [probe for probe in NUMBERS if probe.quantity == quantity]:
        values = {**FAMILY.case(probe.cases[0]).values, **OF_A_LAUNCH}
        truth = evaluate(probe.expected, values, "test")
        assert judged(probe, truth)["verdict"] == "right", probe.cases
        wrong = 0.9 * truth - 10 * max(probe.absolute, 1)
        assert judged(probe, wrong)["verdict"] == "wrong", probe.cases
        beyond = "right" if probe.at_least else "wrong"
        assert judged(probe, truth + (truth - wrong))["verdict"] == beyond, probe.cases


@pytest.mark.parametrize("config", [{}, {"families": "sgemm", "variants": "naive", "cases": "4096"}])
def test_the_oracle_needs_no_setting_and_is_part_of_no_campaign(config):
    made = make_plan({**config, "mode": "live", "gpu": "h200"}, PROJECT)
    assert set(made.oracle().chosen) == {"oracle", "oracle_sm90"}
    assert not {"oracle", "oracle_sm90"} & set(made.chosen)
    assert "results/extract/h200/oracle.json" in Files(made.oracle()).record_files(stages.EXTRACT)
    assert not [f for f in Files(made).record_files(stages.EXTRACT) if "oracle" in f]


def test_it_stays_a_target_of_its_own_when_it_is_recorded():
    recorded = {"oracle": structs.replace(FAMILY, draft=False)}
    assert choose_families("all", recorded) == {}
    assert choose_families("oracle", recorded) == recorded


def test_all_its_cases_are_run_and_only_the_spins_are_timed():
    made = make_plan({"mode": "live", "gpu": "h200", "cases": "4096"}, PROJECT)
    family = made.family_plan("oracle")
    assert list(family.cases) == list(FAMILY.cases)
    assert family.captured_cases()["probes"] == tuple(FAMILY.profile_cases)
