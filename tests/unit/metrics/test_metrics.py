import math

import pytest

from captures import captured, needs_captures
from warplog.core.errors import WarplogError
from warplog.metrics import (
    METRICS,
    OPCODE_COUNTER,
    STALL_REASONS,
    absent,
    counters_to_collect,
    dominant_stall,
    dominant_state,
    evaluate,
    evaluate_any,
    occupancy_limiter,
    set_for_opcodes,
)
from warplog.metrics.occupancy import busy_share
from warplog.parsers.ncu import report

CAPTURES = captured(".ncu-rep")
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
GROUPS = {
    "tensor memory",
    "time",
    "stall",
    "occupancy",
    "shared",
    "memory",
    "compute",
    "launch",
    "build",
    "overlap",
}


def values(counters, capability=(9, 0)):
    return {metric.metric: metric for metric in evaluate(counters, capability)}


def numbers(counters, capability=(9, 0)):
    return {metric.metric: metric.value for metric in evaluate(counters, capability)}


def thread_ops(**counts):
    return {f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum": float(n) for op, n in counts.items()}


def test_the_registry_is_consistent():
    for position, metric in enumerate(METRICS.values()):
        assert metric.group in GROUPS
        assert metric.unit
        assert metric.description
        assert bool(metric.counters) == (metric.formula is not None)
        earlier = list(METRICS)[:position]
        assert all(c.strip("@?~") in earlier for c in metric.counters if c.startswith("@"))
    assert all(METRICS[name].name == name for name in METRICS)


def test_the_names_that_tables_and_figures_rely_on_exist():
    promised = [
        *("duration_us", "registers_per_thread", "static_shared_bytes", "shared_bytes_per_block"),
        *("grid_blocks", "block_threads", "waves_per_sm", "theoretical_occupancy_pct"),
        *("achieved_occupancy_pct", "occupancy_limit_warps_blocks", "occupancy_limit_registers_blocks"),
        *("occupancy_limit_shared_memory_blocks", "occupancy_limit_blocks_blocks"),
        *("occupancy_limit_barriers_blocks", "warp_cycles_per_issue", "issue_active_pct"),
        *("eligible_warps", "shared_load_bank_conflicts", "shared_store_bank_conflicts"),
        *("shared_wavefronts", "shared_wavefronts_ideal", "shared_wavefronts_excess"),
        *("shared_conflict_ways", "global_load_sectors_per_request", "global_store_sectors_per_request"),
        *("dram_bytes_read", "dram_bytes_written", "dram_bytes", "l2_bytes", "l1_bytes"),
        *("dram_throughput_pct", "l2_throughput_pct", "l1_throughput_pct", "sm_throughput_pct"),
        *("dram_gbytes_per_s", "l1_hit_pct", "l2_hit_pct", "fp32_flops", "fp64_flops", "fp16_flops"),
        *("tensor_flops", "arithmetic_intensity_flop_per_byte", "instructions_executed", "ipc"),
        *("inst_ffma", "inst_ldg", "inst_lds", "inst_sts", "sm_mhz_in_ncu", "gpu_cycles"),
        *("spill_store_bytes", "spill_load_bytes", "stack_bytes", "sass_instructions"),
        "nsys_duration_us",
    ]
    stalls = [f"stall_{reason}_{unit}" for reason in STALL_REASONS for unit in ("cycles_per_issue", "pct")]
    assert set(promised) | set(stalls) <= set(METRICS)
    assert len(STALL_REASONS) == 19


def test_units_are_those_of_the_names():
    metrics = values(
        {
            "gpu__time_duration.sum": 2500.0,
            "smsp__cycles_elapsed.avg.per_second": 1.98e9,
            "smsp__issue_active.avg.per_cycle_active": 0.25,
            "dram__bytes.sum.per_second": 4.8e12,
        }
    )
    assert metrics["duration_us"].value == 2.5
    assert metrics["sm_mhz_in_ncu"].value == pytest.approx(1980)
    assert metrics["issue_active_pct"].value == 25.0
    assert metrics["dram_gbytes_per_s"].value == pytest.approx(4800)
    assert all(metrics[name].status == "ok" for name in ("duration_us", "sm_mhz_in_ncu", "issue_active_pct"))


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -1.0])
def test_a_counter_without_a_number_is_missing_and_named_never_zero(value):
    duration = values({"gpu__time_duration.sum": value})["duration_us"]
    assert (duration.value, duration.status) == (None, "missing")
    assert value == math.inf or "gpu__time_duration.sum" in duration.reason
    assert all(v.value is None and v.status == "missing" and v.reason for v in values({}).values())


