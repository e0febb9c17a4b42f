"""Every metric, in the order in which tables and pages show them.

To add a metric, add one `Metric(...)` here: the counters to collect are derived from it. For the names and
meanings of the counters see the Nsight Compute Kernel Profiling Guide, section "Metrics Reference".
"""

from types import MappingProxyType

from warplog.metrics import metric as f
from warplog.metrics.metric import Metric
from warplog.metrics.names import (
    ELAPSED,
    EVERYWHERE,
    OPCODE_COUNTER,
    OPCODES,
    SOME_CHIPS,
    STALL,
    STALL_REASONS,
    TENSOR_MEMORY,
    TENSOR_OPCODES,
    TENSOR_PATH,
    TENSOR_TYPES,
    THREAD_OP,
    THREADS_COUNTER,
    THREADS_NOT_PREDICATED_OFF,
    THREADS_PER_INSTRUCTION,
)

# fmt: off
_TIME = (
    Metric("duration_us", "us", "time", ("gpu__time_duration.sum",), f.times(1e-3),
           "duration of one kernel under ncu, with caches flushed before it"),
    Metric("nsys_duration_us", "us", "time", (), None,
           "time during which any kernel or copy of a launch ran under nsys, median of back-to-back launches"),
    Metric("nsys_kernel_duration_us", "us", "time", (), None,
           "duration of one kernel of a launch under nsys, median of back-to-back launches"),
    Metric("nsys_launches", "launch", "time", (), None, "launches of the kernel that nsys recorded"),
    Metric("nsys_total_us", "us", "time", (), None,
           "total time of all launches of the kernel, or of all copies of a kind, that nsys recorded"),
    Metric("nsys_device", "index", "time", (), None, "number of the GPU, as CUDA counts them"),
    Metric("nsys_bytes", "byte", "time", (), None, "bytes moved or set by all copies or memsets of a kind"),
    Metric("ncu_launches", "launch", "time", (), None,
           "launches over which a page of ncu's --print-summary shows averages"),
    Metric("ncu_passes", "pass", "time", ("profiler__replayer_passes",), f.same,
           "times that ncu ran the kernel until it had all counters"),
    Metric("gpu_cycles", "cycle", "time", ("gpc__cycles_elapsed.max",), f.same,
           "elapsed GPU cycles of one kernel"),
    Metric("sm_mhz_in_ncu", "MHz", "time",
           ("gpc__cycles_elapsed.avg.per_second|smsp__cycles_elapsed.avg.per_second",), f.times(1e-6),
           "SM clock under ncu; durations are comparable only at equal clocks"),
)
_OVERLAP = (
    Metric("wall_us", "us", "overlap", (), None,
           "first start to last end of a launch with copies, under nsys"),
    Metric("kernel_us", "us", "overlap", (), None, "part of wall_us during which a kernel ran"),
    Metric("to_device_us", "us", "overlap", (), None, "part of wall_us during which a copy to the device ran"),
    Metric("to_host_us", "us", "overlap", (), None, "part of wall_us during which a copy to the host ran"),
    Metric("copy_us", "us", "overlap", (), None, "part of wall_us during which any copy ran"),
    Metric("copy_hidden_pct", "%", "overlap", (), None,
           "share of the copy time during which a kernel or a copy in the other direction ran"),
    Metric("longest_engine_pct", "%", "overlap", (), None,
           "busy time of the busiest engine (kernels, copies to device, copies to host), in percent of wall_us"),
)
_LAUNCH = (
    Metric("grid_blocks", "block", "launch", ("launch__grid_size",), f.same, "blocks in the grid"),
    Metric("block_threads", "thread", "launch", ("launch__block_size",), f.same, "threads in a block"),
    Metric("waves_per_sm", "wave", "launch", ("launch__waves_per_multiprocessor",), f.same,
           "number of times the grid fills all SMs"),
    Metric("registers_per_thread", "register", "launch", ("launch__registers_per_thread",), f.same,
           "registers per thread"),
    Metric("static_shared_bytes", "byte", "launch", ("launch__shared_mem_per_block_static",), f.same,
           "static shared memory per block"),
    Metric("shared_bytes_per_block", "byte", "launch", ("launch__shared_mem_per_block",), f.same,
           "static, dynamic and driver-reserved shared memory per block"),
)
_OCCUPANCY = (
    Metric("theoretical_occupancy_pct", "%", "occupancy",
           ("sm__maximum_warps_per_active_cycle_pct",), f.same,
           "warps per SM that the launch configuration allows, in percent of the SM's maximum"),
    Metric("achieved_occupancy_pct", "%", "occupancy",
           ("sm__warps_active.avg.pct_of_peak_sustained_active",), f.same,
           "average number of active warps per SM, in percent of the SM's maximum"),
    *(Metric(f"occupancy_limit_{resource}_blocks", "block", "occupancy",
             (f"launch__occupancy_limit_{raw}",), f.same, f"blocks per SM that {meaning}")
      for resource, raw, meaning in (
          ("warps", "warps", "the warp slots allow"),
          ("registers", "registers", "the registers allow"),
          ("blocks", "blocks", "the block slots allow"),
          ("barriers", "barriers", "the hardware barriers allow"))),
    Metric("occupancy_limit_shared_memory_blocks", "block", "occupancy",
           ("launch__occupancy_limit_shared_mem", "device__attribute_max_shared_memory_per_multiprocessor?",
            "launch__shared_mem_per_block_allocated?",
            *(f"@occupancy_limit_{other}_blocks" for other in ("warps", "registers", "blocks"))),
           f.shared_memory_limit,
           "blocks per SM that the largest shared memory allows, or the configured one if that is the limiter"),
)
_STALL = (
    Metric("warp_cycles_per_issue", "cycle/inst", "stall",
           ("smsp__average_warp_latency_per_inst_issued.ratio",), f.same,
           "cycles between two issued instructions of a warp: the sum over all states"),
    Metric("issue_active_pct", "%", "stall",
           ("smsp__issue_active.avg.per_cycle_active",), f.times(100.0),
           "share of active cycles in which a scheduler issued; stalls matter only if this is well below 100"),
    Metric("eligible_warps", "warp", "stall",
           ("smsp__warps_eligible.avg.per_cycle_active",), f.same,
           "warps per scheduler that were ready to issue, per cycle"),
    *(Metric(f"stall_{reason}_cycles_per_issue", "cycle/inst", "stall",
             (STALL.format(reason),), f.same, f"cycles per issued instruction that a warp spent in {reason}")
      for reason in STALL_REASONS),
    *(Metric(f"stall_{reason}_pct", "%", "stall",
             (f"@stall_{reason}_cycles_per_issue",
              *(f"@stall_{other}_cycles_per_issue~" for other in EVERYWHERE),
              *(f"@stall_{other}_cycles_per_issue?" for other in SOME_CHIPS)), f.share_pct,
             f"share of a warp's cycles spent in {reason}; the shares of all states add up to 100")
      for reason in STALL_REASONS),
)
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
_NO_SHARED = "the kernel makes no shared-memory access"
_SHARED = (
    Metric("shared_bank_conflicts", "conflict", "shared",
           ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",), f.same,
           "hardware counter for all accesses, also atomics, asynchronous copies and matrix loads; campaigns do not"
           " collect it"),
    Metric("shared_wavefronts", "wavefront", "shared", ("memory_l1_wavefronts_shared",), f.same,
           "wavefronts that the kernel's shared-memory accesses take"),
    Metric("shared_wavefronts_ideal", "wavefront", "shared",
           ("memory_l1_wavefronts_shared_ideal",), f.same,
           "wavefronts that the same accesses would take without bank conflicts"),
    Metric("shared_wavefronts_excess", "wavefront", "shared",
           ("@shared_wavefronts", "@shared_wavefronts_ideal"), f.difference,
           "wavefronts lost to bank conflicts: zero proves that the access pattern has none"),
    Metric("shared_conflict_ways", "ratio", "shared",
           ("@shared_wavefronts", "@shared_wavefronts_ideal"), f.quotient(_NO_SHARED),
           "wavefronts per ideal wavefront: 1 without conflicts, 32 at worst"),
    Metric("shared_load_bank_conflicts", "conflict", "shared", (_CONFLICTS.format("ld"),), f.same,
           "hardware counter for loads; includes contention with other traffic"),
    Metric("shared_store_bank_conflicts", "conflict", "shared", (_CONFLICTS.format("st"),), f.same,
           "hardware counter for stores; includes contention with other traffic"),
)


