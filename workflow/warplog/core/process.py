"""Runs other programs with bounded output, time limits, signal handling and a minimal environment."""

import ctypes
import errno
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, BinaryIO, NoReturn, Self

from warplog.core.errors import naming

LOG_BYTES = 64 << 20
TAIL_BYTES = 64 << 10


class Transcript:
    """Collects output piece by piece: keeps the last 64 KiB, logs up to 64 MiB to a file; a context manager."""

    def __init__(self, log: Path | None = None) -> None:
        """Opens the log, if any, and creates its folder.

        Raises:
            OSError: The log cannot be written.
        """
        self._log: BinaryIO | None = None
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            self._log = log.open("wb", buffering=0)
        self._room = LOG_BYTES
        self._kept = bytearray()

    def __enter__(self) -> Self:
        """Returns the transcript."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the log."""
        if self._log is not None:
            self._log.close()

    def write(self, data: bytes) -> None:
        """Adds a piece of output; after 64 MiB the log ends with a line that says so."""
        self._kept += data
        if len(self._kept) > 4 * TAIL_BYTES:
            del self._kept[:-TAIL_BYTES]
        if self._log is None or self._room <= 0:
            return
        with naming(Path(self._log.name)):
            self._log.write(data[: self._room])
            self._room -= len(data)
            if self._room <= 0:
                self._log.write(f"\n[log truncated after {LOG_BYTES} bytes]\n".encode())

    def tail(self) -> str:
        """Returns the last 64 KiB as text; undecodable bytes are replaced."""
        return self._kept[-TAIL_BYTES:].decode("utf-8", errors="replace")


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Deferred:
    """A context that defers signals until `release` or its end.

    While a program is being started, a signal would otherwise arrive before the code that has to kill the program.
    """

    def __init__(self) -> None:
        self._deferred: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Starts to defer the signals that have a Python handler; does nothing outside the main thread."""
        if threading.current_thread() is threading.main_thread():
            held = {number: signal.getsignal(number) for number in _SIGNALS}
            self._handlers = {n: h for n, h in held.items() if callable(h)}
            for number in self._handlers:
                signal.signal(number, self._defer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Calls `release`."""
        self.release()

    def release(self) -> None:
        """Restores the handlers and raises the deferred signals again."""
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            signal.signal(number, handler)
        deferred, self._deferred = self._deferred, []
        for number in deferred:
            os.kill(os.getpid(), number)

    def _defer(self, number: int, _frame: FrameType | None) -> None:
        self._deferred.append(number)


@contextmanager
def termination_raises() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP raise SystemExit in the block, so that cleanup code kills a running program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    default = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in default:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in default:
            signal.signal(number, signal.SIG_DFL)


_POLL_S = 0.05
_QUIET_POLL_S = 0.005
_ASK_S = 0.2
_GRACE_S = 2.0
_DRAIN_S = 1.0
_REAP_S = 30.0
_PR_SET_PDEATHSIG = 1
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127

_PASSED = (
    "CC",  # with which Triton compiles its launchers
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "NVCC_CCBIN",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "TMPDIR",
    "TRITON_LIBCUDA_PATH",
    "TRITON_PTXAS_PATH",
    "VIRTUAL_ENV",
)
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://[^/\s]*@")


@dataclass(frozen=True)
class Completed:
    """Result of a program.

    Attributes:
        returncode: exit status, or the negative signal number; 127 if the program does not exist and 126 if it
            cannot be executed, as in a shell.
        signal_name: such as "SIGSEGV"; "" if no signal ended the program.
        timed_out: whether the time limit, or `stop`, ended the program.
        seconds: wall time.
        output_tail: the last 64 KiB of stdout and stderr combined, undecodable bytes replaced.
    """

    returncode: int
    signal_name: str
    timed_out: bool
    seconds: float
    output_tail: str

    @property
    def ok(self) -> bool:
        """Whether the program ended by itself with status 0."""
        return self.returncode == 0 and not self.timed_out


def explain_exit(completed: Completed) -> str:
    """Describes the result: 'exit status 3', 'killed by SIGSEGV' or 'timed out after 30 s'."""
    if completed.timed_out:
        return f"timed out after {completed.seconds:.3g} s"
    if completed.signal_name:
        return f"killed by {completed.signal_name}"
    code = completed.returncode
    if code == _NOT_FOUND:
        return f"exit status {code} (program not found)"
    if code == _NOT_EXECUTABLE:
        return f"exit status {code} (program cannot be executed)"
    inner = _signal_name(code - 128)
    return f"exit status {code} (as after {inner})" if inner else f"exit status {code}"


def die_with_parent(number: signal.Signals) -> None:
    """Requests a signal for this process when its parent ends, so that it does not outlive a killed workflow."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def is_running(pid: int) -> bool:
    """Returns whether a process of any user has this id."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return True


def processes_with(file: Path) -> list[int]:
    """Returns the ids of this user's other processes that have the file open."""
    wanted, pids = file.resolve(), set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or belongs to another user
            if any(entry.readlink() == wanted for entry in (process / "fd").iterdir()):
                pids.add(int(process.name))
    return sorted(pids - {os.getpid()})


def end_process(pid: int | None, argument: str) -> None:
    """Kills the process if its command line still has `argument`, since the id may have been reused.

    For the target of a profiler, which may have left the process group.
    """
    with suppress(OSError):
        if pid and argument.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            os.kill(pid, signal.SIGKILL)


