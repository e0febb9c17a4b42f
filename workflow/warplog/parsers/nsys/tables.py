"""Reads tables of an untrusted SQLite file by column name: read-only, with a size limit, after an integrity check."""

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from warplog.core.errors import WarplogError

MAGIC = b"SQLite format 3\0"
MAX_BYTES = 2 * 1024**3
MAX_ROWS = 2_000_000
_HEADER_BYTES = 100


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Opens the database after checking its integrity; no file is written beside it.

    Raises:
        WarplogError: if the file is missing, empty, larger than MAX_BYTES, not SQLite, truncated or damaged, or
            if reading it in the context fails.
    """
    _check_size(path)
    uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True)
    try:
        connection.text_factory = _text
        connection.execute("pragma trusted_schema = off")
        found = connection.execute("pragma quick_check(1)").fetchone()
        if found is None or found[0] != "ok":
            raise WarplogError(f"{path}: is damaged; export it again")
        yield connection
    except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        raise WarplogError(f"{path}: is damaged ({' '.join(str(error).split())}); export it again") from None
    finally:
        connection.close()


def select(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Returns the rows of a table with these columns in this order; a missing column is None in every row.

    A table that does not exist has no rows. Views are ignored: only stored tables are read.

    Raises:
        WarplogError: if the table has more than MAX_ROWS rows.
    """
    if not has_table(connection, table):
        return []
    present = {row[1] for row in connection.execute(f'pragma table_info("{table}")')}
    picked = ", ".join(f'"{name}"' if name in present else "null" for name in columns)
    # Table and column names come from this package, never from the file.
    rows = connection.execute(f'select {picked} from "{table}" limit {MAX_ROWS + 1}').fetchall()  # noqa: S608
    if len(rows) > MAX_ROWS:
        raise WarplogError(f"{table}: more than {MAX_ROWS} rows; profile a shorter run")
    return rows


def has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Returns whether the file contains a stored table of this name."""
    query = "select count(*) from sqlite_master where type = 'table' and name = ?"
    return bool(connection.execute(query, (table,)).fetchone()[0])


def is_sqlite(start: bytes) -> bool:
    """Returns whether a file that starts with these bytes is an SQLite database."""
    return start.startswith(MAGIC)


def _check_size(path: Path) -> None:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise WarplogError(f"{path}: cannot be read ({error.strerror})") from None
    if size == 0:
        raise WarplogError(f"{path}: is empty; the profiler wrote no report")
    if size > MAX_BYTES:
        raise WarplogError(f"{path}: {size} bytes, over the limit of {MAX_BYTES}; profile a shorter run")
    if not is_sqlite(header):
        raise WarplogError(f"{path}: is not an SQLite file; export the report with `nsys export -t sqlite`")
    page, pages = struct.unpack(">H", header[16:18].ljust(2, b"\0"))[0], header[28:32]
    whole = (65536 if page == 1 else page) * int.from_bytes(pages, "big")
    if len(header) < _HEADER_BYTES or size < whole:
        raise WarplogError(f"{path}: is truncated: {size} bytes of {whole}; export it again")


def _text(raw: bytes) -> str:
    r"""Returns a stored text; a byte that is not UTF-8, as in the name of a program, becomes `\xe9`."""
    return raw.decode("utf-8", "backslashreplace")
