"""Inputs that are not plain files: pipes, standard input, devices; and outputs that must not replace an input."""

import io
import os
import subprocess
import sys
import threading
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow
import pytest

from report_files import Launch, write_ncu
from warplog.cli.main import main
from warplog.core import files
from warplog.core.errors import WarplogError
from warplog.core.paths import PACKAGE
from warplog.parsers import inputs, output, reports
from warplog.parsers.reports import read_any

DATA = Path(__file__).parents[2] / "data" / "parsers"
LOG = """ptxas info    : Compiling entry function 'scale' for 'sm_80'
ptxas info    : Function properties for scale
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers
"""


@pytest.fixture
def report(tmp_path):
    return write_ncu(tmp_path / "report.ncu-rep", [Launch("k", {"gpu__time_duration.sum": 2000.0})])


def durations(rows):
    return [(row.source, row.value) for row in rows if row.metric == "duration_us"]


def extract(*arguments, **options):
    """Runs `warplog extract`; as a process of its own where options change its standard input or folder."""
    words = ["extract", *map(str, arguments)]
    if options:
        environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
        command = [sys.executable, "-m", "warplog", *words]
        return subprocess.run(command, capture_output=True, env=environment, timeout=120, **options)
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        status = main(words)
    return subprocess.CompletedProcess(words, status, out.buffer.getvalue(), err.buffer.getvalue())


def fed(fifo, content):
    """Writes to the fifo as soon as somebody reads it."""
    os.mkfifo(fifo)
    thread = threading.Thread(target=fifo.write_bytes, args=(content,), daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_read_whole(report, name):
    done = extract(name, "--metric", "duration_us", input=report.read_bytes())
    assert done.stderr == b""
    shown = "'-" if name == "-" else name  # a cell that begins with a minus is a formula to a spreadsheet
    assert done.stdout.splitlines()[1].startswith(f"{shown},ncu,".encode())


def test_standard_input_may_be_a_file(report):
    with report.open("rb") as file:
        done = extract("-", "--metric", "duration_us", stdin=file)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 2)


def test_a_named_pipe_gives_what_the_file_gives(tmp_path, report):
    fifo = tmp_path / "fifo"
    writer = fed(fifo, report.read_bytes())
    assert durations(read_any(fifo)) == [(str(fifo), 2.0)]
    writer.join()


def test_many_files_and_a_pipe_are_read_in_their_order(tmp_path, report, monkeypatch):
    monkeypatch.setattr(reports, "FILES_A_PROCESS", 1)
    fifo = tmp_path / "fifo"
    writer = fed(fifo, report.read_bytes())
    found = reports.read_all([report, fifo, report], pytest.fail)
    assert list(found[found.metric == "duration_us"]["source"]) == [str(report), str(fifo), str(report)]
    writer.join()


def test_an_error_about_a_pipe_names_the_pipe(tmp_path):
    fifo = tmp_path / "fifo"
    writer = fed(fifo, b"NVR\0")
    with pytest.raises(WarplogError, match=rf"^{fifo}: is truncated") as caught:
        read_any(fifo)
    assert "piped" not in str(caught.value)
    writer.join()


def test_a_pipe_that_nobody_writes_to_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "_WAIT_S", 0.01)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(WarplogError, match="nothing was written to this pipe"):
        read_any(tmp_path / "fifo")


def test_a_pipe_with_too_much_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "MOST_COPIED_BYTES", 100)
    fifo = tmp_path / "fifo"
    fed(fifo, b"x" * 101)
    with pytest.raises(WarplogError, match="over the limit of 100 bytes"):
        read_any(fifo)


