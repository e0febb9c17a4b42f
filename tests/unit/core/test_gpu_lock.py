"""The lock of a GPU: exclusive between processes, released by the OS, safe in a folder that all users can write to."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from warplog.core import locks
from warplog.core.errors import WarplogError
from warplog.core.locks import hold

UUID = "GPU-6f0f6e0c-1f6a-4b6b-9a55-000000000000"


def holder(folder: Path, uuid: str = UUID) -> "subprocess.Popen[str]":
    """Starts another process that holds the lock until it is killed."""
    code = (
        "import sys, time; from pathlib import Path; from warplog.core.locks import hold\n"
        "with hold(sys.argv[1], 30, Path(sys.argv[2])): print('held', flush=True); time.sleep(600)"
    )
    env = os.environ | {"PYTHONPATH": str(Path(locks.__file__).parents[2])}
    child = subprocess.Popen(
        [sys.executable, "-c", code, uuid, str(folder)], stdout=subprocess.PIPE, text=True, env=env
    )
    assert child.stdout.readline() == "held\n"
    return child


def end(child: "subprocess.Popen[str]") -> None:
    child.send_signal(signal.SIGKILL)
    child.communicate()


def test_a_second_process_prints_that_it_waits_and_gets_the_lock_after_kill_9(tmp_path, capsys):
    child = holder(tmp_path)
    try:
        with pytest.raises(WarplogError, match=r"was not free within 0 s.*doctor"), hold(UUID, 0.2, tmp_path):
            pytest.fail("two processes hold the lock")
        who = rf"process {child.pid} on {re.escape(socket.gethostname())} since [-0-9]{{10}} [:0-9]{{8}} UTC"
        said = rf"waiting for {UUID}: another process is measuring on it \({who}\)\n"
        assert re.fullmatch(said, capsys.readouterr().err)
    finally:
        end(child)
    with hold(UUID, 10, tmp_path) as path:
        assert path.is_file()
    assert capsys.readouterr().err == ""


def test_a_gpu_in_use_is_not_free_and_its_users_take_turns(tmp_path):
    assert locks.take_free(["GPU-a", "GPU-b"], 0, tmp_path) == "GPU-a"
    assert locks.take_free(["GPU-a", "GPU-b"], 0, tmp_path) == "GPU-b"
    with pytest.raises(WarplogError, match=r"none of GPU-a, GPU-b was free within 0 s.*doctor"):
        locks.take_free(["GPU-a", "GPU-b"], 0, tmp_path)
    assert locks.use("GPU-a", tmp_path), "further jobs of its families"
    with hold("GPU-a", 0, tmp_path), pytest.raises(WarplogError), hold("GPU-a", 0, tmp_path):
        pytest.fail("two jobs measure at once")


def test_a_symbolic_link_does_not_say_that_a_gpu_is_in_use(tmp_path):
    locks.lock_path("GPU-a in use", tmp_path).symlink_to(tmp_path / "victim")
    with pytest.raises(WarplogError, match="cannot be locked"):
        locks.use("GPU-a", tmp_path)


def test_all_users_can_open_the_file_and_its_name_is_safe(tmp_path):
    mask = os.umask(0o077)
    try:
        with hold("../../etc/passwd\n", 1, tmp_path) as path:
            assert path.parent == tmp_path
            assert stat.S_IMODE(path.stat().st_mode) == 0o666
    finally:
        os.umask(mask)


def test_a_symbolic_link_is_refused_and_its_target_unchanged(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    locks.lock_path(UUID, tmp_path).symlink_to(victim)
    with pytest.raises(WarplogError, match="cannot be locked"), hold(UUID, 1, tmp_path):
        pytest.fail("followed a link")
    assert victim.read_text() == "precious"
    assert stat.S_IMODE(victim.stat().st_mode) != 0o666


def test_the_lock_does_not_depend_on_tmpdir(monkeypatch, tmp_path):
    before = locks.lock_path(UUID)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert locks.lock_path(UUID) == before


@pytest.mark.parametrize(
    "note", [b"", b"1 \x1b[31mhost 2026-11-24 08:00:00 UTC\n", b"1 host yesterday\n", b"9" * (1 << 20)]
)
def test_what_others_wrote_into_the_file_is_not_printed(tmp_path, note):
    path = locks.lock_path(UUID, tmp_path)
    path.write_bytes(note)
    assert locks.holder(path) == ""


def test_a_fifo_in_its_place_is_refused(tmp_path):
    os.mkfifo(locks.lock_path(UUID, tmp_path))
    with pytest.raises(WarplogError, match="not a regular file"), hold(UUID, 1, tmp_path):
        pytest.fail("locked a FIFO")


def test_a_second_run_in_a_results_folder_is_told_whose_process_works_there(tmp_path):
    """The process that took the lock has ended; one that it started lives on and holds it."""
    results = tmp_path / "results"
    code = (
        "import os, sys, time; from warplog.core.locks import hold_folder; hold_folder(sys.argv[1])\n"
        "child = os.fork() or time.sleep(600)\nprint(os.getpid(), child, flush=True); os._exit(0)"
    )
    env = os.environ | {"PYTHONPATH": str(Path(locks.__file__).parents[2])}
    first = subprocess.Popen(
        [sys.executable, "-c", code, results], stdout=subprocess.PIPE, text=True, env=env
    )
    pid, child = first.stdout.readline().split()
    first.wait()
    ended = rf"process {pid} on .* since .* UTC, which has ended and left behind process {child}\); wait"
    try:
        with pytest.raises(WarplogError, match=rf"another run is working in {results} \({ended}"):
            locks.hold_folder(str(results))
    finally:
        os.kill(int(child), signal.SIGKILL)
        first.stdout.close()


def test_an_error_inside_the_block_releases_it(tmp_path):
    with pytest.raises(ValueError, match="inside"), hold(UUID, 1, tmp_path):
        raise ValueError("inside")
    end(holder(tmp_path))
