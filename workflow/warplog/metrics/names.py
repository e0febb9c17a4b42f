"""Templates of raw counter names that differ in one word, and the words to insert."""

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
THREAD_OP = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
TENSOR_PATH = "sm__ops_path_tensor_src_{}.sum"
OPCODE_COUNTER = "sass__inst_executed_per_opcode"
# Counting threads by opcode takes a pass with instrumented code, which slows a campaign down: read, never requested.
THREADS_COUNTER = "sass__thread_inst_executed_true_per_opcode"
THREADS_PER_INSTRUCTION = "smsp__thread_inst_executed_per_inst_executed.ratio"
THREADS_NOT_PREDICATED_OFF = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"

# The reasons why a warp does not issue; `selected` is the cycle in which it does. Some chips also list subsets of
# these (long_scoreboard_pipe_l1tex, mio_throttle_pipe_mio), which are left out because they would count twice.
EVERYWHERE = (
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",  # except on Rubin
    "wait",
)
SOME_CHIPS = ("gmma", "imc_miss")
STALL_REASONS = tuple(sorted((*EVERYWHERE, *SOME_CHIPS)))

# The group of the metrics that only GPUs with tensor memory have.
TENSOR_MEMORY = "tensor memory"
# The operand types for which chips count tensor operations; integer types are left out, they are not FLOPs.
TENSOR_TYPES = (
    "bf16_dst_fp32",
    "tf32_dst_fp32",
    "fp64",
    "fp16",
    "fp16_dst_fp16",
    "fp16_dst_fp32",
    "fp8",
    "fp8_dst_fp16",
    "fp8_dst_fp32",
    "fp4_fp6_dst_fp16",
    "fp4_fp6_dst_fp32",
    "fp4_fp6_fp8_dst_fp16",
    "fp4_fp6_fp8_dst_fp32",
    "fp4_dst_fp32",
)
# SASS opcodes of floating-point tensor core instructions on sm_70 to sm_120.
TENSOR_OPCODES = ("HMMA", "DMMA", "QMMA", "OMMA", "HGMMA", "QGMMA", "UTCHMMA", "UTCQMMA", "UTCOMMA")

# The opcodes of the instruction mix, without modifiers.
OPCODES = (
    *("FADD", "FMUL", "FFMA", "FFMA2", "DADD", "DMUL", "DFMA", "HADD2", "HMUL2", "HFMA2", "MUFU"),
    *("IADD3", "IMAD", "LEA", "LOP3", "SHF", "PRMT", "SEL", "MOV", "ISETP", "FSETP", "I2F", "F2I", "F2FP"),
    *("LDG", "STG", "LDS", "STS", "LDL", "STL", "LDC", "ULDC", "LDSM", "STSM", "LDGSTS", "LDGDEPBAR"),
    *(
        "ATOMG",
        "ATOMS",
        "RED",
        "REDG",
        "SHFL",
        "VOTE",
        "REDUX",
        "BAR",
        "MEMBAR",
        "SYNCS",
        "WARPSYNC",
        "BRA",
        "BSYNC",
    ),
    *TENSOR_OPCODES,
    *("IMMA", "IGMMA", "UTMALDG", "UTMASTG", "WARPGROUP"),
)
