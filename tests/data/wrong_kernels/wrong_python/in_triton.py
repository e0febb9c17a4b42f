"""y = factor x + b with Triton; with SHIFT, the mask ends elsewhere than the arrays."""

import triton
import triton.language as tl

SHIFT = 0
TUNED = 0


@triton.jit
def scale_add(x, b, y, n, factor, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n + SHIFT
    value = tl.load(x + i, mask=inside) * factor + tl.load(b + i, mask=inside).to(tl.float32)
    tl.store(y + i, value, mask=inside)


tuned = triton.autotune([triton.Config({"BLOCK": size}) for size in (256, 1024)], key=["n"])(scale_add)


def launch(arrays, scalars, stream):
    n = scalars["n"]
    arguments = arrays["x"], arrays["b"], arrays["y"], n, scalars["factor"], SHIFT
    if TUNED:
        tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](*arguments)
    else:
        scale_add[(triton.cdiv(n + 1, 1024),)](*arguments, BLOCK=1024)