def test_the_reason_tells_a_chip_that_lacks_a_counter_from_a_report_that_lacks_it():
    elsewhere = values({}, (8, 6))["stall_gmma_cycles_per_issue"].reason
    here = values({}, (9, 0))["stall_gmma_cycles_per_issue"].reason
    assert elsewhere == f"a GPU of compute capability 8.6 has no counter {STALL.format('gmma')}"
    assert here == f"counter {STALL.format('gmma')} is not in the report"
    assert "metric set `full`" in values({})["sm_throughput_pct"].reason


def test_a_kernel_that_fills_four_sms_is_busy_all_the_time():
    """Two instructions per cycle on each of four SMs are 8000 in 1000 cycles of the GPU."""
    counters = {"smsp__inst_executed.sum": 8000.0, "sm__inst_executed.avg.per_cycle_active": 2.0}
    counters |= {"gpc__cycles_elapsed.max": 1000.0, "smsp__cycles_elapsed.sum": 16_000.0}
    assert busy_share(numbers(counters), 4) == 1
    assert busy_share(numbers(counters | {"gpc__cycles_elapsed.max": 2000.0}), 4) == 0.5


def test_a_coalesced_access_of_four_bytes_a_thread_takes_four_sectors():
    raw = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
    counters = {raw.format("sectors", "ld"): 400.0, raw.format("requests", "ld"): 100.0}
    counters |= {raw.format("sectors", "st"): 3200.0, raw.format("requests", "st"): 100.0}
    found = values(counters)
    assert found["global_load_sectors_per_request"].value == 4
    assert found["global_store_sectors_per_request"].value == 32
    assert "no global load" in values(dict.fromkeys(counters, 0.0))["global_load_sectors_per_request"].reason


def test_both_names_of_a_counter_are_accepted():
    older, newer = values({"dram__bytes_read.sum": 64.0}), values({"dram__bytes_op_read.sum": 64.0})
    assert older["dram_bytes_read"].value == newer["dram_bytes_read"].value == 64.0


def test_dram_bytes_are_the_total_or_both_of_its_parts():
    parts = {"dram__bytes_read.sum": 10.0, "dram__bytes_write.sum": 5.0}
    assert values(parts)["dram_bytes"].value == 15.0
    assert values({**parts, "dram__bytes.sum": 16.0})["dram_bytes"].value == 16.0
    assert values({"dram__bytes_read.sum": 10.0})["dram_bytes"].value is None
    timed = values({**parts, "gpu__time_duration.sum": 3.0})
    assert timed["dram_gbytes_per_s"].value == pytest.approx(5.0)


def test_flop_counts_weigh_fused_and_packed_instructions():
    scalar = thread_ops(fadd=1, fmul=2, ffma=10, dadd=1, dmul=1, dfma=1, hadd=1, hmul=1, hfma=1)
    metrics = values(scalar)
    assert metrics["fp32_flops"].value == 23.0
    assert metrics["fp64_flops"].value == 4.0
    assert metrics["fp16_flops"].value == 8.0
    packed = values({**scalar, **thread_ops(fadd2=1, fmul2=1, ffma2=1)}, (10, 0))
    assert packed["fp32_flops"].value == 23.0 + 8.0
    assert values(thread_ops(fadd=1, fmul=1))["fp32_flops"].value is None


def test_tensor_flops_are_zero_only_where_that_is_proven():
    none_ran = {OPCODE_COUNTER: 5.0, f"{OPCODE_COUNTER}:FFMA": 5.0}
    ran = {OPCODE_COUNTER: 5.0, f"{OPCODE_COUNTER}:HGMMA": 5.0}
    counted = {"sm__ops_path_tensor_src_bf16_dst_fp32.sum": 2048.0, "sm__ops_path_tensor_src_fp16.sum": 0.0}
    assert values(none_ran)["tensor_flops"].value == 0.0
    assert values(ran)["tensor_flops"].value is None
    assert "metric set `tensor`" in values(ran)["tensor_flops"].reason
    assert values({**ran, **counted})["tensor_flops"].value == 2048.0
    assert values({})["tensor_flops"].value is None


