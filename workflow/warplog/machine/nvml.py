"""NVIDIA's management library: one card at a time, no CUDA context, nothing is ever set.

What a GPU, a driver or a container does not tell is None, never an error and never an invented zero.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

_NOT_AVAILABLE = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


class NoGpuError(Exception):
    """There is no GPU that can be asked; the text says why and is fit for a user."""


@dataclass(frozen=True)
class Card:
    """An open GPU. `device` is a MIG instance where CUDA would use one; `board` is always the whole GPU."""

    library: Any
    device: Any
    board: Any

    @property
    def is_mig(self) -> bool:
        """True where the device is a part of the board."""
        return self.device is not self.board

    def ask(self, function: str, *arguments: object) -> Any:
        """The answer of `nvmlDevice<function>` for the whole GPU, or None."""
        return self._call(f"nvmlDevice{function}", self.board, *arguments)

    def ask_device(self, function: str, *arguments: object) -> Any:
        """The answer of `nvmlDevice<function>` for the part that CUDA uses, or None."""
        return self._call(f"nvmlDevice{function}", self.device, *arguments)

    def ask_system(self, function: str) -> Any:
        """The answer of `nvmlSystem<function>`, or None."""
        return self._call(f"nvmlSystem{function}")

    def constant(self, name: str) -> int | None:
        """A constant of the library, None where this version of nvidia-ml-py does not know it."""
        value = getattr(self.library, name, None)
        return value if isinstance(value, int) else None

    def _call(self, name: str, *arguments: object) -> Any:
        # A driver that knows only an older form of a call gives an error that is no NVMLError.
        mismatch = getattr(self.library, "NVMLLibraryMismatchError", self.library.NVMLError)
        try:
            value = getattr(self.library, name)(*arguments)
        except (self.library.NVMLError, mismatch, AttributeError, TypeError, UnicodeDecodeError):
            return None
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        return None if isinstance(value, int) and value in _NOT_AVAILABLE else value


@contextmanager
def opened(uuid: str | None = None) -> Iterator[Card]:
    """The GPU of that UUID, or the first one that CUDA_VISIBLE_DEVICES lets through.

    An index there is taken as `nvidia-smi` numbers the GPUs (CUDA_DEVICE_ORDER=PCI_BUS_ID).

    Raises:
        NoGpuError: no driver, no GPU, a hidden or an unknown one.
    """
    try:
        import pynvml
    except ImportError:
        raise NoGpuError("nvidia-ml-py is not installed") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoGpuError(_explain(error)) from None
    try:
        yield _choose(pynvml, uuid or _visible())
    finally:
        pynvml.nvmlShutdown()


@contextmanager
def kept_loaded() -> Iterator[None]:
    """Keeps the library loaded, so that opening a card meanwhile takes no time; without a GPU it does nothing."""
    with ExitStack() as open_card:
        with suppress(NoGpuError):
            open_card.enter_context(opened())
        yield


def _visible() -> str:
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    if setting is None:
        return "0"
    first = setting.split(",")[0].strip()
    if first in ("", "-1", "NoDevFiles"):
        raise NoGpuError(f"CUDA_VISIBLE_DEVICES={setting!r} hides every GPU")
    return first


def _choose(library: ModuleType, wanted: str) -> Card:
    if wanted.startswith("MIG-"):
        return _mig_by_uuid(library, wanted)
    board = _board(library, wanted)
    card = Card(library, board, board)
    mode = card.ask("GetMigMode")
    if not mode or mode[0] != 1:
        return card
    for index in range(card.ask("GetMaxMigDeviceCount") or 0):
        part = card.ask("GetMigDeviceHandleByIndex", index)
        if part is not None:
            return Card(library, part, board)
    raise NoGpuError(f"GPU {wanted} is in MIG mode and has no instance; `nvidia-smi mig` makes one")


def _board(library: ModuleType, wanted: str) -> object:
    try:
        boards = [library.nvmlDeviceGetHandleByIndex(i) for i in range(library.nvmlDeviceGetCount())]
        if wanted.isdecimal() and int(wanted) < len(boards):
            return boards[int(wanted)]
        uuids = [Card(library, board, board).ask("GetUUID") or "" for board in boards]
    except library.NVMLError as error:
        raise NoGpuError(_explain(error)) from None
    found = [board for board, uuid in zip(boards, uuids, strict=True) if uuid.startswith(wanted)]
    if wanted.startswith("GPU-") and found:
        return found[0]
    raise NoGpuError(
        f"there is no GPU {wanted!r}; this machine shows {len(boards)}: {', '.join(uuids) or '-'}"
    )


def _mig_by_uuid(library: ModuleType, uuid: str) -> Card:
    try:
        part = library.nvmlDeviceGetHandleByUUID(uuid)
        return Card(library, part, library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part))
    except library.NVMLError as error:
        raise NoGpuError(f"{uuid}: {_explain(error)}") from None


def _explain(error: Exception) -> str:
    kind = type(error).__name__.removeprefix("NVMLError_")
    told = {
        "LibraryNotFound": "there is no NVIDIA driver (no libnvidia-ml.so.1)",
        "DriverNotLoaded": "the NVIDIA driver is not loaded",
        "LibRmVersionMismatch": "the NVIDIA driver was updated under its library; reboot",
        "NoPermission": "no permission to ask the NVIDIA driver",
    }
    return told.get(kind, f"the NVIDIA driver does not answer ({error})")
