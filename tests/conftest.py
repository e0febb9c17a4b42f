"""Shared by all tests: the project's folder, the order of tests, and skipping of GPU tests."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from cluster import slurm_controller

import shared

# A shell that starts the tests in the background lets them ignore Ctrl-C, and their programs would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Settings of whoever runs the tests, which would reach the runs that they start: where a campaign is logged, and
# options of Snakemake. The tests start hundreds of interpreters, which would all compile the package if none wrote
# bytecode.
for variable in ("MLFLOW_TRACKING_URI", "SNAKEMAKE_PROFILE", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(variable, None)
sys.dont_write_bytecode = False

# No test computes enough for several threads, but each of hundreds of interpreters would start them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Snakemake's plugin for SLURM asks the controller for its settings at every start.
if not slurm_controller.runs():
    os.environ.setdefault("SLURM_CONF", os.devnull)

gc.set_threshold(100_000, 50, 100)  # looking for garbage as often as Python does takes a seventh of the time

PROJECT = Path(__file__).parents[1]
LONGEST = [
    "test_end_to_end", "test_documented_commands", "test_live_on_the_host", "test_duel_on_the_host",
    "test_own_repository", "test_kills", "test_ways_to_run", "test_compile_options", "test_watch_on_the_host",
    "test_tuning", "test_figures", "test_two_boards", "test_bisect_on_the_host", "test_tracking_store",
    "test_figure_settings", "test_figure_contents", "test_worklog", "test_build_variant", "test_ui",
    "test_judging", "test_in_browser", "test_processes", "test_sanitize", "test_plan", "test_jobs",
    "test_evaluated_anew", "test_timeline", "test_gate_packs", "test_house", "test_own_folder_on_the_host",
    "test_audit", "test_chips", "test_track", "test_ending", "test_inputs", "test_printed",
    "test_stale_builds", "test_shared_store", "test_remote_recipe", "test_migration", "test_destination",
    "test_cut_reports", "test_versions", "test_measure", "test_accesses", "test_tracking_errors",
    "test_comparing", "test_tracking_database",
]  # fmt: skip


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: tests wait for the disk and for programs, but each worker imports everything."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_configure() -> None:
    """Makes the folder that the workers share before they start."""
    shared.folder()


def pytest_collection_finish() -> None:
    """Looks for no garbage among what was imported."""
    gc.freeze()


@pytest.fixture(scope="session")
def project() -> Path:
    return PROJECT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips GPU tests if there is no GPU, stating why; starts the longest files first, so that no worker waits."""
    from warplog.machine import device

    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    reason = device.why_not()
    if reason:
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason=f"no GPU: {reason}"))
