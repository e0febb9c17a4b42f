"""`warplog watch`: each save of a variant duels with the last good version and with the parent.

The processes stay from save to save, with their context, arrays and libraries, so that a save costs its compilation and
the turns. A side that fails ends its process, and another takes its place.
"""

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import randbits
from statistics import fmean
from subprocess import Popen
from typing import Self

from msgspec.structs import replace

from warplog.analysis.verdicts import Verdict
from warplog.catalog.family import load_family
from warplog.core.errors import WarplogError, say
from warplog.core.files import state_of, temporary_folder
from warplog.core.hashing import sha256_file, sha256_of
from warplog.core.process import Completed, beside
from warplog.duel import evidence, making, match
from warplog.duel.making import Made
from warplog.duel.match import Listener
from warplog.duel.sides import Corner, why_other_work
from warplog.duel.task import Asked, DuelTask, Failed, Found, SideTask
from warplog.measure.supervise import environment
from warplog.records import door
from warplog.records.campaign import Gpu
from warplog.records.fields import Status
from warplog.records.requested.duel import Window

LAST = "the last good version"
_WINDOW_S = 0.3  # six of them leave most of five seconds for checks
_POLL_S, _ASK_S = 0.05, 0.01


@dataclass(frozen=True)
class Saved:
    """What became of a save.

    Attributes:
        status: that of its build or duel, `unchanged`, or `error` if no side is to blame.
        us: its time; 0 if it has none.
        compile_s, duel_s: seconds of compilation, and after it.
        verdicts: on its time, by the name of what it is compared with.
    """

    status: Status | str
    reason: str = ""
    us: float = 0.0
    compile_s: float = 0.0
    duel_s: float = 0.0
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)


def watch(corner: Corner, case: str, margin: float, project: Path) -> Iterator[Saved]:
    """Yields what becomes of a variant as it is, and then of each save; of several in quick succession, of the last.

    Raises:
        WarplogError: There is no GPU, or the timing core does not compile.
    """
    gpu = match.free_gpu()
    timer = making.make_timer(gpu, project)
    with temporary_folder() as folder, _Worker(gpu, folder) as worker:
        watched = _Watched(corner, project, folder, worker)
        while True:
            watched.settle()
            saved = watched.tried(case, timer, margin)
            if not watched.is_outdated():
                yield saved
            while not watched.is_outdated():
                time.sleep(_POLL_S)


