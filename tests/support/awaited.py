"""What is newer than the recorded campaign that serves without a GPU: nothing, after the next recording."""

EDITED: set[tuple[str, str]] = set()
NEW: set[tuple[str, str]] = {
    *(("softmax", name) for name in ("naive", "block_per_row", "shuffle", "online", "vectorized")),
    *(("layernorm", name) for name in ("naive", "block_per_row", "welford", "vectorized")),
    ("softmax", "one_exponential"),
    ("layernorm", "one_exchange"),
    *(
        (family, name)
        for family in ("softmax", "layernorm")
        for name in ("registers", "warp_per_row", "cluster", "cupy", "triton", "torch")
    ),
}
