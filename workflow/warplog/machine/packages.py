"""Versions of Python packages that kernels are written with, without importing them."""

# The packages on PyPI that provide a module, where the name differs: the first one that is installed counts.
_DISTRIBUTIONS = {"cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy")}


def version(module: str) -> str:
    """Returns the version of the package that provides a module; '' if it is not installed."""
    import importlib.metadata  # it reads e-mail headers, which takes a tenth of the start of a worker

    for name in _DISTRIBUTIONS.get(module, (module,)):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def distribution(module: str) -> str:
    """Returns the name of the package on PyPI to install for a module."""
    return _DISTRIBUTIONS.get(module, (module,))[0]
