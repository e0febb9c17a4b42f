"""Launches one case for compute-sanitizer, with allocations of exact size and uninitialised outputs and workspaces."""

from warplog.measure.worker.backend import DriverBackend, Launcher
from warplog.measure.worker.case_data import SEEDS
from warplog.measure.worker.problem import HOST, Problem

_SEED = SEEDS["sanitize"]


def sanitize_case(backend: DriverBackend, launcher: Launcher, problem: Problem) -> None:
    """Launches once; findings are in compute-sanitizer's output.

    Each array in device or managed memory is a separate allocation without guard bands, so that access to the first
    byte outside is an error. Arrays in host memory stay where they are.

    Raises:
        LaunchFailed: The launcher or the device reports an error.
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
        if memory in HOST:
            continue
        address = backend.allocate(array.nbytes, managed=memory == "managed")
        addresses.append(address)
        if argument.kind not in ("output", "workspace"):
            backend.upload(address, array.pointer(), array.nbytes)
        setattr(problem.arguments, argument.name, address)
    try:
        launcher(problem.arguments)
    finally:
        for address in addresses:
            backend.free(address)
        for address in pinned:
            backend.unpin(address)
