"""`warplog doctor`: the status of each finding, and that every problem has a remedy."""

import importlib.util
import io
import json
import re
import shutil
import tomllib
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from fake_driver import DESCRIBED as H200
from host_family import DRIVER, compile_c
from warplog.cli import doctor
from warplog.cli.checkup import host, kernels, packages, tools
from warplog.core.errors import WarplogError
from warplog.machine import device, toolchain, wheels
from warplog.machine import packages as machine_packages
from warplog.machine.toolchain import Tool

PROJECT = Path(__file__).parents[3]
MISSING = Tool("x", None, None, "install x")


def outcome(finding):
    """The status of a finding, and whether it has a remedy."""
    return finding.status, bool(finding.remedy)


@pytest.fixture
def no_tools(monkeypatch):
    """A machine without CUDA programs, where none can be installed."""

    def refuse(*_):
        raise WarplogError("nvcc: not installed; with network access and uv: uv sync; otherwise: install it")

    monkeypatch.setattr(toolchain, "find", lambda name: replace(MISSING, name=name))
    monkeypatch.setattr(toolchain, "host_compiler", lambda: replace(MISSING, name="host compiler"))
    monkeypatch.setattr(toolchain, "library", lambda _name: None)
    monkeypatch.setattr(toolchain, "sanitizer_api", lambda: None)
    monkeypatch.setattr(wheels, "fetch_command", refuse)


def recording(project: Path) -> Path:
    folder = project / "results" / "recorded" / "h200" / "campaign"
    folder.mkdir(parents=True)
    (folder / "h200.json").write_text(json.dumps({"campaign": "h200-2026-01-02", "gpu_name": "NVIDIA H200"}))
    return project


def test_without_gpu_and_tools_the_recorded_campaign_is_used(no_tools, monkeypatch, tmp_path):
    monkeypatch.setattr(device, "detect", lambda: None)
    findings = doctor.examine(recording(tmp_path))
    assert doctor.exit_status(findings) == 0, [f for f in findings if f.status == "fail"]
    assert "h200-2026-01-02 (NVIDIA H200); without a GPU" in next(
        f.text for f in findings if f.topic == "recorded campaigns"
    )
    assert doctor.summary(findings).startswith("ready to show the recorded campaign")
    assert all(f.remedy for f in findings if f.status in ("warn", "fail"))


def test_without_gpu_and_recorded_campaign_no_campaign_can_run(no_tools, monkeypatch, tmp_path):
    monkeypatch.setattr(device, "detect", lambda: None)
    broken = tmp_path / "results/recorded/x/campaign"
    broken.mkdir(parents=True)
    (broken / "x.json").write_text("[]")
    findings = doctor.examine(tmp_path)
    assert doctor.exit_status(findings) == 1
    assert [f.topic for f in findings if f.status == "fail"] == ["recorded campaigns"]


def test_with_a_gpu_compilers_are_required_and_profilers_are_optional(no_tools, monkeypatch, tmp_path):
    monkeypatch.setattr(device, "detect", lambda: H200)
    statuses = {f.topic: f.status for f in doctor.examine(recording(tmp_path))}
    assert {statuses[t] for t in ("nvcc", "host compiler", "cuobjdump", "nvdisasm", "cuBLAS")} == {"fail"}
    assert {statuses[t] for t in ("ncu", "nsys", "compute-sanitizer", "tracer")} == {"warn"}


def test_a_tool_that_uv_can_install_is_not_a_problem(no_tools, monkeypatch, tmp_path):
    monkeypatch.setattr(wheels, "fetch_command", lambda *_: ["uv"])
    nvcc, _ = tools.compilers("sm_90", tmp_path)
    assert (nvcc.status, "a campaign installs it" in nvcc.text) == ("info", True)


def test_the_error_of_an_nvcc_that_does_not_support_the_gpu_is_quoted(tmp_path, monkeypatch):
    path = tmp_path / "nvcc"
    path.write_text("#!/bin/sh\necho \"nvcc fatal   : Unsupported gpu architecture 'compute_120'\"; exit 1\n")
    path.chmod(0o755)
    tool = Tool("nvcc", path, "12.4.99", "")
    monkeypatch.setattr(toolchain, "find", lambda _name: tool)
    finding = tools.compilers("sm_120", tmp_path)[0]
    assert outcome(finding) == ("fail", True)
    assert "exit status 1: nvcc fatal" in finding.text