def test_arithmetic_intensity_needs_all_flop_and_some_traffic():
    counters = thread_ops(fadd=0, fmul=0, ffma=50, dadd=0, dmul=0, dfma=0, hadd=0, hmul=0, hfma=0)
    counters |= {OPCODE_COUNTER: 5.0, "dram__bytes.sum": 25.0}
    assert values(counters)["arithmetic_intensity_flop_per_byte"].value == 4.0
    no_traffic = values({**counters, "dram__bytes.sum": 0.0})["arithmetic_intensity_flop_per_byte"]
    assert (no_traffic.value, no_traffic.status) == (None, "missing")
    del counters[OPCODE_COUNTER]
    assert "tensor_flops" in values(counters)["arithmetic_intensity_flop_per_byte"].reason


def test_an_opcode_that_did_not_run_counts_zero_but_only_where_opcodes_were_counted():
    counted = values({OPCODE_COUNTER: 7.0, f"{OPCODE_COUNTER}:FFMA": 7.0})
    assert (counted["inst_ffma"].value, counted["inst_lds"].value) == (7.0, 0.0)
    assert values({})["inst_lds"].value is None
    assert values({OPCODE_COUNTER: None})["inst_lds"].value is None


def test_bank_conflicts_are_wavefronts_beyond_the_ideal():
    metrics = values(
        {"memory_l1_wavefronts_shared": 4325376.0, "memory_l1_wavefronts_shared_ideal": 262144.0}
    )
    assert metrics["shared_wavefronts_excess"].value == 31 * 131072
    assert metrics["shared_conflict_ways"].value == 16.5
    unused = values({"memory_l1_wavefronts_shared": 0.0, "memory_l1_wavefronts_shared_ideal": 0.0})
    assert unused["shared_wavefronts_excess"].value == 0.0
    assert unused["shared_conflict_ways"].reason == "the kernel makes no shared-memory access"


def stalls(**cycles):
    return {STALL.format(r): float(cycles.get(r, 0.0)) for r in STALL_REASONS}


def test_stall_shares_add_up_to_100():
    metrics = values(stalls(long_scoreboard=6, selected=1, gmma=3))
    shares = {
        name: v.value for name, v in metrics.items() if name.startswith("stall_") and name.endswith("_pct")
    }
    assert sum(shares.values()) == pytest.approx(100)
    assert shares["stall_long_scoreboard_pct"] == pytest.approx(60)


def test_a_chip_without_gmma_still_has_shares_but_a_lost_reason_has_none():
    counters = stalls(wait=3, selected=1)
    del counters[STALL.format("gmma")]
    assert values(counters, (8, 6))["stall_wait_pct"].value == pytest.approx(75)
    del counters[STALL.format("membar")]
    assert values(counters, (8, 6))["stall_wait_pct"].value is None


def test_the_dominant_stall_is_never_the_issuing_itself():
    assert dominant_stall(numbers(stalls(selected=9, barrier=2, wait=1))) == "barrier"
    assert dominant_stall(numbers(stalls(selected=9))) is None
    assert dominant_stall(numbers(stalls(selected=9, not_selected=40, wait=1))) == "wait"
    assert dominant_state(numbers(stalls(selected=9, not_selected=40, wait=1))) == "not_selected"
    assert dominant_stall(numbers({})) is None


def limits(**blocks):
    return {f"launch__occupancy_limit_{resource}": float(n) for resource, n in blocks.items()}


def test_the_occupancy_limiter_is_the_scarcest_resource_and_all_of_them_at_a_tie():
    assert occupancy_limiter(numbers(limits(warps=8, registers=3, shared_mem=28, blocks=32))) == (
        "registers",
    )
    tie = occupancy_limiter(numbers(limits(warps=4, registers=4, shared_mem=28, blocks=32, barriers=16)))
    assert set(tie) == {"warps", "registers"}
    assert occupancy_limiter(numbers({})) == ()