def _sectors(kind: str, op: str) -> Metric:
    raw = f"l1tex__t_{{}}_pipe_lsu_mem_global_op_{op}.sum"
    return Metric(f"global_{kind}_sectors_per_request", "sector/request", "memory",
                  (raw.format("sectors"), raw.format("requests")),
                  f.quotient(f"the kernel makes no global {kind}"),
                  f"32-byte sectors per warp-wide {kind}: 4, 8, 16 if coalesced, for values of 4, 8, 16 bytes")


_MEMORY = (
    _sectors("load", "ld"),
    _sectors("store", "st"),
    Metric("global_reduction_requests", "request", "memory",
           ("l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",), f.same,
           "warp-wide atomics on global memory without a result, as RED and REDG"),
    Metric("global_atomic_requests", "request", "memory",
           ("l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",), f.same,
           "warp-wide atomics on global memory with a result, as ATOM and ATOMG"),
    Metric("dram_bytes_read", "byte", "memory",
           ("dram__bytes_read.sum|dram__bytes_op_read.sum",), f.same,
           "bytes read from device memory"),
    Metric("dram_bytes_written", "byte", "memory",
           ("dram__bytes_write.sum|dram__bytes_op_write.sum",), f.same,
           "bytes written to device memory while the kernel ran"),
    Metric("dram_bytes", "byte", "memory",
           ("dram__bytes.sum?", "@dram_bytes_read?", "@dram_bytes_written?"), f.whole_or_parts,
           "bytes transferred between device memory and L2"),
    Metric("l2_bytes", "byte", "memory", ("lts__t_bytes.sum",), f.same,
           "bytes looked up in L2: 32 for each sector"),
    Metric("l2_requests", "request", "memory", ("lts__t_requests.sum",), f.same,
           "requests to L2, each for up to four sectors of a line"),
    Metric("l2_tag_requests", "request", "memory", ("lts__t_tag_requests.sum",), f.same,
           "lookups of a line in the tags of L2"),
    Metric("l2_requests_from_sms", "request", "memory", ("lts__t_requests_srcunit_tex.sum",), f.same,
           "requests of SMs to L2, each once, whatever the partition of L2 that serves it"),
    Metric("l2_sectors_from_sms", "sector", "memory", ("lts__t_sectors_srcunit_tex.sum",), f.same,
           "sectors that SMs look up in L2, each once"),
    Metric("l2_reduction_sectors", "sector", "memory", ("lts__t_sectors_op_red.sum",), f.same,
           "sectors that atomics without a result look up in L2, in all partitions"),
    Metric("l2_atomic_sectors", "sector", "memory", ("lts__t_sectors_op_atom.sum",), f.same,
           "sectors that atomics with a result look up in L2, in all partitions"),
    Metric("l1_bytes", "byte", "memory", ("l1tex__t_bytes.sum",), f.same,
           "bytes looked up in L1: global, local, texture; not shared memory"),
    Metric("l1_tag_lookups", "lookup", "memory", ("l1tex__t_set_accesses.sum",), f.same,
           "accesses to the tags of L1"),
    Metric("l1_tag_wavefronts", "wavefront", "memory", ("l1tex__t_output_wavefronts.sum",), f.same,
           "wavefronts that the tag stage of L1 hands to the data stage"),
    Metric("l1_wavefronts", "wavefront", "memory", ("l1tex__data_pipe_lsu_wavefronts.sum",), f.same,
           "wavefronts of the data stage of L1, which shared memory shares: all loads, stores and atomics of threads"),
    Metric("l1_shared_wavefronts", "wavefront", "memory",
           ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",), f.same,
           "wavefronts of that stage for shared memory, also of asynchronous copies and matrix instructions"),
    Metric("dram_gbytes_per_s", "GB/s", "memory",
           ("dram__bytes.sum.per_second?", "@dram_bytes?", "@duration_us?"), f.gbytes_per_s,
           "device memory traffic per unit of time"),
    Metric("dram_throughput_pct", "%", "memory", (f"gpu__dram_throughput{ELAPSED}",), f.same,
           "device memory traffic, in percent of its peak"),
    Metric("l2_throughput_pct", "%", "memory", (f"lts__throughput{ELAPSED}",), f.same,
           "throughput of the busiest part of L2, in percent of its peak"),
    Metric("l1_throughput_pct", "%", "memory",
           ("l1tex__throughput.avg.pct_of_peak_sustained_active",), f.same,
           "throughput of the busiest part of L1 and shared memory, in percent of its peak"),
    Metric("memory_throughput_pct", "%", "memory", (f"gpu__compute_memory_throughput{ELAPSED}",), f.same,
           "throughput of the busiest part of the memory system (speed of light), in percent of its peak; campaigns do"
           " not collect it"),
    Metric("l1_hit_pct", "%", "memory", ("l1tex__t_sector_hit_rate.pct",), f.same,
           "share of sectors found in L1"),
    Metric("l2_hit_pct", "%", "memory", ("lts__t_sector_hit_rate.pct",), f.same,
           "share of sectors found in L2"),
)
_PIPES = {
    "fma": "sm__pipe_fma_cycles_active", "alu": "sm__pipe_alu_cycles_active",
    "lsu": "sm__inst_executed_pipe_lsu", "fp64": "sm__pipe_fp64_cycles_active",
    "tensor": "sm__pipe_tensor_cycles_active", "xu": "sm__inst_executed_pipe_xu",
}
# Not of the tensor pipe, whose instructions differ in size, and whose counter costs another pass.
_COUNTED_PIPES = ("fma", "alu", "lsu", "fp64", "xu")
_COMPUTE = (
    *(Metric(f"pipe_{pipe}_pct", "%", "compute", (f"{raw}{ELAPSED}",), f.same,
             f"utilization of the {pipe} pipe, in percent of its peak") for pipe, raw in _PIPES.items()),
    *(Metric(f"pipe_{pipe}_instructions", "inst", "compute", (f"sm__inst_executed_pipe_{pipe}.sum",), f.same,
             f"instructions that the {pipe} pipe executed, counted per warp") for pipe in _COUNTED_PIPES),
    Metric("pipe_tensor_cycles", "cycle", "compute", ("sm__pipe_tensor_cycles_active.sum",), f.same,
           "cycles in which the tensor pipes were active, summed over all SMs"),
    Metric("sm_throughput_pct", "%", "compute", (f"sm__throughput{ELAPSED}",), f.same,
           "throughput of the busiest part of the SM, in percent of its peak"),
    Metric("fp32_flops", "flop", "compute",
           (*(THREAD_OP.format(op) for op in ("fadd", "fmul", "ffma")),
            *(THREAD_OP.format(op) + "?" for op in ("fadd2", "fmul2", "ffma2"))), f.fp32_flops,
           "single-precision operations; a fused multiply-add counts as two"),
    Metric("fp64_flops", "flop", "compute",
           tuple(THREAD_OP.format(op) for op in ("dadd", "dmul", "dfma")), f.flops,
           "double-precision operations"),
    Metric("fp16_flops", "flop", "compute",
           tuple(THREAD_OP.format(op) for op in ("hadd", "hmul", "hfma")), f.fp16_flops,
           "half-precision operations outside tensor cores; includes HFMA2 instructions that only set registers"),
    Metric("tensor_flops", "flop", "compute",
           (*(f"{OPCODE_COUNTER}:{opcode}?" for opcode in TENSOR_OPCODES),
            *(TENSOR_PATH.format(kind) + "?" for kind in TENSOR_TYPES)), f.tensor_flops,
           "floating-point operations of the tensor cores"),
    Metric("arithmetic_intensity_flop_per_byte", "flop/byte", "compute",
           ("@fp32_flops", "@fp64_flops", "@fp16_flops", "@tensor_flops", "@dram_bytes"), f.intensity,
           "floating-point operations per byte of device memory traffic"),
    Metric("instructions_executed", "inst", "compute", ("smsp__inst_executed.sum",), f.same,
           "executed instructions, counted per warp"),
    Metric("ipc", "inst/cycle", "compute", ("sm__inst_executed.avg.per_cycle_active",), f.same,
           "instructions per cycle of an active SM, at most four"),
    Metric("threads_per_instruction", "thread", "compute",
           (f"{THREADS_PER_INSTRUCTION}?", f"{THREADS_COUNTER}?", f"{OPCODE_COUNTER}?"), f.threads_per_instruction,
           "active threads per executed warp instruction, at most 32"),
    Metric("threads_not_predicated_off_per_instruction", "thread", "compute", (THREADS_NOT_PREDICATED_OFF,), f.same,
           "active threads per executed warp instruction whose predicate does not turn them off, at most 32"),
    *(Metric(f"inst_{opcode.lower()}", "inst", "compute", (f"{OPCODE_COUNTER}:{opcode}",), f.same,
             f"executed {opcode} instructions, counted per warp") for opcode in OPCODES),
)
_READS, _WRITES = "sm__mem_tensor_reads_op_{}.sum", "sm__mem_tensor_writes_op_{}.sum"
_MMA_A = "|".join(_READS.format(f"utcmma_matrix_a_{others}") for others in ("sp_sf", "or_metadata"))
_MMA_INSTRUCTIONS = "sm__inst_executed_pipe_tensor_subpipe_hmma_op_utchmma_utcqmma_utcomma_scope_{}cta.sum"
_TENSOR_MEMORY = (
    Metric("tensor_memory_bytes_allocated", "byte", TENSOR_MEMORY,
           ("sm__mem_tensor_bytes_allocated.avg.per_cycle_active",), f.same,
           "tensor memory that the blocks of an SM have allocated, on average while the SM is active"),
    Metric("tensor_memory_load_reads", "read", TENSOR_MEMORY, (_READS.format("ldt"),), f.same,
           "reads of tensor memory by loads into registers (tcgen05.ld)"),
    Metric("tensor_memory_mma_reads", "read", TENSOR_MEMORY, (_MMA_A, _READS.format("utcmma_matrix_c")), f.total,
           "reads of tensor memory by matrix instructions (tcgen05.mma): matrix A, its metadata, and the accumulator"),
    Metric("tensor_memory_store_writes", "write", TENSOR_MEMORY, (_WRITES.format("stt"),), f.same,
           "writes of tensor memory by stores from registers (tcgen05.st)"),
    Metric("tensor_memory_mma_writes", "write", TENSOR_MEMORY, (_WRITES.format("utcmma"),), f.same,
           "writes of tensor memory by matrix instructions (tcgen05.mma)"),
    Metric("tensor_memory_copy_writes", "write", TENSOR_MEMORY, (_WRITES.format("utccp"),), f.same,
           "writes of tensor memory by copies from shared memory (tcgen05.cp)"),
    Metric("tensor_memory_instructions", "inst", TENSOR_MEMORY, ("sm__inst_executed_pipe_tmem.sum",), f.same,
           "instructions that the pipe of tensor memory executed, counted per warp"),
    Metric("mma_1cta_instructions", "inst", TENSOR_MEMORY, (_MMA_INSTRUCTIONS.format(1),), f.same,
           "floating-point matrix instructions (tcgen05.mma) of one block"),
    Metric("mma_2cta_instructions", "inst", TENSOR_MEMORY, (_MMA_INSTRUCTIONS.format(2),), f.same,
           "floating-point matrix instructions (tcgen05.mma) of a pair of blocks"),
)
_BUILD = (
    Metric("constant_bytes", "byte", "build", (), None, "constant memory, including arguments"),
    Metric("stack_bytes", "byte", "build", (), None, "stack frame per thread"),
    Metric("spill_store_bytes", "byte", "build", (), None, "register spills written, per thread"),
    Metric("spill_load_bytes", "byte", "build", (), None, "register spills read back, per thread"),
    Metric("barriers", "barrier", "build", (), None, "hardware barriers that a block uses"),
    Metric("sass_instructions", "inst", "build", (), None, "instructions in the kernel's machine code"),
)
_ALL = (
    *_TIME, *_OVERLAP, *_LAUNCH, *_OCCUPANCY, *_STALL, *_SHARED, *_MEMORY, *_COMPUTE, *_TENSOR_MEMORY, *_BUILD,
)
# fmt: on

METRICS = MappingProxyType({m.name: m for m in _ALL})
