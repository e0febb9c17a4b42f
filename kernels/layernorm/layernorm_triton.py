"""layernorm_triton: one program per tile of rows, which Triton keeps in registers.

Idea         The code handles whole rows as arrays; which thread has which column, the shuffles and the shared memory
             are the compiler's choice. A tile holds one long row or several short ones, padded to a power of two, and
             has a warp per 1024 elements. Mean and squared differences are two sums over the tile. Rows of more than
             65536 columns do not fit: they are read three times, 8192 columns at a time.
Expected     As fast as `registers` where the number of columns is a power of two; just above a power of two, up to half
             of the lanes are idle.
Cost         Launch overhead on the host: tens of microseconds. A row of 65536 fp32 elements occupies an SM alone.
Constraints  Any rows and columns >= 1, any alignment.
Source       P. Tillet, Triton tutorials, layer normalization.
"""

import torch
import triton
import triton.language as tl

MOST_COLUMNS = 65536  # of a tile


@triton.jit
def layernorm_tile(x, gamma, beta, y, rows, columns, epsilon, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    exists = column < columns
    inside = (row < rows)[:, None] & exists[None, :]
    place = row.to(tl.int64)[:, None] * columns + column[None, :]
    values = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=1) / columns
    centred = tl.where(inside, values - mean[:, None], 0.0)
    variance = tl.sum(centred * centred, axis=1) / columns
    factor = tl.load(gamma + column, mask=exists, other=0.0).to(tl.float32)
    summand = tl.load(beta + column, mask=exists, other=0.0).to(tl.float32)
    result = centred * tl.rsqrt(variance + epsilon)[:, None] * factor[None, :] + summand[None, :]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def layernorm_long(x, gamma, beta, y, columns, epsilon, COLUMNS: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * columns
    sums = tl.zeros((COLUMNS,), tl.float32)
    for first in range(0, columns, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        sums += tl.load(x + begin + column, mask=column < columns, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / columns
    squares = tl.zeros((COLUMNS,), tl.float32)
    for first in range(0, columns, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        values = tl.load(x + begin + column, mask=column < columns, other=0.0).to(tl.float32)
        centred = tl.where(column < columns, values - mean, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / columns + epsilon)
    for first in range(0, columns, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        exists = column < columns
        values = tl.load(x + begin + column, mask=exists, other=0.0).to(tl.float32)
        factor = tl.load(gamma + column, mask=exists, other=0.0).to(tl.float32)
        summand = tl.load(beta + column, mask=exists, other=0.0).to(tl.float32)
        result = (values - mean) * scale * factor + summand
        tl.store(y + begin + column, result.to(y.dtype.element_ty), mask=exists)


def launch(arrays: dict[str, torch.Tensor], scalars: dict[str, float], stream: int) -> None:
    """Writes the normalised rows of x to y, on the current stream."""
    x, gamma, beta, y = (arrays[name] for name in ("x", "gamma", "beta", "y"))
    rows, columns, epsilon = int(scalars["rows"]), int(scalars["columns"]), float(scalars["epsilon"])
    if columns > MOST_COLUMNS:
        layernorm_long[(rows,)](x, gamma, beta, y, columns, epsilon, COLUMNS=8192, num_warps=8)
        return
    width = triton.next_power_of_2(columns)
    height = max(1, min(2048 // width, triton.next_power_of_2(rows)))
    warps = min(max(height * width // 1024, 1), 32)
    tiles = triton.cdiv(rows, height)
    sizes = rows, columns, epsilon
    layernorm_tile[(tiles,)](x, gamma, beta, y, *sizes, ROWS=height, COLUMNS=width, num_warps=warps)
