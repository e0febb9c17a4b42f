"""layernorm_torch: the baseline, PyTorch's eager operator.

Idea         torch.nn.functional.layer_norm, whose kernel has a block per row, vectorised loads and Welford's update.
             The operator has no variant that writes to a given array, so that its result is copied to the output.
Expected     Half the speed of its kernel alone, since the copy reads and writes the same number of bytes again.
             `torch_compile` has no copy, and is the fairer number to compare with.
Cost         The copy, and memory for the result from PyTorch's allocator; the launch overhead of two kernels on the
             host.
Constraints  Any rows and columns >= 1, any alignment.
Source       pytorch.org/docs, torch.nn.functional.layer_norm; PyTorch, aten/src/ATen/native/cuda/layer_norm_kernel.cu.
"""

import torch


def launch(arrays: dict[str, torch.Tensor], scalars: dict[str, float], stream: int) -> None:
    """Writes the normalised rows of x to y, on the current stream."""
    x, gamma, beta, y = (arrays[name] for name in ("x", "gamma", "beta", "y"))
    y.copy_(torch.nn.functional.layer_norm(x, (x.shape[1],), gamma, beta, float(scalars["epsilon"])))
