"""What the recorded campaign that serves without a GPU lacks, until the next recording."""

EDITED: set[tuple[str, str]] = set()
NEW: set[tuple[str, str]] = set()
# A read of another block's shared memory that racecheck cannot see to be safe; see results/recorded/README.md.
FOUND = {("bf16_gemm", "wgmma_stream_k", "racecheck")}
