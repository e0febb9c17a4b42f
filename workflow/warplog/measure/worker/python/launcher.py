"""The launcher of a variant that is a Python module: `launch(arrays, scalars, stream)`."""

import contextlib
import ctypes
import importlib
import importlib.util
import re
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from warplog.catalog.family import Variant
from warplog.catalog.languages import LAUNCH, MODULES
from warplog.measure.results import LaunchFailed
from warplog.measure.worker.backend import Backend, Launcher, classify
from warplog.measure.worker.encoding import Arrays
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.python.arrays import Scalars, arguments_of, make_caller

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_FAILED = 999  # cudaErrorUnknown; `failure` has the exception
_PACKAGE = "warplog_variants"
_MOST_LAUNCHES = 10_000  # whose host times are kept
_MOST_TEXT = 500
# Exceptions of Triton, CuPy and PyTorch that mean that a kernel cannot be compiled, or not be loaded.
_COMPILE_ERRORS = frozenset(
    (
        *("CompilationError", "PTXASError", "OutOfResources"),
        *("CompileException", "NVRTCError", "BackendCompilerFailed", "InductorError"),
    )
)
_PLACE = re.compile(r"at (\d+):\d+:")


class PythonLauncher(Launcher):
    """Calls a module's `launch` with arrays over the memory of a problem, on the stream that it is given.

    The timing core calls it through a C function. An exception ends there with an error code; `failure` says which.
    """

    needs_no_graph = True

    def __init__(self, variant: Variant, backend: Backend) -> None:
        """Imports the module.

        Raises:
            LaunchFailed: It cannot be imported, or lacks `launch` or a constant that `parameters` names.
        """
        self._variant, self._backend = variant, backend
        self._module = load_module(variant)
        self._caller = make_caller(variant.language, backend)
        self._problem: Problem | None = None
        self._arguments: tuple[Arrays, Scalars] | None = None
        self._error: LaunchFailed | None = None
        self._launch_us: deque[float] = deque(maxlen=_MOST_LAUNCHES)
        self.function = _FUNCTION(self._called)

    def prepare(self, problem: Problem, seed: int) -> None:
        """Uses this problem from now on, and lets the module compile and tune before anything else is done with it.

        For that the problem is filled with the inputs of `seed`; it must be filled again, since tuning runs the kernel
        several times. With the driver as the backend, the arrays are allocated later, and the first launch compiles.

        Raises:
            LaunchFailed: The module or the device reports an error.
        """
        self._problem, self._arguments = problem, None
        self._launch_us.clear()
        if self._backend.name == "driver":
            return
        problem.fill(seed)
        self._backend.synchronise()
        begin = time.perf_counter()
        self._guarded(getattr(self._module, "warm_up", self._module.launch), self._backend.stream)
        self.settle()
        self.prepared_us = (time.perf_counter() - begin) * 1e6

    def settle(self) -> None:
        """Waits for the device; raises LaunchFailed for the exception of a launch, or if the device reports one."""
        if self._error is not None:
            raise self._error
        try:
            self._backend.synchronise()
        except Exception as error:
            raise LaunchFailed(*classify(error)) from None

    def release(self) -> None:
        """Lets go of the problem's memory, and of what PyTorch keeps for later."""
        self._problem, self._arguments = None, None
        torch = sys.modules.get("torch")
        if torch is not None and self._backend.name != "numpy":
            with contextlib.suppress(Exception):  # after a device error
                torch.cuda.empty_cache()

    def enqueue(self, arguments: ctypes.Structure) -> None:
        """Launches without waiting; raises LaunchFailed if the module raises an exception."""
        if self._called(None, self._backend.stream) != 0 and self._error is not None:
            raise self._error

    def failure(self) -> LaunchFailed | None:
        """Returns the failure of the last launch; None if it did not raise."""
        return self._error

    def host_us(self, measured_us: Sequence[float]) -> Sequence[float]:
        """Returns the host times of the last launches: of `launch` alone, without the way from C to Python."""
        return list(self._launch_us)[-len(measured_us) :]

    def _called(self, _arguments: int | None, stream: int | None) -> int:
        return self._guarded(self._module.launch, stream or 0)

    def _guarded(self, function: Any, stream: int) -> int:
        """Calls the module's function on the stream; returns 0, or a CUDA error if it raises."""
        self._error = None
        try:
            if self._arguments is None:
                assert self._problem is not None
                self._arguments = arguments_of(self._problem, self._caller)
            arrays, scalars = self._arguments
            with self._caller.on(stream):
                begin = time.perf_counter()
                function(arrays, scalars, stream)
                self._launch_us.append((time.perf_counter() - begin) * 1e6)
        except Exception as error:
            self._error = failure_of(error, self._variant.file)
            return _FAILED
        return 0