def test_shared_memory_that_the_driver_fitted_to_the_other_limits_is_no_limiter():
    fitted = limits(warps=6, registers=1, shared_mem=1, blocks=16)
    sizes = {
        "device__attribute_max_shared_memory_per_multiprocessor": 102_400.0,
        "launch__shared_mem_per_block_allocated": 17_408.0,
    }
    assert values({**fitted, **sizes})["occupancy_limit_shared_memory_blocks"].value == 5.0
    assert occupancy_limiter(numbers({**fitted, **sizes})) == ("registers",)
    scarce = limits(warps=6, registers=4, shared_mem=1, blocks=16)
    assert occupancy_limiter(numbers({**scarce, **sizes})) == ("shared_memory",)


def test_a_denied_capture_has_every_metric_without_a_value():
    evaluated = absent("denied", "no permission")
    assert [v.metric for v in evaluated] == [v.metric for v in evaluate({})]
    assert {(v.value, v.status, v.reason) for v in evaluated} == {(None, "denied", "no permission")}


def test_the_list_to_collect_follows_the_chip():
    hopper, ampere, blackwell = (counters_to_collect("lean", c) for c in ((9, 0), (8, 6), (12, 0)))
    assert STALL.format("gmma") in hopper
    assert STALL.format("gmma") not in ampere + blackwell
    assert STALL.format("imc_miss") in hopper + ampere
    assert STALL.format("imc_miss") not in blackwell
    assert "dram__bytes.sum" in blackwell
    assert not {"dram__bytes_read.sum", "dram__bytes_op_read.sum"} & set(blackwell)
    assert "dram__bytes.sum" not in counters_to_collect("lean", (8, 7))  # shares the host's memory


def test_an_unknown_chip_gets_what_every_chip_has():
    anywhere = set(counters_to_collect("full"))
    for capability in [(7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (11, 0), (12, 0), (12, 1)]:
        assert anywhere <= set(counters_to_collect("full", capability))


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0)])
def test_larger_sets_contain_the_smaller_and_no_name_twice(capability):
    lean, tensor, full = (counters_to_collect(name, capability) for name in ("lean", "tensor", "full"))
    assert set(lean) <= set(tensor) <= set(full)
    assert len(full) == len(set(full))
    assert not [name for name in full if "|" in name or "?" in name or ":" in name or "@" in name]
    assert not [name for name in full if name.startswith("device__")]


def test_the_collected_counters_give_every_metric_on_a_hopper():
    reported = {"profiler__replayer_passes": 24.0}  # by ncu itself, with whatever it collects
    counters = dict.fromkeys(counters_to_collect("full", (9, 0)), 1.0) | reported
    assert {v.metric: v.reason for v in evaluate(counters, (9, 0)) if v.status != "ok"} == {}
    lean = dict.fromkeys(counters_to_collect("lean", (9, 0)), 1.0) | reported
    lost = {v.metric for v in evaluate(lean, (9, 0)) if v.status != "ok"}
    assert lost == {"pipe_xu_pct", "sm_throughput_pct", "l1_throughput_pct"}


def of_any(counters, capability=(9, 0)):
    return {metric.metric: metric for metric in evaluate_any(counters, capability)}


def test_the_clock_of_a_report_is_that_of_its_cycles_and_duration():
    counters = {"smsp__cycles_elapsed.avg.per_second": 530.0e6, "gpu__time_duration.sum": 2000.0}
    assert of_any(counters)["sm_mhz_in_ncu"].value == pytest.approx(530)
    counters["gpc__cycles_elapsed.max"] = 1169.0
    assert of_any(counters)["sm_mhz_in_ncu"].value == pytest.approx(584.5)
    assert values(counters)["sm_mhz_in_ncu"].value == pytest.approx(530)  # as campaigns have recorded it
    counters["gpc__cycles_elapsed.avg.per_second"] = 584.3e6
    assert of_any(counters)["sm_mhz_in_ncu"].value == pytest.approx(584.3)


def test_the_counters_of_every_conflict_and_of_the_memory_system_are_read_but_not_collected():
    counters = {
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 1160.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 71.0,
    }
    metrics = of_any(counters)
    assert (metrics["shared_bank_conflicts"].value, metrics["memory_throughput_pct"].value) == (1160, 71)
    campaign = {v.metric for v in (*evaluate(counters), *absent("denied", "no permission"))}
    assert not {"shared_bank_conflicts", "memory_throughput_pct"} & campaign
    for capability in [None, (8, 0), (9, 0), (12, 0)]:
        assert not set(counters) & set(counters_to_collect("full", capability))


