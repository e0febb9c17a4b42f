"""The machine without its GPU: Python, uv, disk, configuration, recorded campaigns, MLflow's store."""

import importlib.util
import json
import os
import platform
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path

from warplog.cli.checkup.finding import Finding
from warplog.core import process
from warplog.core.defaults import DEFAULTS
from warplog.core.errors import WarplogError
from warplog.core.paths import RECORDED
from warplog.machine import interpreter
from warplog.track.connection import shown, sqlite_file, tracking_uri

GIB = 1 << 30
_DISK_FAIL, _DISK_WARN = 1 * GIB, 5 * GIB
_MOST_BYTES = 1 << 20
_MLFLOW_S = 3.0
_UV_S = 30.0
_PACKAGES = (
    "filelock",
    "jsonschema",
    "jsonschema_rs",
    "matplotlib",
    "mlflow",
    "ncu_report",
    "numpy",
    "pandas",
    "pyarrow",
    "pynvml",
    "rich",
    "scipy",
    "seaborn",
    "simpleeval",
    "snakemake",
    "yaml",
)
_UV_HOME = "https://docs.astral.sh/uv"


def python() -> Finding:
    """The interpreter that runs this, and whether Snakemake can start jobs with it."""
    if why := interpreter.unusable():
        return Finding("Python", "fail", why, interpreter.REMEDY)
    return Finding("Python", "ok", f"{platform.python_version()}, {sys.executable}")


def packages() -> Finding:
    """The Python packages that the workflow imports; without them the other checks say less."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return Finding("packages", "fail", f"missing: {', '.join(missing)}", "uv sync --inexact")
    return Finding("packages", "ok", f"all {len(_PACKAGES)} are here")


def uv() -> Finding:
    """uv, which fetches what is missing."""
    path = os.environ.get("UV") or shutil.which("uv")
    if path is None:
        return Finding("uv", "warn", "not found; nothing can be fetched by itself", f"install it: {_UV_HOME}")
    done = process.run([path, "--version"], timeout_s=_UV_S)
    if not done.ok:
        return Finding("uv", "warn", f"{path}: {process.explain_exit(done)}", f"install it: {_UV_HOME}")
    return Finding("uv", "ok", f"{done.output_tail.removeprefix('uv ').split('(')[0].strip()}, {path}")


def disk(project: Path) -> Finding:
    """Free space and rights where results are written."""
    place = project / "results" if (project / "results").is_dir() else project
    if not os.access(place, os.W_OK):
        return Finding("disk", "fail", f"{place} is not writable", "run in a folder of your own")
    free = shutil.disk_usage(place).free
    text = f"{free / GIB:.1f} GiB free at {place}"
    if free < _DISK_FAIL:
        return Finding("disk", "fail", text, "free at least 1 GiB")
    if free < _DISK_WARN:
        return Finding("disk", "warn", text, "a campaign with `metrics: full` can need several GiB")
    return Finding("disk", "ok", text)


def configuration(project: Path) -> Finding:
    """Whether config/config.yaml and config/gpus.yaml fit their schemas."""
    folder = project / "config"
    if not folder.is_dir():
        return Finding(
            "configuration",
            "warn",
            f"{project} is no warplog project: it has no folder config",
            "go to the project's folder, or name it with --project",
        )
    try:
        from warplog.core import schema

        for name in ("config", "gpus"):
            schema.read_yaml(folder / f"{name}.yaml", name)
    except WarplogError as error:
        return Finding(
            "configuration", "fail", str(error), "correct that key; config/README.md explains them"
        )
    except ImportError as error:
        return Finding("configuration", "info", f"not checked ({error})")
    return Finding("configuration", "ok", f"{folder} is valid")


def recordings(project: Path, gpu_present: bool) -> Finding:
    """The campaigns that were measured before and are kept in the project."""
    found = [_campaign(file) for file in sorted((project / RECORDED).glob("*/campaign/*.json"))]
    known = [text for text in found if text]
    if known:
        serves = "" if gpu_present else "; without a GPU, tables and figures are made from it"
        return Finding("recorded campaigns", "ok", ", ".join(known) + serves)
    if gpu_present:
        return Finding("recorded campaigns", "info", "none; this machine measures its own")
    return Finding(
        "recorded campaigns",
        "fail",
        "none, and there is no GPU to measure one",
        f"git checkout -- {RECORDED}, or run on a machine with a GPU",
    )


def _campaign(file: Path) -> str:
    try:
        record = json.loads(file.read_bytes()[:_MOST_BYTES])
        return f"{record['campaign']} ({record['gpu_name']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def mlflow(project: Path) -> Finding:
    """Whether the tracking store can be reached; neither creates nor changes one."""
    uri = tracking_uri(_configured_store(project))
    if uri.startswith(("http://", "https://")):
        return _server(uri)
    if (file := sqlite_file(uri)) is not None:
        state = "there" if (project / file).is_file() else "made by the first campaign"
        return Finding("MLflow store", "ok", f"{uri} ({state})")
    return Finding("MLflow store", "info", f"{shown(uri)} (not tried)")


def _configured_store(project: Path) -> str:
    try:
        from warplog.core import schema

        config = schema.read_yaml(project / "config" / "config.yaml", "config")
        return str(config["track"]["uri"])
    except (WarplogError, ImportError, KeyError, TypeError):
        return str(DEFAULTS["track"]["uri"])


def _server(uri: str) -> Finding:
    topic, remedy = "MLflow store", "start the server, or unset MLFLOW_TRACKING_URI for a local file"
    try:
        # The scheme was checked by the caller; the address is the user's own.
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=_MLFLOW_S):  # noqa: S310
            return Finding(topic, "ok", f"{shown(uri)} answers")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return Finding(topic, "info", f"{shown(uri)} answers, and asks for a login ({error.code})")
        return Finding(topic, "warn", f"{shown(uri)} answers {error.code}; is it MLflow?", remedy)
    except (OSError, ValueError) as error:
        return Finding(topic, "fail", f"{shown(uri)} does not answer ({shown(str(error))})", remedy)