def import_languages(languages: Iterable[str]) -> None:
    """Imports what launchers of these languages require, which takes seconds and does not use the GPU."""
    for module in {module for language in languages for module in MODULES[language]}:
        importlib.import_module(module)


def load_module(variant: Variant) -> ModuleType:
    """Imports the module of a variant and sets the constants that `parameters` names.

    The modules beside it, and those in ../include, can be imported by their names or relatively. Installed modules come
    first, so that a file triton.py hides nothing.

    Raises:
        LaunchFailed: It cannot be imported, or lacks `launch` or a constant.
    """
    folders = [str(folder) for folder in variant.include_folders() if folder.is_dir()]
    sys.path += [folder for folder in folders if folder not in sys.path]
    package = sys.modules.setdefault(_PACKAGE, ModuleType(_PACKAGE))
    package.__path__ = folders
    name = f"{_PACKAGE}.{variant.family}_{variant.name}"
    spec = importlib.util.spec_from_file_location(name, variant.file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        failure = failure_of(error, variant.file)
        raise LaunchFailed("compile_error", f"cannot be imported: {failure.reason}") from None
    if not callable(getattr(module, "launch", None)):
        raise LaunchFailed("compile_error", f"{variant.file}: the function {LAUNCH} is missing")
    for constant, value in variant.parameters.items():
        if not hasattr(module, constant):
            reason = f"{variant.file}: has no constant {constant}, which parameters in family.yaml sets"
            raise LaunchFailed("compile_error", reason)
        setattr(module, constant, value)
    return module


def failure_of(error: Exception, file: Path) -> LaunchFailed:
    """Returns status and reason for an exception of a Python launcher.

    A compiler's exception becomes `compile_error` with its first message; another one names the line of `file`. NVRTC's
    own exception has only an error code; that of CuPy, which follows from it, has the compiler's messages.
    """
    causes = list(_causes(error))
    compiling = [cause for cause in causes if {c.__name__ for c in type(cause).__mro__} & _COMPILE_ERRORS]
    if compiling:
        worded = [cause for cause in compiling if type(cause).__name__ != "NVRTCError"] or compiling
        return LaunchFailed("compile_error", first_message(str(worded[-1])) or type(error).__name__)
    status, text = classify(error)
    if status == "out_of_memory":
        return LaunchFailed(status, text)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == file.resolve()
    ]
    where = f" ({file.name}:{lines[-1]})" if lines else ""
    return LaunchFailed(status, f"{type(error).__name__}: {text}{where}")


def first_message(text: str) -> str:
    """Returns the first message of a compiler on one line.

    Triton quotes the function up to the wrong line and a caret below it, and then states the reason. NVRTC and ptxas
    write one line per error.
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    caret = next((n for n, line in enumerate(lines) if line.strip() == "^"), None)
    if lines and caret and (place := _PLACE.match(lines[0])):
        said = " ".join(line.strip() for line in lines[caret + 1 :]) or "not valid in Triton"
        return f"{said}, in line {place[1]} of the function: {lines[caret - 1].strip()}"[:_MOST_TEXT]
    errors = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
    return (errors or lines or [""])[0].strip()[:_MOST_TEXT]


def _causes(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
