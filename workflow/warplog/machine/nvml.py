"""Read-only access to NVML, NVIDIA's management library, without a CUDA context.

A value that the GPU, the driver or the container does not report is None, never an error and never zero.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

_NOT_AVAILABLE = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


class NoGpuError(Exception):
    """No GPU can be queried; the text gives the reason in one phrase for users."""


@dataclass(frozen=True)
class Card:
    """An open GPU: `device` is the MIG instance if CUDA would use one, `board` is always the whole GPU."""

    library: Any
    device: Any
    board: Any

    @property
    def is_mig(self) -> bool:
        """Whether the device is a MIG instance of the board."""
        return self.device is not self.board

    def ask(self, function: str, *arguments: object) -> Any:
        """Calls `nvmlDevice<function>` for the whole GPU; returns None if it is not supported."""
        return self._call(f"nvmlDevice{function}", self.board, *arguments)

    def ask_device(self, function: str, *arguments: object) -> Any:
        """Calls `nvmlDevice<function>` for the device that CUDA uses; returns None if it is not supported."""
        return self._call(f"nvmlDevice{function}", self.device, *arguments)

    def ask_system(self, function: str) -> Any:
        """Calls `nvmlSystem<function>`; returns None if it is not supported."""
        return self._call(f"nvmlSystem{function}")

    def constant(self, name: str) -> int | None:
        """Returns a constant of the library; None if this version of nvidia-ml-py lacks it."""
        value = getattr(self.library, name, None)
        return value if isinstance(value, int) else None

    def _call(self, name: str, *arguments: object) -> Any:
        # A driver that only has an older version of a call raises an error that is not an NVMLError.
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
    """Opens the GPU with this UUID, by default the first one in CUDA_VISIBLE_DEVICES.

    An index in that variable is interpreted as in `nvidia-smi` (CUDA_DEVICE_ORDER=PCI_BUS_ID).

    Raises:
        NoGpuError: There is no driver or no GPU, or the GPU is hidden or unknown.
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
        yield _choose(pynvml, uuid or _first_visible())
    finally:
        pynvml.nvmlShutdown()


@contextmanager
def kept_loaded() -> Iterator[None]:
    """Keeps NVML loaded in the block, so that opening a card is fast; does nothing without a GPU."""
    with ExitStack() as open_card:
        with suppress(NoGpuError):
            open_card.enter_context(opened())
        yield


def visible() -> list[str]:
    """Returns the names (index or UUID) of the GPUs in CUDA_VISIBLE_DEVICES; the indices of all GPUs if it is unset.

    Raises:
        NoGpuError: The variable hides all GPUs, or there is no driver.
    """
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    if setting is not None:
        return _listed(setting)
    with opened("0") as card:
        return [str(index) for index in range(card.library.nvmlDeviceGetCount())]


def _listed(setting: str) -> list[str]:
    names = [name.strip() for name in setting.split(",")]
    shown = names[: next((i for i, name in enumerate(names) if name in ("", "-1", "NoDevFiles")), len(names))]
    if not shown:
        raise NoGpuError(f"CUDA_VISIBLE_DEVICES={setting!r} hides all GPUs")
    return shown


def _first_visible() -> str:
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "0" if setting is None else _listed(setting)[0]


def _choose(library: ModuleType, name: str) -> Card:
    if name.startswith("MIG-"):
        return _mig_by_uuid(library, name)
    board = _board(library, name)
    card = Card(library, board, board)
    mode = card.ask("GetMigMode")
    if not mode or mode[0] != 1:
        return card
    for index in range(card.ask("GetMaxMigDeviceCount") or 0):
        part = card.ask("GetMigDeviceHandleByIndex", index)
        if part is not None:
            return Card(library, part, board)
    raise NoGpuError(f"GPU {name} is in MIG mode without an instance; create one with `nvidia-smi mig`")


def _board(library: ModuleType, name: str) -> object:
    try:
        count = library.nvmlDeviceGetCount()
        if name.isdecimal() and int(name) < count:
            return library.nvmlDeviceGetHandleByIndex(int(name))
    except library.NVMLError as error:
        raise NoGpuError(_explain(error)) from None
    boards = {}
    for index in range(count):
        with suppress(library.NVMLError):  # a GPU that was lost; the others still respond
            board = library.nvmlDeviceGetHandleByIndex(index)
            boards[Card(library, board, board).ask("GetUUID") or ""] = board
    matching = [board for uuid, board in boards.items() if uuid.startswith(name)]
    if name.startswith("GPU-") and matching:
        return matching[0]
    raise NoGpuError(f"no GPU {name!r}; the driver lists {count}: {', '.join(boards) or '-'}")


def _mig_by_uuid(library: ModuleType, uuid: str) -> Card:
    try:
        part = library.nvmlDeviceGetHandleByUUID(uuid)
        return Card(library, part, library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part))
    except library.NVMLError as error:
        raise NoGpuError(f"{uuid}: {_explain(error)}") from None


def _explain(error: Exception) -> str:
    kind = type(error).__name__.removeprefix("NVMLError_")
    reasons = {
        "LibraryNotFound": "no NVIDIA driver is installed (libnvidia-ml.so.1 is missing)",
        "DriverNotLoaded": "the NVIDIA driver is not loaded",
        "LibRmVersionMismatch": "the versions of the NVIDIA kernel module and library differ after an update; reboot",
        "NoPermission": "no permission to query the NVIDIA driver",
    }
    return reasons.get(kind, f"the NVIDIA driver does not respond ({error})")
