"""Where results lie and which modules decide them.

Stage first, then the key in one fixed order, so that rule, folder and log agree.
"""

import os
from collections.abc import Mapping
from pathlib import Path

RESULTS = Path("results")
RECORDED = RESULTS / "recorded"
# Modules whose change makes a stage's results stale: Snakemake sees only what is an input.
_CODE: Mapping[str, tuple[str, ...]] = {
    "build": ("build.py", "addresses.py", "parsers/ptxas.py", "parsers/sass.py"),
    "check": ("gpu/check_case.py", "gpu/problem.py", "gpu/case_data.py", "gpu/backend.py"),
    "sanitize": ("sanitize.py", "gpu/sanitize_case.py", "gpu/backend.py", "parsers/sanitizer.py"),
    "time": (
        "gpu/time_case.py",
        "gpu/timer.py",
        "gpu/timer.cu",
        "gpu/problem.py",
        "gpu/case_data.py",
        "gpu/backend.py",
        "clocks.py",
        "remarks.py",
        "summary.py",
    ),
    "profile": ("capture.py", "gpu/capture_case.py", "metrics/*.py"),
    "tune": (
        "tuning.py",
        "tuning_space.py",
        "tuning_builds.py",
        "tuning_finding.py",
        "tuning_record.py",
        "gpu/tune_setting.py",
        "gpu/check_case.py",
        "gpu/time_case.py",
        "gpu/timer.py",
        "gpu/timer.cu",
        "gpu/problem.py",
        "gpu/case_data.py",
        "gpu/backend.py",
        "clocks.py",
        "remarks.py",
        "summary.py",
    ),
    "extract": (
        "extract.py",
        "hot_lines.py",
        "nsys_events.py",
        "launch_times.py",
        "intervals.py",
        "parsers/*.py",
        "metrics/*.py",
    ),
    "tables": ("tables.py", "table_*.py", "energy.py", "kernel_name.py", "published.py"),
    "oracle": (
        "oracle.py",
        "kernel_name.py",
        "main_kernel.py",
        "occupancy.py",
        "quantities.py",
        "table_*.py",
        "metrics/*.py",
    ),
    "claims": (
        "claim*.py",
        "formula.py",
        "kernel_name.py",
        "main_kernel.py",
        "quantities.py",
        "parsers/sass.py",
    ),
    "plot": (
        "figure_*.py",
        "main_kernel.py",
        "measured.py",
        "rates.py",
        "step_sentences.py",
        "table_files.py",
    ),
    "plot_tuning": ("tuning_figure.py", "figure_style.py", "figure_labels.py"),
    "track": ("track.py", "kernel_name.py", "main_kernel.py", "measured.py", "mlflow_*.py", "rates.py"),
    "judge": ("aa.py", "campaign_*.py", "comp*.py", "floors.py", "history*.py", "verdicts.py"),
    "worklog": (
        "worklog/*.py",
        "worklog/page.*",
        "../report/*.rst",
        "bound*.py",
        "decomposition.py",
        "explain.py",
        "figure_data.py",
        "measured.py",
        "main_kernel.py",
        "occupancy.py",
        "published.py",
        "rates.py",
        "step_*.py",
        "table_files.py",
        "tabular.py",
    ),
}


def build_folder(root: Path, arch: str, family: str, variant: str) -> Path:
    """The folder of one build below `root` (results, or a recorded campaign)."""
    return root / "build" / arch / family / variant


def record(root: Path, stage: str, gpu: str, family: str, variant: str, suffix: str = ".json") -> Path:
    """A measured stage's record below `root` = results: results/<stage>/<gpu>/<family>/<variant>.json."""
    return root / stage / gpu / family / f"{variant}{suffix}"


def recorded_root(name: str) -> Path:
    """The folder of a recorded campaign."""
    return RECORDED / name


def code(stage: str) -> list[str]:
    """The modules that a stage's results depend on, relative to the working folder."""
    package = Path(__file__).parent
    files = sorted({p for pattern in _CODE[stage] for p in package.glob(pattern)})
    return [os.path.relpath(p) for p in files]
