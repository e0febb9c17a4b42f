"""`warplog doctor`: checks what a campaign requires of this machine, and names a remedy for each problem."""

import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from warplog.cli.checkup import gpu as gpu_checkup
from warplog.cli.checkup import host, kernels, packages, stages, tools
from warplog.cli.checkup.finding import Finding
from warplog.core.errors import WarplogError
from warplog.core.paths import RECORDED
from warplog.core.text import printable
from warplog.machine import device, toolchain
from warplog.records.campaign import Gpu

_COLOURS = {"ok": "green", "info": "cyan", "warn": "yellow", "fail": "bold red"}


def examine(project: Path) -> list[Finding]:
    """Checks everything that a campaign in `project` uses; takes a few seconds and changes nothing."""
    gpu = device.detect()
    present = gpu is not None
    findings = [
        *gpu_checkup.examine(gpu, toolchain.find("nvcc").version, device.boards()),
        host.recordings(project, present),
        host.python(),
        packages.finding(),
        host.uv(),
        *tools.compilers(gpu.arch if gpu else None, project),
        *tools.disassemblers(present),
        *tools.libraries(present, project),
        *tools.profilers(present),
        tools.tracer(gpu, project),
        host.configuration(project),
        *([kernels.finding(project, present)] if (project / "kernels").is_dir() else []),
        host.mlflow(project),
        host.disk(project),
    ]
    return findings + (_on_this_gpu(gpu, project, findings) if gpu else [])


def _on_this_gpu(gpu: Gpu, project: Path, findings: Sequence[Finding]) -> list[Finding]:
    """Returns the limits and peaks of a GPU, and what each stage can do on it."""
    try:
        families, table = kernels.load(project), device.known_gpus(project)
    except WarplogError:  # which has a finding of its own
        return []
    shared = stages.recorded_shared(project / RECORDED / "h200" / "tables")
    answers = stages.findings(stages.examine(gpu, families, findings, shared), gpu) if families else []
    return [*stages.limits(gpu), stages.peaks(device.peaks(gpu, table)), *answers]


def exit_status(findings: Sequence[Finding]) -> int:
    """Returns 1 if any finding has status `fail`, else 0."""
    return 1 if any(finding.status == "fail" for finding in findings) else 0


def summary(findings: Sequence[Finding]) -> str:
    """Returns the last line of the report: whether a campaign can run, and how many problems there are."""
    counts = {status: sum(f.status == status for f in findings) for status in ("fail", "warn")}
    live = any(f.topic == "GPU" and f.status == "ok" for f in findings)
    if counts["fail"]:
        return f"{_count(counts['fail'], 'problem')} must be fixed before a campaign can run here"
    ready = "ready to measure" if live else "ready to show the recorded campaign; measuring requires a GPU"
    if any(f.topic == "packages" and f.status == "info" for f in findings):
        ready = "ready to read reports and recorded campaigns"
    return f"{ready}; {_count(counts['warn'], 'warning')}" if counts["warn"] else ready


def show_json(findings: Sequence[Finding], out: TextIO) -> None:
    """Prints the findings as JSON: {"status": 0 | 1, "findings": [{topic, status, text, remedy}]}."""
    data = {"status": exit_status(findings), "findings": [asdict(finding) for finding in findings]}
    print(json.dumps(data, indent=1), file=out)


def show(findings: Sequence[Finding], out: TextIO | None = None) -> None:
    """Prints the findings and the summary: as a table on a terminal, else as plain lines."""
    stream = out or sys.stdout
    terminal = getattr(stream, "stream", stream)
    if terminal.isatty() and importlib.util.find_spec("rich"):
        _show_table(findings, terminal)
        return
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        print(f"{finding.status:4}  {finding.topic:{width}}  {printable(finding.text)}", file=stream)
        if finding.remedy:
            print(f"{'':4}  {'':{width}}  -> {printable(finding.remedy)}", file=stream)
    print(summary(findings), file=stream)


def _show_table(findings: Sequence[Finding], stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(printable(finding.text))
        if finding.remedy:
            text.append(f"\n-> {printable(finding.remedy)}", style="dim")
        table.add_row(Text(finding.status, style=_COLOURS[finding.status]), finding.topic, text)
    console = Console(file=stream, highlight=False)
    console.print(table)
    console.print(Text(summary(findings), style="bold"))


def _count(number: int, noun: str) -> str:
    return f"one {noun}" if number == 1 else f"{number} {noun}s"
