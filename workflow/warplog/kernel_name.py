"""A kernel's name for people: compilers and profilers write types, arguments and namespaces around it, each its own."""

import re

SPLIT_K = re.compile(r"split_?k", re.IGNORECASE)
_XMMA = re.compile(
    r"^(sm\d+)_xmma_gemm_(\w+?)_([nt]{2})_n_tilesize(\w+?)_(stage\d+)_warpsize(\w+?)_(.*?)_?execute_(.*)$"
)
_WRAPPERS = ("Kernel", "Kernel2", "device_kernel")  # of CUTLASS: their first template argument is the kernel


def bare(kernel: str) -> str:
    """The function's name without return type, namespaces, template arguments and parameters."""
    name = _undressed(kernel)
    return re.split(r"[<(]", name, maxsplit=1)[0].rsplit("::", 1)[-1].strip() or kernel


def shorten(kernel: str) -> str:
    """The tile of cuBLAS' generated kernels, the kernel inside of CUTLASS' wrappers, else the bare name."""
    if found := _XMMA.match(kernel):
        arch, _, layout, tile, stages, warps, _, rest = found.groups()
        part = " split_k" if SPLIT_K.search(rest) else ""
        return f"{arch}_xmma_gemm_{layout} {tile} {stages} warps{warps}{part}"
    name = bare(kernel)
    inner = re.match(r"[^<]*<\s*([\w:]+)", _undressed(kernel))
    return inner[1].rsplit("::", 1)[-1] if name in _WRAPPERS and inner else name


def _undressed(kernel: str) -> str:
    return kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
