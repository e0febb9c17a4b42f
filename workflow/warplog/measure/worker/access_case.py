"""Launches one case for the tracer of memory accesses or, on the same inputs, for Nsight Compute."""

import ctypes
from pathlib import Path

from warplog.core.hashing import sha256_of
from warplog.measure.results import Accessed, LaunchFailed
from warplog.measure.task import AccessWork, CaseRun
from warplog.measure.worker.backend import Backend, CupyBackend, Launcher
from warplog.measure.worker.case_data import SEEDS
from warplog.measure.worker.problem import Problem

_SEED = SEEDS["accesses"]
_ALL_BLOCKS = 0xFFFFFFFF
_MOST_LAUNCHES = 4


class Tracer:
    """The tracer that the CUDA driver has loaded into this process; see tracer.cpp."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.warplog_begin.argtypes = [
            ctypes.c_char_p,
            ctypes.c_uint32,
            ctypes.c_uint32,
            ctypes.c_ulonglong,
        ]
        self._library.warplog_begin.restype = None
        self._library.warplog_fitting.restype = ctypes.c_uint32
        for name in ("warplog_unready", "warplog_end"):
            getattr(self._library, name).restype = ctypes.c_char_p

    def unready(self) -> str:
        """Returns "", or why nothing can be traced in this process."""
        return str(self._library.warplog_unready().decode(errors="replace"))

    def begin(self, trace: Path, blocks: int, most_entries: int) -> None:
        """Records launches from now on, of the first `blocks` blocks of each kernel."""
        self._library.warplog_begin(str(trace).encode(), 0, blocks, most_entries)

    def end(self) -> str:
        """Writes the trace; returns "", or why there is none."""
        return str(self._library.warplog_end().decode(errors="replace"))

    def fitting(self) -> int:
        """Returns of how many blocks of a kernel the trace would be complete; 0 if it is."""
        return int(self._library.warplog_fitting())


def trace_of(folder: Path, run: CaseRun) -> Path:
    """Returns the trace of a case in the folder of a task; beside it is the machine code of its kernels."""
    return folder / f"{run.variant}.{sha256_of(run.case)[:12]}.trace"


def trace_case(
    backend: Backend, launcher: Launcher, problem: Problem, work: AccessWork, trace: Path
) -> Accessed:
    """Traces one launch to a file; if not all accesses fit, it launches again and traces fewer blocks.

    Raises:
        LaunchFailed: The launcher or the device reports an error, it cannot be traced, or its results are wrong.
    """
    tracer, blocks = Tracer(Path(work.tracer)), _ALL_BLOCKS
    problem.fill(_SEED)
    for _ in range(_MOST_LAUNCHES):
        backend.synchronise()
        tracer.begin(trace, blocks, work.most_entries)
        try:
            launcher(problem.arguments)
        except LaunchFailed as failed:
            raise LaunchFailed(failed.status, f"with the tracer: {failed.reason}") from None
        finally:
            untraced = tracer.end()
        if untraced:
            raise LaunchFailed("unsupported", untraced)
        verdict = problem.verdict()
        if verdict.reason:
            raise LaunchFailed("wrong", f"with the tracer: {verdict.reason}")
        fitting = tracer.fitting()
        if fitting in (0, blocks):
            break
        blocks = fitting
        problem.restore()
    addresses = {name: array.pointer() for name, array in problem.arrays.items()}
    return Accessed(max_error_over_tolerance=verdict.max_error_over_tolerance or 0.0, addresses=addresses)


def count_case(backend: CupyBackend, launcher: Launcher, problem: Problem, name: str) -> None:
    """Launches once, on the inputs of the trace, inside cudaProfilerStart/Stop and the NVTX range `case:<name>`.

    Raises:
        LaunchFailed: The launcher or the device reports an error.
    """
    cuda = backend.xp.cuda
    problem.fill(_SEED)
    backend.synchronise()
    cuda.profiler.start()
    cuda.nvtx.RangePush(f"case:{name}")
    launcher(problem.arguments)
    cuda.nvtx.RangePop()
    cuda.profiler.stop()
