"""Exports a .nsys-rep (formerly .qdrep), whose format is not public, with the installed nsys."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.files import temporary_folder
from warplog.core.process import explain_exit, minimal_env, run
from warplog.machine.toolchain import find

_MAGIC = b"NVIDIA Tegra Profiler Report"
_SUFFIXES = (".nsys-rep", ".qdrep")
_EXPORT_S = 600.0
_MOST_OUTPUT = 300


def is_report(path: Path, start: bytes) -> bool:
    """Returns whether the file starts like an nsys report, or has its suffix and does not start with text."""
    binary = b"\0" in start or not start.isascii()
    return start.startswith(_MAGIC) or (path.suffix in _SUFFIXES and binary)


@contextmanager
def exported(path: Path) -> Iterator[Path]:
    """Exports the report to a temporary SQLite file; errors raised in the context name the report, not the export.

    Raises:
        WarplogError: if nsys is not installed or cannot export the report.
    """
    tool = find("nsys")
    if tool.path is None or not tool.ok:
        raise WarplogError(
            f"{path}: reading it requires nsys: install NVIDIA Nsight Systems, or run "
            f"`nsys export -t sqlite {path}` on a machine with nsys and extract its output"
        )
    with temporary_folder() as folder:
        database = folder / "export.sqlite"
        report = folder / "report.nsys-rep"  # nsys expects the suffix, which a pipe does not have
        report.symlink_to(path.absolute())
        where = (str(database), str(path.absolute() if path.suffix in _SUFFIXES else report))
        command = [str(tool.path), "export", "-t", "sqlite", "-f", "true", "-o", *where]
        done = run(command, timeout_s=_EXPORT_S, env=minimal_env())
        if not done.ok or not database.is_file():
            output = " ".join(done.output_tail.split())[-_MOST_OUTPUT:] or "no reason given"
            how = explain_exit(done) if not done.ok else "it wrote nothing"
            raise WarplogError(f"{path}: nsys {tool.version} cannot export it ({how}): {output}")
        try:
            yield database
        except WarplogError as error:
            raise WarplogError(str(error).replace(str(database), str(path))) from None