def per_cycle(**rates):
    return {f"{name}.per_cycle_elapsed": value for name, value in thread_ops(**rates).items()}


def test_operations_per_cycle_and_a_traffic_rate_give_flops_and_intensity():
    rates = per_cycle(fadd=0.5, fmul=0, ffma=2, dadd=0, dmul=0, dfma=1, hadd=0, hmul=0, hfma=0)
    counters = rates | {
        "smsp__cycles_elapsed.avg": 1000.0,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.0,
        "dram__bytes.sum.per_second": 650.0e9,
        "gpu__time_duration.sum": 2.0,
    }
    metrics = of_any(counters, (8, 6))
    assert (metrics["fp32_flops"].value, metrics["fp64_flops"].value) == (4500, 2000)
    assert (metrics["fp16_flops"].value, metrics["tensor_flops"].value, metrics["dram_bytes"].value) == (
        0,
        0,
        1300,
    )
    assert metrics["arithmetic_intensity_flop_per_byte"].value == pytest.approx(5)
    counted = of_any(counters | thread_ops(fadd=1, fmul=1, ffma=1), (8, 6))
    assert counted["fp32_flops"].value == 4


def test_executed_threads_per_opcode_give_flops():
    threads = "sass__thread_inst_executed_true_per_opcode"
    metrics = of_any(
        {threads: 90.0, f"{threads}:FFMA": 32.0, f"{threads}:HFMA2": 8.0, f"{threads}:IMAD": 50.0}
    )
    assert (metrics["fp32_flops"].value, metrics["fp16_flops"].value, metrics["fp64_flops"].value) == (
        64,
        32,
        0,
    )
    assert of_any({threads: 90.0})["fp32_flops"].value is None


def test_threads_per_instruction_follow_from_executed_threads_unless_a_report_states_them():
    counted = {"sass__thread_inst_executed_true_per_opcode": 90.0, OPCODE_COUNTER: 5.0}
    assert of_any(counted)["threads_per_instruction"].value == 18
    stated = counted | {"smsp__thread_inst_executed_per_inst_executed.ratio": 31.0}
    assert of_any(stated)["threads_per_instruction"].value == 31
    assert of_any({OPCODE_COUNTER: 5.0})["threads_per_instruction"].value is None
    assert not [name for name in counters_to_collect("full", (9, 0)) if name.startswith("sass__thread")]


def test_tensor_memory_is_measured_on_gpus_that_have_it_and_no_row_of_others():
    read, written = "sm__mem_tensor_reads_op_{}.sum", "sm__mem_tensor_writes_op_{}.sum"
    counters = {
        "sm__mem_tensor_bytes_allocated.avg.per_cycle_active": 131072.0,
        read.format("ldt"): 10.0,
        read.format("utcmma_matrix_c"): 20.0,
        written.format("utccp"): 3.0,
    }
    metrics = numbers(counters | {read.format("utcmma_matrix_a_sp_sf"): 5.0}, (10, 0))
    assert metrics["tensor_memory_bytes_allocated"] == 131072
    assert (metrics["tensor_memory_load_reads"], metrics["tensor_memory_copy_writes"]) == (10, 3)
    assert metrics["tensor_memory_mma_reads"] == 25
    rubin = counters | {read.format("utcmma_matrix_a_or_metadata"): 6.0}
    assert numbers(rubin, (10, 7))["tensor_memory_mma_reads"] == 26
    lacking = values(counters, (10, 0))
    assert lacking["tensor_memory_mma_reads"].value is None
    assert "metric set `tensor`" in lacking["mma_2cta_instructions"].reason
    for capability in [(8, 9), (9, 0), (12, 0), None]:
        assert not [name for name in values(counters, capability) if "tensor_memory" in name]
        assert not [name for name in counters_to_collect("full", capability) if "mem_tensor" in name]
    assert not [name for name in counters_to_collect("lean", (10, 0)) if "mem_tensor" in name]


