"""What a program printed: its end in memory, all of it up to a limit in a log file."""

from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

LOG_BYTES = 64 << 20
TAIL_BYTES = 64 << 10


class Transcript:
    """A context manager that takes in output in pieces; the log file is created with its folder."""

    def __init__(self, log: Path | None = None) -> None:
        """log: where the output goes as well.

        Raises:
            OSError: the log cannot be written.
        """
        self._log: BinaryIO | None = None
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            self._log = log.open("wb", buffering=0)
        self._room = LOG_BYTES
        self._kept = bytearray()

    def __enter__(self) -> Self:
        """Nothing is to be done."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the log."""
        if self._log is not None:
            self._log.close()

    def write(self, data: bytes) -> None:
        """Takes in a piece; past 64 MiB the log takes no more and says so."""
        self._kept += data
        if len(self._kept) > 4 * TAIL_BYTES:
            del self._kept[:-TAIL_BYTES]
        if self._log is None or self._room <= 0:
            return
        self._log.write(data[: self._room])
        self._room -= len(data)
        if self._room <= 0:
            self._log.write(f"\n[the log ends here: {LOG_BYTES} bytes are enough]\n".encode())

    def tail(self) -> str:
        """The last 64 KiB; bytes that are no text are replaced."""
        return self._kept[-TAIL_BYTES:].decode("utf-8", errors="replace")
