"""softmax_triton: one program per tile of rows, which Triton keeps in registers.

Idea         The code handles whole rows as arrays; which thread has which column, the shuffles and the shared memory
             are the compiler's choice. A tile holds one long row or several short ones, padded to a power of two, and
             has a warp per 1024 elements. Rows of more than 65536 columns do not fit: they are read twice, 8192 columns
             at a time, as in `online`.
Expected     As fast as `registers` where the number of columns is a power of two; just above a power of two, up to half
             of the lanes are idle.
Cost         Launch overhead on the host: tens of microseconds. A row of 65536 fp32 elements occupies an SM alone.
Constraints  Any rows and columns >= 1, any alignment; a row requires at least one finite logit.
Source       P. Tillet, Triton tutorials, fused softmax.
"""

import torch
import triton
import triton.language as tl

MOST_COLUMNS = 65536  # of a tile
LOWEST = tl.constexpr(
    -3.4028234663852886e38
)  # not -inf: the difference of two such maxima must be 0, not NaN


@triton.jit
def softmax_tile(x, y, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    place = row.to(tl.int64)[:, None] * columns + column[None, :]
    logits = tl.load(x + place, mask=inside, other=-float("inf")).to(tl.float32)
    top = tl.maximum(tl.max(logits, axis=1), LOWEST)  # a row beyond the last has -inf alone
    powers = tl.exp(logits - top[:, None])
    result = powers / tl.sum(powers, axis=1)[:, None]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_long(x, y, columns, COLUMNS: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * columns
    top = tl.full((COLUMNS,), LOWEST, tl.float32)
    total = tl.zeros((COLUMNS,), tl.float32)
    for first in range(0, columns, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        logits = tl.load(x + begin + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, logits)
        total = total * tl.exp(top - higher) + tl.exp(logits - higher)
        top = higher
    highest = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(top - highest), axis=0)
    for first in range(0, columns, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        logits = tl.load(x + begin + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        result = tl.exp(logits - highest) * scale
        tl.store(y + begin + column, result.to(y.dtype.element_ty), mask=column < columns)


def launch(arrays: dict[str, torch.Tensor], scalars: dict[str, float], stream: int) -> None:
    """Writes the softmax of x to y, on the current stream."""
    x, y = arrays["x"], arrays["y"]
    rows, columns = int(scalars["rows"]), int(scalars["columns"])
    if columns > MOST_COLUMNS:
        softmax_long[(rows,)](x, y, columns, COLUMNS=8192, num_warps=8)
        return
    width = triton.next_power_of_2(columns)
    height = max(1, min(2048 // width, triton.next_power_of_2(rows)))
    warps = min(max(height * width // 1024, 1), 32)
    tiles = triton.cdiv(rows, height)
    softmax_tile[(tiles,)](x, y, rows, columns, ROWS=height, COLUMNS=width, num_warps=warps)