def test_a_chip_without_a_warp_state_has_the_shares_of_the_others():
    counters = stalls(wait=3, selected=1)
    del counters[STALL.format("tex_throttle")]
    rubin = values(counters, (10, 7))
    assert rubin["stall_wait_pct"].value == pytest.approx(75)
    assert "no counter" in rubin["stall_tex_throttle_pct"].reason
    for capability in [(9, 0), (10, 0), None]:
        assert values(counters, capability)["stall_wait_pct"].value is None


def test_an_idle_tensor_pipe_proves_nothing_on_a_chip_with_a_second_one():
    idle = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.0}
    assert of_any(idle, (8, 6))["tensor_flops"].value == 0
    assert of_any(idle, (10, 0))["tensor_flops"].value is None
    assert of_any(idle, None)["tensor_flops"].value is None
    used = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.1}
    assert of_any(used, (8, 6))["tensor_flops"].value is None


def test_sectors_give_the_bytes_of_l2():
    assert of_any({"lts__t_sectors.sum": 10.0})["l2_bytes"].value == 320
    assert of_any({"lts__t_sectors.sum": 10.0, "lts__t_bytes.sum": 300.0})["l2_bytes"].value == 300


def sampled(**samples):
    names = {f"smsp__pcsamp_warps_issue_stalled_{state}": float(count) for state, count in samples.items()}
    everywhere = [r for r in STALL_REASONS if r not in {"gmma", "imc_miss", "no_instruction"}]
    return {
        f"smsp__pcsamp_warps_issue_stalled_{state}": 0.0 for state in (*everywhere, "no_instructions")
    } | names


def test_samples_give_the_warp_states_of_a_report_without_their_counters():
    counters = sampled(selected=20, long_scoreboard=60, no_instructions=20)
    found = of_any(counters, (8, 6))
    assert found["stall_long_scoreboard_pct"].value == pytest.approx(60)
    assert found["stall_no_instruction_pct"].value == pytest.approx(20)
    assert found["warp_cycles_per_issue"].value == pytest.approx(5)
    assert found["stall_long_scoreboard_cycles_per_issue"].value == pytest.approx(3)
    assert dominant_stall({metric: v.value for metric, v in found.items()}) == "long_scoreboard"
    hopper = of_any(sampled(selected=10, warpgroup_arrive=30), (9, 0))
    assert hopper["stall_gmma_pct"].value == pytest.approx(75)


def test_samples_are_not_mixed_with_counters():
    counters = sampled(selected=20, long_scoreboard=60) | stalls(wait=3, selected=1)
    assert of_any(counters)["stall_long_scoreboard_pct"].value == 0
    partial = sampled(selected=20, long_scoreboard=60) | {STALL.format("wait"): 3.0}
    assert of_any(partial)["stall_long_scoreboard_pct"].value is None


def test_an_unknown_set_is_refused():
    with pytest.raises(WarplogError, match="'huge'"):
        counters_to_collect("huge")


def test_kernels_with_tensor_instructions_or_unknown_code_need_the_tensor_set():
    assert set_for_opcodes({"FFMA": 3, "LDG.E.128": 1}) == "lean"
    assert set_for_opcodes({"HGMMA.64x256x16.F32.BF16": 3}) == "tensor"
    assert set_for_opcodes({}) == set_for_opcodes(None) == "tensor"
    assert set_for_opcodes({"HFMA2.MMA": 3}) == "lean"  # a scalar instruction in spite of its name


@needs_captures
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures_of_others_evaluate_to_plausible_numbers(path):
    for launch in report.read(path).launches:
        metrics = {v.metric: v.value for v in evaluate(launch.counters, launch.compute_capability)}
        assert metrics["duration_us"] > 1
        assert 300 < metrics["sm_mhz_in_ncu"] < 3000
        assert 0 < metrics["theoretical_occupancy_pct"] <= 100
        for name, value in metrics.items():
            assert value is None or not name.startswith("inst_") or value >= 0
        latency = metrics["warp_cycles_per_issue"]
        if latency is not None:
            states = (metrics[f"stall_{reason}_cycles_per_issue"] or 0.0 for reason in STALL_REASONS)
            assert sum(states) == pytest.approx(latency, rel=0.1)
        if metrics["inst_ffma"] is not None:
            opcodes = (n for name, n in launch.counters.items() if name.startswith(f"{OPCODE_COUNTER}:"))
            assert sum(opcodes) == launch.counters[OPCODE_COUNTER]
