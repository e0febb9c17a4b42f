"""Running programs: exit status, killed process groups, log and environment."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warplog.core import process
from warplog.core import process as transcript
from warplog.core.process import explain_exit, minimal_env, run

LONG = 30.0


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition, seconds=LONG):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.01)


def test_output_of_both_streams_reaches_the_tail_and_the_log(tmp_path):
    log = tmp_path / "logs" / "a.log"
    done = run(
        python("import sys; print('out', flush=True); print('err', file=sys.stderr)"), timeout_s=LONG, log=log
    )
    assert done.ok
    assert explain_exit(done) == "exit status 0"
    assert done.output_tail == "out\nerr\n" == log.read_text()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(3)", "exit status 3"),
        ("import os; os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
        ("raise SystemExit(139)", "exit status 139 (as after SIGSEGV)"),
    ],
)
def test_a_failing_program_is_explained_and_raises_nothing(code, expected):
    done = run(python(code), timeout_s=LONG)
    assert not done.ok
    assert explain_exit(done) == expected


def test_missing_and_non_executable_programs_have_the_exit_status_of_a_shell(tmp_path):
    missing = run([tmp_path / "nvcc"], timeout_s=LONG, log=tmp_path / "log")
    assert (missing.returncode, "nvcc: No such file" in missing.output_tail) == (127, True)
    assert "No such file" in (tmp_path / "log").read_text()
    (tmp_path / "plain").write_text("text")
    assert run([tmp_path / "plain"], timeout_s=LONG).returncode == 126


def test_a_timeout_kills_the_whole_group_even_if_sigterm_is_ignored(tmp_path):
    script = "trap '' TERM; sleep 600 & echo $$ $! > pids; echo started; wait; sleep 600"
    done = run(["sh", "-c", script], timeout_s=1.0, cwd=tmp_path)
    assert done.timed_out
    assert not done.ok
    assert explain_exit(done).startswith("timed out after ")
    assert done.output_tail == "started\n"
    wait_until(lambda: not any(is_running(int(pid)) for pid in (tmp_path / "pids").read_text().split()))


def test_a_program_can_still_write_output_after_a_timeout():
    done = run(["sh", "-c", "trap 'echo last words; exit' TERM; sleep 600 & wait"], timeout_s=1.0)
    assert done.timed_out
    assert done.output_tail == "last words\n"


def test_remaining_children_do_not_delay_the_run(tmp_path):
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid)"
    )
    done = run(python(code), timeout_s=LONG)
    assert done.ok
    wait_until(lambda: not is_running(int(done.output_tail)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_us_kills_the_program(tmp_path, number):
    pid = tmp_path / "pid"
    inner = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid()) + '.'); time.sleep(600)"
    outer = f"import sys; from warplog.core.process import run; run([sys.executable, '-c', {inner!r}], timeout_s=600)"
    with subprocess.Popen(python(outer), stderr=subprocess.DEVNULL, env=pythonpath()) as parent:
        wait_until(lambda: pid.exists() and pid.read_text().endswith("."))
        parent.send_signal(number)
        parent.wait(LONG)
    wait_until(lambda: not is_running(int(pid.read_text()[:-1])))


def pythonpath() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(process.__file__).parents[2])}


def test_endless_output_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(transcript, "LOG_BYTES", 1000)
    monkeypatch.setattr(transcript, "TAIL_BYTES", 100)
    code = "import sys\nfor i in range(20000): sys.stdout.write(f'{i:05d}\\n')"
    done = run(python(code), timeout_s=LONG, log=tmp_path / "log")
    assert done.output_tail.endswith("19998\n19999\n")
    assert len(done.output_tail) == 100
    log = (tmp_path / "log").read_text()
    assert log.startswith("00000\n00001\n")
    assert "log truncated after 1000 bytes" in log
    assert len(log) < 1100


def test_output_that_is_not_text_is_accepted():
    done = run(python("import os; os.write(1, b'\\xff\\xfeok')"), timeout_s=LONG)
    assert done.output_tail.endswith("ok")


def test_standard_input_is_empty():
    assert run(python("import sys; print(repr(sys.stdin.read()))"), timeout_s=LONG).output_tail == "''\n"


def test_minimal_env_keeps_what_cuda_requires_and_no_secrets(monkeypatch):
    for name in os.environ:
        if name.startswith("CUDA_"):
            monkeypatch.delenv(name)
    given = {
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "MLFLOW_TRACKING_PASSWORD": "s3cret",
        "CUDA_API_TOKEN": "s3cret",
        "CUDA_REPO_KEY": "s3cret",
        "CUDA_MIRROR": "https://me:s3cret@example.org/",
        "CUDA_VISIBLE_DEVICES": "1",
        "CUDA_HOME": "/opt/cuda",
        "LD_LIBRARY_PATH": "/opt/lib",
        "OMP_NUM_THREADS": "4",
        "OPENBLAS_NUM_THREADS": "2",
        "EDITOR": "vi",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    env = minimal_env({"EXTRA": "1"})
    kept = {name: value for name, value in given.items() if "s3cret" not in value and name != "EDITOR"}
    assert env.items() >= {**kept, "EXTRA": "1"}.items()
    assert "s3cret" not in str(env)
    assert "EDITOR" not in env
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    assert minimal_env()["CUDA_DEVICE_ORDER"] == "FASTEST_FIRST"


def test_the_program_only_gets_the_given_environment(monkeypatch):
    monkeypatch.setenv("WARPLOG_PROBE", "visible")
    done = run(python("import os; print('WARPLOG_PROBE' in os.environ)"), timeout_s=LONG, env=minimal_env())
    assert done.output_tail == "False\n"


def test_stop_ends_the_program_before_its_time_limit(tmp_path):
    log = tmp_path / "log"
    done = run(
        ["sh", "-c", "echo enough; sleep 600"], timeout_s=600, log=log, stop=lambda: log.stat().st_size > 0
    )
    assert done.timed_out
    assert done.output_tail == "enough\n"


def test_a_signal_while_a_program_starts_is_deferred_until_the_program_can_be_killed(monkeypatch, tmp_path):
    pid = tmp_path / "pid"
    start = process._start

    def interrupted_start(*arguments):
        child = start(*arguments)
        pid.write_text(str(child.pid))
        signal.raise_signal(signal.SIGINT)  # its handler has run before this returns
        return child

    monkeypatch.setattr(process, "_start", interrupted_start)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(python("import time; time.sleep(600)"), timeout_s=LONG)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    wait_until(lambda: not is_running(int(pid.read_text())))


def test_a_second_signal_while_the_program_is_ended_does_not_leave_it_behind(monkeypatch):
    ended, end = [], process._end

    def signalled_again(child, *arguments, **options):
        ended.append(child.pid)
        os.kill(os.getpid(), signal.SIGTERM)
        end(child, *arguments, **options)

    monkeypatch.setattr(process, "_end", signalled_again)
    with pytest.raises(SystemExit):
        run(["sleep", "600"], timeout_s=600, stop=lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(ProcessLookupError):
        os.kill(ended[0], 0)


def test_a_program_beside_a_block_reads_what_it_writes_and_ends_with_its_children(tmp_path):
    log = tmp_path / "log"
    child = (
        "import subprocess, sys; print(subprocess.Popen(['sleep', '100']).pid, input(), flush=True); input()"
    )

    def interrupted():
        with process.beside(python(child), log, dict(os.environ)) as program:
            print("hello", file=program.stdin, flush=True)
            wait_until(lambda: "hello" in log.read_text())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    wait_until(lambda: not is_running(int(log.read_text().split()[0])))