def minimal_env(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the environment for measured and profiled programs: only what CUDA and Python require.

    Nsight Systems writes every environment variable of the profiled process into its report, so tokens and
    passwords must not reach it. Kept are CC, PATH, HOME, LANG, LC_ALL, LD_LIBRARY_PATH, NVCC_CCBIN, OMP_NUM_THREADS,
    OPENBLAS_NUM_THREADS, PYTHONDONTWRITEBYTECODE, PYTHONPATH, TMPDIR, TRITON_LIBCUDA_PATH, TRITON_PTXAS_PATH,
    VIRTUAL_ENV and CUDA_*, except variables whose name suggests a secret or whose value is a URL with credentials.
    `extra` is added unchanged.
    GPUs are numbered by PCI bus, as in nvidia-smi, unless CUDA_DEVICE_ORDER is set.
    """
    env = {
        name: value
        for name, value in os.environ.items()
        if (name in _PASSED or name.startswith("CUDA_"))
        and not _SECRET_NAME.search(name.removeprefix("CUDA_"))
        and not _SECRET_VALUE.search(value)
    }
    env.setdefault("PATH", os.defpath)
    env.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    return env | dict(extra or {})


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: Path | None = None,
    stop: Callable[[], bool] | None = None,
) -> Completed:
    """Runs a program for at most `timeout_s` seconds; a program that fails does not raise.

    The program runs in its own process group without standard input. The group is killed after the time limit,
    if the program leaves children behind, and if this process is interrupted (Ctrl-C, SIGTERM, SIGHUP).

    Args:
        env: the whole environment; None inherits this process's environment.
        log: file for stdout and stderr, up to 64 MiB.
        stop: called about five times per second; True ends the program as the time limit does.

    Raises:
        OSError: The log cannot be written.
    """
    start = time.monotonic()
    with Transcript(log) as output, termination_raises(), Deferred() as deferred:
        try:
            child = _start(command, env, cwd)
        except OSError as error:
            output.write(f"{os.fspath(command[0])}: {error.strerror}\n".encode())
            code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
            return Completed(code, "", False, time.monotonic() - start, output.tail())
        timed_out = False
        try:
            deferred.release()
            timed_out = not _follow(child, output, start + timeout_s, stop)
        finally:
            with Deferred():  # a second signal must not leave the program behind
                _end(child, output, gently=timed_out)
        code = -signal.SIGKILL if child.returncode is None else child.returncode
        return Completed(code, _signal_name(-code), timed_out, time.monotonic() - start, output.tail())


@contextmanager
def beside(
    command: Sequence[str | os.PathLike[str]], log: Path, env: Mapping[str, str]
) -> Iterator["subprocess.Popen[str]"]:
    """Runs a program beside the block, which writes to its standard input, and then kills its process group.

    Args:
        log: file to which stdout and stderr are appended.
        env: the whole environment.

    Raises:
        OSError: The program cannot be started, or the log not be written.
    """
    with log.open("ab") as output, termination_raises(), Deferred() as deferred:
        child = subprocess.Popen(
            [os.fspath(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=dict(env),
            text=True,
        )
        try:
            deferred.release()
            yield child
        finally:
            with Deferred(), suppress(subprocess.TimeoutExpired, BrokenPipeError):
                _signal_group(child.pid, signal.SIGKILL)
                child.wait(_REAP_S)
                assert child.stdin
                child.stdin.close()


def _start(
    command: Sequence[str | os.PathLike[str]], env: Mapping[str, str] | None, cwd: Path | None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [os.fspath(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=None if env is None else dict(env),
        cwd=cwd,
    )


def _follow(
    child: subprocess.Popen[bytes],
    output: Transcript,
    deadline: float,
    stop: Callable[[], bool] | None = None,
) -> bool:
    """Reads output until the program has ended (True), or until the deadline or `stop` (False)."""
    last_asked = now = time.monotonic()
    while now < deadline:
        _read(child, output, _POLL_S)
        if _has_ended(child):
            return True
        now = time.monotonic()
        if stop and now - last_asked > _ASK_S:
            if stop():
                return False
            last_asked = now
    return False


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    # WNOWAIT keeps the process as a zombie, so that its group id cannot be reused before the kill.
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _read(child: subprocess.Popen[bytes], output: Transcript, wait_s: float) -> bool:
    """Reads one chunk of output; False if none arrived within `wait_s`."""
    pipe = child.stdout
    if pipe is None or pipe.closed:
        time.sleep(min(wait_s, _QUIET_POLL_S))
        return False
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    if not poll.poll(wait_s * 1000):
        return False
    data = os.read(pipe.fileno(), 1 << 16)
    if not data:
        pipe.close()
        return False
    output.write(data)
    return True


def _end(child: subprocess.Popen[bytes], output: Transcript, *, gently: bool) -> None:
    if gently:
        _signal_group(child.pid, signal.SIGTERM)
        _follow(child, output, time.monotonic() + _GRACE_S)
    _signal_group(child.pid, signal.SIGKILL)
    deadline = time.monotonic() + _DRAIN_S
    while time.monotonic() < deadline and _read(child, output, _POLL_S):
        pass
    if child.stdout is not None:
        child.stdout.close()
    with suppress(subprocess.TimeoutExpired):  # a process that hangs in the driver cannot be killed
        child.wait(_REAP_S)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
