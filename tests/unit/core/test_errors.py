"""What a user can remedy is one line, also if the disk is full or read-only, and so is Ctrl-C."""

import errno
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warplog.core import errors, locks
from warplog.core.errors import WarplogError, as_one_line, naming
from warplog.core.files import write_text
from warplog.plan import script


class Full(io.StringIO):
    """A log on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_want_of_space_or_permission_is_one_line(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done, as_one_line():
        raise OSError(number, os.strerror(number), "results/x")
    assert done.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: results/x: cannot be written ({os.strerror(number)}); ")
    assert line.endswith("and run again")


def test_a_full_disk_is_named_with_the_nearest_folder_that_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit), as_one_line(), naming(tmp_path / "results" / "x.log"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    line = capsys.readouterr().err
    assert line.startswith(f"error: {tmp_path}/results/x.log: cannot be written (No space left on device); ")
    assert re.search(rf"; free space on the disk \({tmp_path}: \d+ MiB free\) and run again\n$", line)


def test_if_a_file_has_no_name_the_fuller_disk_of_those_in_question_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(errors, "TEMPORARY", tmp_path)
    usage = type(shutil.disk_usage(tmp_path))
    free = {tmp_path: 3 << 20}
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage(1 << 40, 0, free.get(place, 1 << 30)))
    with pytest.raises(SystemExit), as_one_line():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert f"free space on the disk ({tmp_path}: 3 MiB free)" in capsys.readouterr().err


def test_files_have_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_text(tmp_path / "private", "")
        locks.hold_folder(str(tmp_path / "results"))
        os.umask(0o002)
        write_text(tmp_path / "shared", "")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()}
    assert modes == {"private": 0o600, ".lock": 0o600, "shared": 0o664}


def test_another_error_of_the_system_keeps_its_traceback() -> None:
    with pytest.raises(ConnectionResetError), as_one_line():
        raise ConnectionResetError(errno.ECONNRESET, "reset")


def test_an_interrupted_job_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done, script.job(str(tmp_path / "job.log")):
        raise KeyboardInterrupt
    assert done.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert (tmp_path / "job.log").read_text() == "interrupted\n"


def test_an_interrupt_while_a_script_imports_is_one_line() -> None:
    program = "snakemake = 1; import warplog.core.errors; raise KeyboardInterrupt"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == "interrupted\n"
    assert done.returncode != 0


def test_an_error_is_printed_although_its_log_is_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "open", lambda *_, **__: Full())
    with pytest.raises(SystemExit), script.job(str(tmp_path / "job.log")):
        raise WarplogError("results: the disk is full")
    assert capsys.readouterr().err == "error: results: the disk is full\n"


def test_a_log_that_cannot_be_opened_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").write_text("a file in place of the folder")
    with (
        pytest.raises((SystemExit, FileExistsError, NotADirectoryError)),
        script.job(str(tmp_path / "logs/job.log")),
    ):
        raise AssertionError("the job must not run")
    assert "Traceback" not in capsys.readouterr().err


def test_a_results_folder_that_cannot_be_locked_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(
        WarplogError, match=r"\.lock: cannot be locked \(Read-only file system\); check free space"
    ):
        locks.hold_folder(str(tmp_path / "results"))