@pytest.mark.nvcc
def test_the_real_nvcc_compiles_the_empty_kernel():
    tool = toolchain.find("nvcc")
    if not tool.ok:
        pytest.skip(tool.remedy)
    assert tools.try_nvcc(tool, "sm_90") == ""


@pytest.mark.parametrize(
    ("says", "status", "text"),
    [("", "ok", "without counters"), ("subscribing: not supported", "warn", "subscribing: not supported")],
)
def test_the_tracer_is_tried_by_loading_it(tmp_path, monkeypatch, says, status, text):
    api = toolchain.SanitizerApi(tmp_path, tmp_path / "libsanitizer-public.so")
    monkeypatch.setattr(toolchain, "sanitizer_api", lambda: api)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    for source, library in (
        (DRIVER, "libcuda.so.1"),
        (f'char* warplog_unready() {{ return "{says}"; }}', "t"),
    ):
        (tmp_path / "source.c").write_text(source)
        compile_c(tmp_path / "source.c", tmp_path / library)
    monkeypatch.setattr(tools, "build_tracer", lambda *given: shutil.copy(tmp_path / "t", given[-1]))
    finding = tools.tracer(H200, tmp_path)
    assert finding.status == status
    assert text in finding.text
    assert tools.tracer(None, tmp_path).status == "info"


def test_nsys_without_its_importer_is_reported(tmp_path, monkeypatch):
    nsys = tmp_path / "host" / "target-linux-x64" / "nsys"
    nsys.parent.mkdir(parents=True)
    nsys.touch()
    link = tmp_path / "nsys"
    link.symlink_to(nsys)
    monkeypatch.setattr(toolchain, "find", lambda name: Tool(name, link, "2025.3.1", ""))
    findings = {f.topic: f for f in tools.profilers(True)}
    assert outcome(findings["nsys"]) == ("warn", True)
    assert findings["ncu"].status == "ok"
    (tmp_path / "host" / "host-linux-x64").mkdir()
    (tmp_path / "host" / "host-linux-x64" / "QdstrmImporter").touch()
    assert {f.topic: f.status for f in tools.profilers(True)}["nsys"] == "ok"


def test_little_space_and_a_read_only_folder_are_reported(tmp_path, monkeypatch):
    usage = type(shutil.disk_usage(tmp_path))
    for free, status in ((100 << 30, "ok"), (2 << 30, "warn"), (1 << 20, "fail")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _path, free=free: usage(1 << 40, 0, free))
        assert outcome(host.disk(tmp_path)) == (status, status != "ok")
    monkeypatch.setattr(host.os, "access", lambda *_: False)
    assert host.disk(tmp_path).status == "fail"


def test_the_files_of_the_configuration_are_optional_and_checked_by_their_schemas(tmp_path):
    assert host.configuration(PROJECT).status == "ok"
    finding = host.configuration(tmp_path)
    assert outcome(finding) == ("warn", True)
    assert "not a warplog project" in finding.text
    (tmp_path / "kernels").mkdir()
    assert host.configuration(tmp_path).text == "no config/: the defaults apply"
    (tmp_path / "config").mkdir()
    gpus = tmp_path / "config" / "gpus.yaml"
    gpus.write_text("rtx-9999: {arch: sm_90, sms: 1, source: mine}\n")
    assert host.configuration(tmp_path).text == "config/gpus.yaml: valid"
    gpus.write_text("rtx-9999: {arch: sm_90, sms: 1, source: mine, fp32_tflops_peek: 3}\n")
    finding = host.configuration(tmp_path)
    assert outcome(finding) == ("fail", True)
    assert "fp32_tflops_peak" in finding.text
    shutil.copy(PROJECT / "config" / "config.yaml", tmp_path / "config")
    gpus.unlink()
    assert host.configuration(tmp_path).text == "config/config.yaml: valid"


def test_the_packages_are_those_of_the_project_file():
    with (PROJECT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]

    def names(requirements):
        required = {re.match(r"[a-z0-9-]+", requirement)[0] for requirement in requirements}
        return {name for name in required if not name.startswith("nvidia-cuda-")}  # programs, no modules

    assert names(project["dependencies"]) == set(packages.READER)
    assert names(project["optional-dependencies"]["workflow"]) == set(packages.WORKFLOW)


