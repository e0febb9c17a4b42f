"""Launches one case for compute-sanitizer: arrays of exactly their size, outputs that nobody has written."""

from typing import Any

from warplog.gpu.backend import DriverBackend, Launcher
from warplog.gpu.problem import Problem

_SEED = 40_000


def sanitize_case(backend: DriverBackend, launcher: Launcher, problem: Problem) -> dict[str, Any]:
    """One launch; what it did wrong is in compute-sanitizer's output, not in the result.

    The arrays are allocations of their own without guard bands, so that the first byte outside is an error.

    Raises:
        LaunchFailed: the launcher or the device reports an error.
    """
    problem.fill(_SEED)
    addresses = []
    for argument in problem.family.arguments:
        if argument.kind == "scalar":
            continue
        array = problem.arrays[argument.name]
        address = backend.allocate(array.nbytes)
        addresses.append(address)
        if argument.kind != "output":
            backend.upload(address, array.pointer(), array.nbytes)
        setattr(problem.arguments, argument.name, address)
    try:
        launcher(problem.arguments)
    finally:
        for address in addresses:
            backend.free(address)
    return {"status": "ok", "reason": ""}
