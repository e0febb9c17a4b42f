"""The command `warplog`: output, messages and exit status."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import warplog
from captures import CAPTURES
from report_files import Launch, Nsys, write_ncu
from warplog.cli import doctor, main
from warplog.cli.checkup.finding import Finding
from warplog.cli.main import make_parser
from warplog.core.columns import CLAIMS
from warplog.metrics.names import EVERYWHERE
from warplog.parsers.rows import COLUMNS
from warplog.tables import files

PACKAGES = Path(warplog.__file__).parents[1]
PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5scalePfi' for 'sm_90'
ptxas info    : Function properties for _Z5scalePfi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "compile.log"
    path.write_text(PTXAS)
    return path


def test_version_and_help_need_no_installation():
    for arguments, expected in ((["--version"], warplog.__version__), (["--help"], "examples:")):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", CLI_ALONE, *arguments],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout


CLI_ALONE = f"""
import sys
sys.path.insert(0, {str(PACKAGES)!r})
from warplog.cli.main import main
sys.exit(main())
"""


def test_a_missing_package_is_one_line_and_no_traceback(log):
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", CLI_ALONE, "extract", str(log)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "is not installed: pip install warplog (in a checkout: `uv run warplog`)" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("module", "package"),
    [("snakemake", "snakemake"), ("PIL.Image", "pillow"), ("mlflow.entities", "mlflow")],
)
def test_a_missing_package_of_a_campaign_names_its_extra(monkeypatch, capsys, module, package):
    def fail(_options):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setitem(main._COMMANDS, "doctor", fail)
    assert main.main(["doctor"]) == 1
    assert capsys.readouterr().err == (
        f"error: the Python package {package} is not installed; it belongs to the extra workflow:"
        ' pip install "warplog[workflow]" (in a checkout: `uv run warplog`)\n'
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["measure"],
        ["extract"],
        ["extract", "a", "--format", "xml"],
        ["extract", "a", "--format", "parquet"],
    ],
)
def test_wrong_usage_has_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main.main(arguments)
    assert caught.value.code == 2
    assert "usage: warplog" in capsys.readouterr().err


def test_extract_writes_csv_to_standard_output(log, capsys):
    assert main.main(["extract", str(log)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == ",".join(COLUMNS)
    registers = next(line for line in lines if "registers_per_thread" in line)
    assert "compile.log,ptxas" in registers
    assert ",8.0," in registers


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_the_formats_hold_the_same_rows(log, tmp_path, suffix, capsys):
    output = tmp_path / f"out.{suffix}"
    assert main.main(["extract", str(log), "-o", str(output)]) == 0
    read = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}[suffix]
    table = read(output)
    assert list(table.columns) == list(COLUMNS)
    values = dict(zip(table["metric"], table["value"], strict=True))
    assert (values["registers_per_thread"], values["spill_load_bytes"]) == (8, 0)
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_bad_file_is_one_line_and_the_others_are_still_written(log, tmp_path, capsys):
    bad = tmp_path / "bad\nname.ncu-rep"
    bad.write_bytes(b"NVR\0" + b"\xff" * 100)
    files = [bad, log, tmp_path / "missing.ncu-rep", tmp_path]
    assert main.main(["extract", *map(str, files), "--format", "json"]) == 1
    output = capsys.readouterr()
    errors = output.err.splitlines()
    assert len(errors) == 3
    assert all(line.startswith("error: ") for line in errors)
    assert "missing.ncu-rep" in errors[1]
    assert {row["source"] for row in json.loads(output.out)} == {str(log)}


@pytest.fixture
def report(tmp_path):
    slow = {
        "gpu__time_duration.sum": 9000.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 95.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
        "smsp__pcsamp_warps_issue_stalled_selected": 10.0,
        **{f"launch__occupancy_limit_{name}": 8.0 for name in ("warps", "blocks", "registers")},
        "memory_l1_wavefronts_shared": 96.0,
        "memory_l1_wavefronts_shared_ideal": 32.0,
    }
    slow["launch__occupancy_limit_registers"] = 2.0
    slow |= {
        f"smsp__pcsamp_warps_issue_stalled_{reason}": 0.0
        for reason in EVERYWHERE
        if reason not in {"selected"}
    }
    slow["smsp__pcsamp_warps_issue_stalled_no_instructions"] = 0.0
    slow["smsp__pcsamp_warps_issue_stalled_lg_throttle"] = 30.0
    launches = [Launch("slow_gemm", slow), Launch("copy", {"gpu__time_duration.sum": 1000.0})]
    return str(write_ncu(tmp_path / "r.ncu-rep", launches))


def extracted(capsys, *arguments):
    assert main.main(["extract", *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_extract_shows_the_chosen_kernels_and_metrics(report, capsys):
    rows = extracted(capsys, report, "--kernel", "gemm|gemv", "--metric", "duration_us", "--metric", "ipc")
    assert [(row["kernel"], row["metric"], row["value"]) for row in rows] == [
        ("slow_gemm()", "duration_us", 9.0),
        ("slow_gemm()", "ipc", None),
    ]
    rows = extracted(capsys, report, "--kernel", "^copy", "--ok-only")
    assert {(row["kernel"], row["status"]) for row in rows} == {("copy()", "ok")}


def test_json_keeps_numbers_names_and_gaps_apart(report, capsys):
    rows = extracted(capsys, report, "--kernel", "^copy", "--metric", "duration_us", "--metric", "ipc")
    assert [(row["launch"], row["value"]) for row in rows] == [(1, 1.0), (1, None)]
    assert [type(row["value"]) for row in rows] == [float, type(None)]


def test_a_summary_has_one_row_per_launch(report, capsys):
    slow, copy = extracted(capsys, report, "--summary")
    assert (slow["kernel"], slow["duration_us"], slow["bound"], slow["ceiling_pct"]) == (
        "slow_gemm()",
        9.0,
        "memory",
        95,
    )
    assert (slow["stall"], slow["stall_pct"], slow["occupancy_limiter"]) == ("lg_throttle", 75.0, "registers")
    assert (slow["shared_wavefronts_excess"], slow["shared_conflict_ways"]) == (64, 3)
    assert (copy["kernel"], copy["bound"], copy["ceiling_pct"], copy["duration_us"]) == (
        "copy()",
        "",
        None,
        1.0,
    )


def test_a_summary_on_a_terminal_has_five_digits(tmp_path, capsys, monkeypatch):
    third = write_ncu(tmp_path / "r.ncu-rep", [Launch("k", {"gpu__time_duration.sum": 1000 / 3})])
    assert main.main(["extract", str(third), "--summary"]) == 0
    assert "0.333333333" in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main.main(["extract", str(third), "--summary"]) == 0
    assert ",0.33333," in capsys.readouterr().out


def test_a_summary_covers_traces_and_compiler_logs(log, tmp_path, capsys):
    nsys = Nsys(tmp_path / "a.sqlite")
    nsys.kernel("k", called=0, start=0, duration=100)
    nsys.kernel("k", called=10, start=1000, duration=300)
    kernel, compiled = extracted(capsys, str(nsys.write()), str(log), "--summary")
    assert (kernel["duration_us"], kernel["launches"], kernel["total_us"]) == pytest.approx((0.2, 2, 0.4))
    assert (compiled["tool"], compiled["registers_per_thread"]) == ("ptxas", 8)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--metric", "duration"], "error: --metric duration: no such metric"),
        (["--kernel", "nothing"], "error: no row matches"),
    ],
)
def test_a_choice_without_rows_is_an_error(report, tmp_path, capsys, arguments, said):
    output = tmp_path / "out.csv"
    assert main.main(["extract", report, *arguments, "-o", str(output)]) == 1
    assert said in capsys.readouterr().err
    assert not output.exists()


def test_explain_names_what_bounds_the_launches_of_a_report(report, capsys):
    assert main.main(["explain", report]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"# {report} (NVIDIA H200, compute capability 9.0): what bounds each launch"
    (slow,) = (line for line in lines if "slow" in line)
    assert [cell.strip() for cell in slow.split("|")[1:5]] == [
        "0 slow_gemm, 9.00 µs",
        "memory",
        "the memory system",
        "95 %",
    ]
    assert "lg" in slow
    assert "registers" in slow


def test_an_output_that_cannot_be_written_is_one_line(log, tmp_path, capsys):
    assert main.main(["extract", str(log), "-o", str(tmp_path / "no" / "folder.csv")]) == 1
    assert "folder.csv: cannot be written" in capsys.readouterr().err


def test_a_closed_output_pipe_is_not_an_error(tmp_path):
    log = tmp_path / "long.log"
    log.write_text("".join(PTXAS.replace("scale", f"{i:05d}") for i in range(3000)))
    line = f"'{sys.executable}' -m warplog extract '{log}' | head -1; echo status ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(PACKAGES), "PYTHONUNBUFFERED": ""},
    )
    assert done.stderr == ""
    assert done.stdout == f"{','.join(COLUMNS)}\nstatus 141\n"


def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path):
    fifo = tmp_path / "never.ncu-rep"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [sys.executable, "-m", "warplog", "extract", str(fifo)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(PACKAGES)},
    ) as child:
        opened = wait_for_reader(fifo)
        child.send_signal(signal.SIGINT)
        _, printed = child.communicate(timeout=60)
        os.close(opened)
    assert (child.returncode, printed) == (130, "interrupted\n")


def wait_for_reader(fifo):
    """Opens the fifo for writing as soon as a process reads it."""
    for _ in range(3000):
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
    raise AssertionError("no process reads the fifo")


def test_doctor_prints_the_same_findings_as_lines_and_as_json(monkeypatch, capsys, tmp_path):
    findings = [
        Finding("GPU", "ok", "NVIDIA H200\x1b[31m"),
        Finding("GPU counters", "warn", "denied", "run as root"),
    ]
    examined = []
    monkeypatch.setattr(doctor, "examine", lambda project: examined.append(project) or findings)
    (tmp_path / "Snakefile").touch()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    assert main.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert examined == [tmp_path]
    assert "\x1b" not in text
    assert text.splitlines()[1:3] == ["warn  GPU counters  denied", "                    -> run as root"]
    assert text.endswith("ready to measure; one warning\n")
    findings.append(Finding("driver", "fail", "470", "a newer one"))
    assert main.main(["doctor", "--json", str(tmp_path)]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["status"] == 1
    assert data["findings"][2] == {
        "topic": "driver",
        "status": "fail",
        "text": "470",
        "remedy": "a newer one",
    }


def test_reports_not_made_by_warplog_become_rows(capsys):
    reports = sorted(CAPTURES.rglob("*.ncu-rep"))[:2]
    if not reports:
        pytest.skip("the captured reports are missing")
    assert main.main(["extract", *map(str, reports)]) == 0
    assert "duration_us" in capsys.readouterr().out


CLAIM = {
    **{"family": "sgemm", "id": "B1", "claim": "Coalescing helps.", "source": "a blog", "published": "6x"},
    **{"verdict": "confirmed", "measured": 11.8, "unit": "x", "condition": ">= 5.4", "measure": "a / b"},
    **{"case": "4096", "evidence": "a = 1", "reason": "", "gpu": "h200", "gpu_name": "NVIDIA H200"},
    **{"origin": "recorded", "campaign": "first"},
}


def test_claims_shows_the_recorded_verdicts_in_a_folder_without_kernels(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    tables = tmp_path / "tables"
    files.write_table([CLAIM, CLAIM | {"family": "scan"}], CLAIMS, tables / "claims")
    for argument, heads in (
        ([], ["sgemm B1 [4096]: Coalescing helps.", "scan B1 [4096]: Coalescing helps."]),
        (["--family", "sgemm"], ["sgemm B1 [4096]: Coalescing helps."]),
    ):
        assert main.main(["claims", str(tables), *argument]) == 0
        output = capsys.readouterr()
        lines = output.out.splitlines()
        assert [line for line in lines if not line.startswith(" ")] == heads
        assert "  CONFIRMED  11.8 x  (confirmed if >= 5.4)" in lines
        assert "  published: 6x" in lines
        assert output.err == f"no kernels/ here: these are the verdicts in {tables}/claims\n"
    assert main.main(["claims", "--family", "sgem", str(tables)]) == 1
    assert "did you mean 'sgemm'?" in capsys.readouterr().err
    assert main.main(["claims"]) == 1
    assert "results/tables/claims.parquet: no such table" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "command"),
    [(["record", "h200"], "record"), (["compare", "a", "b"], "compare"), (["claims"], "claims")],
)
def test_a_commands_own_arguments_do_not_hide_its_name(arguments, command):
    assert make_parser().parse_args(arguments).command == command
    assert command in main._COMMANDS
