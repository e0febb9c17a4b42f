"""What is newer than the recorded campaign that serves without a GPU: nothing, after the next recording."""

EDITED = {
    ("bf16_gemm", "wgmma_three_consumers"),
    ("reduction", "float4"),
    ("scan", "decoupled_lookback"),
    ("transpose", "vectorized"),
}
NEW = {
    ("reduction", "single_launch"),
    ("scan", "warp_specialised"),
    ("transpose", "written_in_order"),
}
