"""Launches one case for compute-sanitizer: arrays of exactly their size, outputs that nobody has written."""

from typing import Any

from warplog.measure.worker.backend import DriverBackend, Launcher
from warplog.measure.worker.problem import Problem

_SEED = 40_000


def sanitize_case(backend: DriverBackend, launcher: Launcher, problem: Problem) -> dict[str, Any]:
    """One launch; what it did wrong is in compute-sanitizer's output, not in the result.

    Arrays in device memory are allocations of their own without guard bands, so that the first byte outside is
    an error; those in host memory stay where they are.

    Raises:
        LaunchFailed: the launcher or the device reports an error.
    """
    problem.fill(_SEED)
    addresses, pinned = [], []
    for argument in problem.family.arguments:
        if argument.kind == "scalar":
            continue
        array, memory = problem.arrays[argument.name], problem.memory.get(argument.name)
        if memory == "pinned":
            backend.pin(array.pointer(), array.nbytes)
            pinned.append(array.pointer())
        if memory is not None:
            continue
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
        for address in pinned:
            backend.unpin(address)
    return {"status": "ok", "reason": ""}
