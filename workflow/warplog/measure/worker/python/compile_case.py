"""Launches one case of a Python variant, and names the files of the kernels that Triton compiled for it."""

import sys
from collections.abc import Mapping
from typing import Any

from warplog.measure.results import Compiled, LaunchFailed
from warplog.measure.worker.backend import DriverBackend, Launcher
from warplog.measure.worker.case_data import SEEDS
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.sanitize_case import sanitize_case


def compile_case(backend: DriverBackend, launcher: Launcher, problem: Problem) -> Compiled:
    """Returns the files that Triton made for each kernel of a launch.

    The first launch compiles, and tunes if the kernel is tuned; the kernels are those of the second. A launch that
    fails for another reason than its compiler is left to the check, which states the reason.

    Raises:
        LaunchFailed: A kernel does not compile; the reason is the compiler's first message.
    """
    kernels = _Kernels()
    try:
        sanitize_case(backend, launcher, problem)
        kernels.launched.clear()
        launcher.prepare(problem, SEEDS["compile"])  # the second launch has arrays at other addresses
        sanitize_case(backend, launcher, problem)
    except LaunchFailed as failed:
        if failed.status == "compile_error":
            raise
        kernels.launched.clear()
    return Compiled(launched=tuple(kernels.launched.values()))


class _Kernels:
    """What Triton 3.4 and later tell their hooks: the files of each kernel that is loaded, and what is launched.

    Attributes:
        launched: the files of each launched kernel, by its handle.
    """

    def __init__(self) -> None:
        self._loaded: dict[int, tuple[str, ...]] = {}
        self.launched: dict[int, tuple[str, ...]] = {}
        runtime = getattr(sys.modules.get("triton.knobs"), "runtime", None)
        if runtime is not None:
            runtime.kernel_load_end_hook.add(self._load)
            runtime.launch_enter_hook.add(self._launch)

    def _load(self, _module: Any, function: int, _name: str, files: Mapping[str, str], _hash: str) -> None:
        self._loaded[function] = tuple(sorted(map(str, files.values())))

    def _launch(self, metadata: Any) -> None:
        function = metadata.get()["function"]
        if function in self._loaded:
            self.launched[function] = self._loaded[function]
