"""A kernel that Triton cannot compile."""

import triton
import triton.language as tl


@triton.jit
def scale_add(x, b, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * factr, mask=i < n)  # noqa: F821 - the fault


def launch(arrays, scalars, stream):
    n = scalars["n"]
    arguments = arrays["x"], arrays["b"], arrays["y"], n, scalars["factor"]
    scale_add[(triton.cdiv(n, 1024),)](*arguments, BLOCK=1024)
