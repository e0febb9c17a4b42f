"""A .nsys-rep (once .qdrep) has no public format: the installed nsys exports it, into a temporary folder."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.process import explain_exit, minimal_env, run
from warplog.machine.toolchain import find

_SUFFIXES = (".nsys-rep", ".qdrep")
_EXPORT_S = 600.0
_MOST_SAID = 300


def is_report(path: Path, start: bytes) -> bool:
    """Whether the file is one, by its name; by its start it only cannot be a text."""
    return path.suffix in _SUFFIXES and (b"\0" in start or not start.isascii())


@contextmanager
def exported(path: Path) -> Iterator[Path]:
    """The report as SQLite, gone afterwards; what is raised inside names the report.

    Raises:
        WarplogError: no nsys is installed, or it cannot read the report.
    """
    tool = find("nsys")
    if tool.path is None or not tool.ok:
        raise WarplogError(
            f"{path}: reading it needs nsys: install NVIDIA Nsight Systems, or, where nsys is, "
            f"`nsys export -t sqlite {path.name}` and extract that"
        )
    with tempfile.TemporaryDirectory(prefix="warplog-") as folder:
        database = Path(folder) / "export.sqlite"
        where = (str(database), str(path.absolute()))
        command = [str(tool.path), "export", "-t", "sqlite", "-f", "true", "-o", *where]
        done = run(command, timeout_s=_EXPORT_S, env=minimal_env())
        if not done.ok or not database.is_file():
            said = " ".join(done.output_tail.split())[-_MOST_SAID:] or "no reason given"
            how = explain_exit(done) if not done.ok else "it wrote nothing"
            raise WarplogError(f"{path}: nsys {tool.version} cannot export it ({how}): {said}")
        try:
            yield database
        except WarplogError as error:
            raise WarplogError(str(error).replace(str(database), str(path))) from None