class _Worker:
    """The worker with its processes: started when it is first asked, and again after it has ended."""

    def __init__(self, gpu: Gpu, folder: Path) -> None:
        self.gpu, self._log = gpu, folder / "worker.log"
        self._open = ExitStack()
        self._child: Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Ends the worker and its processes."""
        self._open.close()
        self._child = None

    def ask(self, task: DuelTask, process: int, said: Listener) -> Window | Failed:
        """Returns what a process finds, the first one if it is the first that is asked for this duel, and so on.

        Raises:
            WarplogError: The worker failed for a reason other than a kernel.
        """
        if self._child is None:
            command = [sys.executable, "-m", "warplog.duel.worker"]
            self._child = self._open.enter_context(
                beside(command, self._log, environment(self.gpu.environment))
            )
        child = self._child
        self._log.write_bytes(b"")
        with suppress(BrokenPipeError):
            print(door.as_json(Asked(task=task, process=process)), file=child.stdin, flush=True)
        while True:
            ended, overdue = child.poll() is not None, said.is_overdue()
            found = [one for one in said.said if isinstance(one, Found | Failed)]
            if len(found) == process:
                return found[-1].window if isinstance(found[-1], Found) else found[-1]
            if ended or overdue:
                self.end()
                code, tail = child.returncode, self._log.read_text(errors="replace")
                name = signal.Signals(-code).name if code < 0 else ""
                return match.post_mortem(Completed(code, name, overdue, 0.0, tail), said.said)
            time.sleep(_ASK_S)


class _Watched:
    """A variant, the files that it depends on, and its last good version."""

    def __init__(self, corner: Corner, project: Path, folder: Path, worker: _Worker) -> None:
        self._file, self._name = corner.family.file, corner.variant.name
        self._project, self._folder, self._worker = project, folder, worker
        self._seen = {self._file: state_of(self._file)}
        self._contract = ""
        self._good: SideTask | None = None
        self._us = 0.0
        self._copies: dict[Path, SideTask] = {}
        self._seed, self._duels = randbits(32), 0

    def settle(self) -> None:
        """Waits until no file changes any more: an editor may write several, or one piece by piece."""
        while True:
            self._seen = {file: state_of(file) for file in self._seen}
            time.sleep(_POLL_S)
            if not self.is_outdated():
                return

    def is_outdated(self) -> bool:
        """Returns whether a file has changed since; few files are polled, which any file system allows."""
        return any(state_of(file) != state for file, state in self._seen.items())

    def tried(self, case: str, timer: Path, margin: float) -> Saved:
        """Builds the variant and lets it duel; what it returns for a version that is outdated means nothing."""
        compile_s, begin = 0.0, time.monotonic()
        try:
            corner = self._read(case)
            made = making.make(corner, self._worker.gpu, self._project)
            compile_s, begin = time.monotonic() - begin, time.monotonic()
            if made.build and made.build.status != "ok":
                return Saved(made.build.status, made.build.reason, compile_s=compile_s)
            new = self._side(made)
            if new == self._good:
                return Saved("unchanged", f"as {LAST}", self._us, compile_s)
            others = {LAST: self._good} if self._good else {}
            others |= self._parent(made, case)
            verdicts = dict[str, Verdict]()
            for name, other in (others or {"itself": new}).items():
                windows = self._windows(other, new, case, timer, margin)
                if isinstance(windows, Failed):
                    reason = f"against {name}: {windows.reason}"
                    return Saved(windows.status, reason, compile_s=compile_s, duel_s=time.monotonic() - begin)
                rule = evidence.rules(apart=False, margin=margin, looks=1)["rest"]
                verdicts[name] = rule.judge(windows)
                us = fmean(window.b_us for window in windows)
        except WarplogError as error:
            return Saved("error", str(error), compile_s=compile_s)
        self._good, self._us = new, us
        return Saved("ok", "", us, compile_s, time.monotonic() - begin, verdicts)

    def _read(self, case: str) -> Corner:
        """Loads the variant; where other arrays or answers are needed, the processes and the last good version go."""
        family = load_family(self._file)
        variant = family.variant(self._name)
        corner, reference = Corner(self._name, family, variant), family.folder / "reference.py"
        for file in (reference, variant.file, *variant.headers()):
            self._seen.setdefault(file, state_of(file))
        if why := why_other_work(corner, corner, case):
            raise WarplogError(why)
        contract = sha256_of(family.contract(), sha256_file(reference))
        if contract != self._contract:
            self._worker.end()
            self._contract, self._good = contract, None
        return corner

    def _side(self, made: Made) -> SideTask:
        """Returns what the processes load, which is the same file for the same build."""
        if made.file not in self._copies:
            folder = self._folder / f"library-{len(self._copies)}"
            self._copies[made.file] = match.side_task(made, folder)
        return replace(self._copies[made.file], memory=dict(made.corner.variant.memory))

    def _parent(self, made: Made, case: str) -> dict[str, SideTask]:
        """Returns the parent by its name; nothing, and says why, if it cannot duel."""
        family, name = made.corner.family, made.corner.variant.parent
        if not name:
            return {}
        corner = Corner(name, family, family.variant(name))
        why = why_other_work(corner, made.corner, case)
        if not why:
            parent = making.make(corner, self._worker.gpu, self._project)
            if parent.build and parent.build.status != "ok":
                why = f"its build: {parent.build.reason}"
            else:
                why = making.why_apart([parent, made])
        if why:
            say(f"  no duel against {name}: {why}")
            return {}
        return {name: self._side(parent)}

    def _windows(
        self, other: SideTask, new: SideTask, case: str, timer: Path, margin: float
    ) -> list[Window] | Failed:
        self._duels += 1
        task = DuelTask(
            backend=match.BACKEND,
            sides=(other, new),
            apart=False,
            case=case,
            timer=str(timer.resolve()),
            default_mhz=self._worker.gpu.max_sm_mhz,
            gpu_lock=self._worker.gpu.uuid,
            seed=self._seed,
            window_s=_WINDOW_S,
            margin=margin,
            looks=1,
            sustained=False,
            journal=str(self._folder / f"journal-{self._duels}.jsonl"),
        )
        said, windows = Listener(Path(task.journal), {}), list[Window]()
        for process in range(1, evidence.LEAST_PROCESSES + 1):
            if self.is_outdated():
                return Failed(status="skipped", reason="outdated")
            found = self._worker.ask(task, process, said)
            if isinstance(found, Failed):
                return found
            windows.append(found)
        return windows
