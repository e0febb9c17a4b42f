"""Checks everything but the GPU and the CUDA tools: Python, uv, disk, configuration, recorded campaigns, MLflow."""

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
from warplog.core.errors import WarplogError
from warplog.core.paths import RECORDED
from warplog.machine import interpreter
from warplog.track.address import shown, sqlite_file, tracking_uri

GIB = 1 << 30
_DISK_FAIL, _DISK_WARN = 1 * GIB, 5 * GIB
_MOST_BYTES = 1 << 20
_MLFLOW_S = 3.0
_UV_S = 30.0
_REMEDY = f"git checkout -- {RECORDED}, or run on a machine with a GPU"
_UV_HOME = "https://docs.astral.sh/uv"


def python() -> Finding:
    """Reports the running interpreter, and whether Snakemake can start jobs with it."""
    if why := interpreter.unusable():
        return Finding("Python", "fail", why, interpreter.REMEDY)
    return Finding("Python", "ok", f"{platform.python_version()}, {sys.executable}")


def uv() -> Finding:
    """Reports uv, which installs missing packages."""
    path = os.environ.get("UV") or shutil.which("uv")
    if path is None:
        return Finding(
            "uv", "warn", "not found; missing packages cannot be installed", f"install it: {_UV_HOME}"
        )
    done = process.run([path, "--version"], timeout_s=_UV_S)
    if not done.ok:
        return Finding("uv", "warn", f"{path}: {process.explain_exit(done)}", f"install it: {_UV_HOME}")
    return Finding("uv", "ok", f"{done.output_tail.removeprefix('uv ').split('(')[0].strip()}, {path}")


def disk(project: Path) -> Finding:
    """Reports free space and write permission for the folder of results."""
    place = project / "results" if (project / "results").is_dir() else project
    if not os.access(place, os.W_OK):
        return Finding("disk", "fail", f"{place} is not writable", "run in a folder that you can write to")
    free = shutil.disk_usage(place).free
    text = f"{free / GIB:.1f} GiB free at {place}"
    if free < _DISK_FAIL:
        return Finding("disk", "fail", text, "free at least 1 GiB")
    if free < _DISK_WARN:
        return Finding("disk", "warn", text, "a campaign with `metrics: full` can take several GiB")
    return Finding("disk", "ok", text)


def configuration(project: Path) -> Finding:
    """Validates config/config.yaml and config/gpus.yaml, which are both optional."""
    topic = "configuration"
    names = [name for name in ("config", "gpus") if (project / "config" / f"{name}.yaml").is_file()]
    if not names and not (project / "kernels").is_dir():
        text = f"{project} is not a warplog project: it has neither kernels/ nor config/"
        return Finding(
            topic, "warn", text, "change to the project's folder, or name it: warplog doctor FOLDER"
        )
    try:
        from warplog.machine import device
        from warplog.records.config import configured

        configured(project)
        device.known_gpus(project)
    except WarplogError as error:
        return Finding(topic, "fail", str(error), "correct that key; config/README.md describes all keys")
    except ImportError as error:
        return Finding(topic, "info", f"not checked ({error})")
    valid = " and ".join(f"config/{name}.yaml" for name in names)
    return Finding(topic, "ok", f"{valid}: valid" if valid else "no config/: the defaults apply")


def recordings(project: Path, gpu_present: bool) -> Finding:
    """Lists the recorded campaigns of the project."""
    texts = [_campaign(file) for file in sorted((project / RECORDED).glob("[!.]*/campaign/*.json"))]
    campaigns = [text for text in texts if text]
    if campaigns:
        use = "" if gpu_present else "; without a GPU, a campaign uses these records"
        return Finding("recorded campaigns", "ok", ", ".join(campaigns) + use)
    if gpu_present:
        return Finding("recorded campaigns", "info", "none; this machine can measure its own")
    return Finding(
        "recorded campaigns",
        "fail",
        "none, and there is no GPU to measure one",
        _REMEDY if (project / "Snakefile").is_file() else "run on a machine with a GPU",
    )


def _campaign(file: Path) -> str:
    try:
        record = json.loads(file.read_bytes()[:_MOST_BYTES])
        return f"{record['campaign']} ({record['gpu_name']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def mlflow(project: Path) -> Finding:
    """Reports whether the tracking store can be reached, without creating or changing it."""
    uri = store(project)
    if uri.startswith(("http://", "https://")):
        return _server(uri)
    if (file := sqlite_file(uri)) is not None:
        state = "exists" if file.is_file() else "created by the first campaign"
        return Finding("MLflow store", "ok", f"{uri} ({state})")
    return Finding("MLflow store", "info", f"{shown(uri)} (not checked)")


def configured_store(project: Path) -> str:
    """Returns the address of the tracking store in the project's configuration, else the default."""
    from warplog.records.config import Config, configured

    try:
        return configured(project).track.uri
    except WarplogError:
        return Config().track.uri


def store(project: Path) -> str:
    """Returns the address of the project's tracking store; the path of an SQLite file is absolute."""
    uri = tracking_uri(configured_store(project))
    file = sqlite_file(uri)
    return uri if file is None else f"sqlite:///{project / file}"


def _server(uri: str) -> Finding:
    topic, remedy = "MLflow store", "start the server, or unset MLFLOW_TRACKING_URI for a local file"
    try:
        # The caller checked the scheme, and the address is from the user's own settings.
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=_MLFLOW_S):  # noqa: S310
            return Finding(topic, "ok", f"{shown(uri)} responds")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return Finding(topic, "info", f"{shown(uri)} responds and requires a login ({error.code})")
        return Finding(
            topic, "warn", f"{shown(uri)} responds with status {error.code}; is it MLflow?", remedy
        )
    except (OSError, ValueError) as error:
        return Finding(topic, "fail", f"{shown(uri)} does not respond ({shown(str(error))})", remedy)