def test_an_endless_device_is_refused_unread():
    done = extract("/dev/zero", "-", stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert [line.split(b": ")[1:3] for line in done.stderr.splitlines()] == [
        [name, b"cannot be read (it is a terminal or another device, not a report)"]
        for name in (b"/dev/zero", b"-")
    ]


def test_a_file_that_is_larger_than_its_size_is_read_up_to_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "growing"
    path.write_bytes(b"x" * 50)
    real = os.stat_result((*path.stat()[:6], 0, *path.stat()[7:]))
    monkeypatch.setattr(type(path), "stat", lambda _: real)
    assert files.read_bytes(path, 50, "split it") == b"x" * 50
    with pytest.raises(WarplogError, match="over the limit of 49; split it"):
        files.read_bytes(path, 49, "split it")


@pytest.mark.parametrize("other", ["report.ncu-rep", "./report.ncu-rep", "link"])
def test_an_input_is_never_overwritten(tmp_path, report, other):
    (tmp_path / "link").symlink_to(report)
    whole = report.read_bytes()
    done = extract(report, "-o", tmp_path / other)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"is both an input and the output; name another output" in done.stderr
    assert report.read_bytes() == whole


def test_a_report_that_a_pattern_made_the_output_is_not_replaced(tmp_path, report):
    second = tmp_path / "second.ncu-rep"
    second.write_bytes(report.read_bytes())
    done = extract("-o", report, second)
    assert done.returncode == 1
    assert b"report.ncu-rep: exists and is not a table of warplog extract" in done.stderr
    assert report.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_an_earlier_output_is_replaced_but_only_by_rows(tmp_path, report, suffix):
    out = tmp_path / f"out.{suffix}"
    assert extract(report, "-o", out).returncode == 0
    first = out.read_bytes()
    report.write_bytes(b"NVR\0")
    assert extract(report, "-o", out).returncode == 1
    assert out.read_bytes() == first
    log = tmp_path / "a.log"
    log.write_text(LOG)
    assert extract(log, "-o", out).returncode == 0
    assert out.read_bytes() != first


def test_an_empty_file_may_become_the_output(tmp_path, report):
    out = tmp_path / "out"
    out.touch()
    output.check(out, [report])
    out.write_text("notes\n")
    with pytest.raises(WarplogError, match="exists and is not a table"):
        output.check(out, [report])


def test_nothing_is_written_if_nothing_was_read(tmp_path):
    assert extract(tmp_path / "missing", "-o", tmp_path / "out.csv").returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_a_dash_in_front_needs_no_separator(tmp_path, report):
    report.rename(tmp_path / "-r.ncu-rep")
    done = extract("-r.ncu-rep", "--metric", "duration_us", cwd=tmp_path)
    assert done.stdout.splitlines()[1].startswith(b"'-r.ncu-rep,ncu,")


def test_a_file_named_twice_is_read_once_with_a_note(tmp_path, report):
    (tmp_path / "link").symlink_to(report)
    done = extract(report, tmp_path / "link", report, "--metric", "duration_us")
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 2)
    notes = done.stderr.decode().splitlines()
    assert notes == [
        f"note: {name}: is the same file as {report}; it is read once" for name in (tmp_path / "link", report)
    ]


def compressed(path, content, pieces=1):
    """Writes the content as zstd frames, one per piece."""
    size = -(-len(content) // pieces)
    frames = (
        pyarrow.compress(content[i : i + size], "zstd", asbytes=True) for i in range(0, len(content), size)
    )
    path.write_bytes(b"".join(frames))
    return path


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("name", ["transpose_h200.ncu-rep", "ptxas_sm90.log"])
def test_a_compressed_report_gives_the_rows_of_the_report(tmp_path, name, pieces):
    packed = compressed(tmp_path / os.fsdecode(b"caf\xe9.ncu-repz"), (DATA / name).read_bytes(), pieces)
    whole = [row._replace(source=f"{tmp_path}/caf\\xe9.ncu-repz") for row in read_any(DATA / name)]
    assert read_any(packed) == whole != []


def test_a_compressed_report_is_read_from_a_pipe(tmp_path, report):
    packed = compressed(tmp_path / "packed", report.read_bytes())
    done = extract("-", "--metric", "duration_us", input=packed.read_bytes())
    assert (done.returncode, done.stdout.count(b"\n"), done.stderr) == (0, 2, b"")


def test_a_cut_compressed_report_is_refused_by_its_name(tmp_path, report):
    packed = compressed(tmp_path / "r.ncu-repz", report.read_bytes())
    data = packed.read_bytes()
    for content in (*(data[:place] for place in range(4, len(data))), data + b"more"):
        packed.write_bytes(content)
        with pytest.raises(
            WarplogError, match=rf"^{packed}: is truncated or damaged \(.*\); compress it again$"
        ):
            read_any(packed)


def test_a_compressed_part_of_a_report_is_refused_by_its_name(tmp_path, report):
    packed = compressed(tmp_path / "r.ncu-repz", report.read_bytes()[:-1])
    with pytest.raises(WarplogError, match=rf"^{packed}: is truncated or damaged") as caught:
        read_any(packed)
    assert "unpacked" not in str(caught.value)


def test_what_unpacks_to_too_much_is_refused_while_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "MOST_COPIED_BYTES", inputs._PIECE)
    packed = compressed(tmp_path / "bomb.ncu-repz", bytes(100 * inputs._PIECE))
    assert packed.stat().st_size < inputs._PIECE // 10
    written = []
    monkeypatch.setattr(inputs, "naming", lambda path: written.append(path) or nullcontext())
    with pytest.raises(
        WarplogError, match=rf"^{packed}: its content is over the limit of {inputs._PIECE} bytes"
    ):
        read_any(packed)
    assert len(written) == 1


def test_what_is_compressed_twice_is_no_report(tmp_path, report):
    packed = compressed(tmp_path / "twice", compressed(tmp_path / "once", report.read_bytes()).read_bytes())
    with pytest.raises(WarplogError, match=rf"^{packed}: is damaged: it contains zero bytes"):
        read_any(packed)