def test_packages_that_python_variants_need_are_reported_with_the_variant(tmp_path, monkeypatch):
    shutil.copytree(PROJECT / "examples" / "python-kernels", tmp_path, dirs_exist_ok=True)
    (tmp_path / ".git").mkdir()
    place = tmp_path / "warplog"
    installed = {"cupy": "14", "triton": "3"}
    monkeypatch.setattr(machine_packages, "version", lambda module: installed.get(module, ""))
    finding = kernels.finding(place, gpu_present=True)
    assert outcome(finding) == ("warn", True)
    assert "not installed: torch (scale/in_triton needs it)" in finding.text
    assert finding.remedy == "pip install torch"
    assert kernels.finding(place, gpu_present=False).status == "info"
    installed["torch"] = "2"
    assert outcome(kernels.finding(place, gpu_present=True)) == ("ok", False)


def test_an_invalid_family_is_a_problem_with_its_file_and_key(tmp_path):
    folder = shutil.copytree(PROJECT / "examples/python-kernels/warplog/kernels", tmp_path / "kernels")
    family = folder / "scale" / "family.yaml"
    family.write_text(family.read_text().replace("headline_case:", "headline_cas:"))
    finding = kernels.finding(tmp_path, gpu_present=False)
    assert outcome(finding) == ("fail", True)
    assert f"{family}: (top level): unknown key 'headline_cas'; did you mean 'headline_case'?" in finding.text


def test_in_a_folder_that_init_wrote_no_remedy_is_about_a_checkout(no_tools, monkeypatch, tmp_path):
    monkeypatch.setattr(device, "detect", lambda: None)
    (finding,) = (f for f in doctor.examine(tmp_path) if f.topic == "recorded campaigns")
    assert finding.remedy == "run on a machine with a GPU"


@pytest.mark.parametrize(
    ("absent", "status", "text"),
    [
        ([], "ok", "are installed"),
        (
            ["snakemake", "mlflow", "PIL"],
            "info",
            'the reader alone is installed; pip install "warplog[workflow]"',
        ),
        (["yaml"], "fail", "missing: pyyaml"),
        (["mlflow", "PIL"], "fail", "missing: mlflow, pillow"),
    ],
)
def test_missing_packages_of_a_campaign_leave_the_reader(monkeypatch, absent, status, text):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in absent else find(name))
    finding = packages.finding()
    assert outcome(finding) == (status, status == "fail")
    assert text in finding.text
    gpu = doctor.Finding("GPU", "ok", "")
    assert (doctor.summary([gpu, finding]) == "ready to read reports and recorded campaigns") == (
        status == "info"
    )


class Answer(BaseHTTPRequestHandler):
    """The health endpoint of an MLflow server; the attribute `status` of the server is its response."""

    def do_GET(self):
        self.send_response(self.server.status if self.path == "/health" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(("answer", "status"), [(200, "ok"), (401, "info"), (500, "warn")])
def test_an_mlflow_server_is_queried_and_its_password_is_not_shown(monkeypatch, tmp_path, answer, status):
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.status = answer
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.server_port}/")
        finding = host.mlflow(tmp_path)
        server.shutdown()
    assert finding.status == status
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:s3cret@127.0.0.1:{server.server_port}")
    gone = host.mlflow(tmp_path)
    assert outcome(gone) == ("fail", True)
    assert "s3cret" not in gone.text


def test_checking_the_local_store_does_not_create_it(monkeypatch, tmp_path):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert host.mlflow(tmp_path).status == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_gets_a_table_that_wraps_inside_its_column(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    doctor.show([doctor.Finding("nvcc", "fail", "word " * 30 + "[red]end", "install it")], screen)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines()
    assert max(map(len, lines)) <= 60
    assert "[red]end" in screen.getvalue()
    assert lines[1].startswith("            word")
    assert lines[-1] == "one problem must be fixed before a campaign can run here"


@pytest.mark.gpu
def test_a_machine_with_a_gpu_is_ready_to_measure():
    findings = {f.topic: f for f in doctor.examine(PROJECT)}
    assert findings["GPU"].status == "ok"
    assert findings["driver"].status == "ok"
    assert findings["nvcc"].status in ("ok", "info")
