"""Provenance of measurements: code, machine, tools and time, collected in the measuring job."""

import hashlib
import platform
import re
import secrets
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warplog.core import paths
from warplog.core.records import SCHEMA_VERSION, Record, write_json
from warplog.records import door
from warplog.records.campaign import Gpu

_MEASURED_BY = (
    *("workflow/warplog/**/*.py", "workflow/warplog/**/*.cu", "kernels/**/*.cu", "kernels/**/*.cuh"),
    *("kernels/**/family.yaml", "kernels/**/*.py", "config/config.yaml"),
)


def now() -> str:
    """Returns the current time in UTC as ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def content_sha256(project: Path) -> str:
    """Returns the hash of names and contents of code, kernels and configuration, committed or not."""
    digest = hashlib.sha256()
    for path in sorted({p for pattern in _MEASURED_BY for p in project.glob(pattern)}):
        digest.update(path.relative_to(project).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def commit_of(project: Path) -> str:
    """Returns the checkout's commit, with '-dirty' if code, kernels or config differ; '' outside of git."""

    try:
        head = _git(project, "rev-parse", "HEAD")
        dirty = _git(
            project, "status", "--porcelain", "--untracked-files=no", "--", "workflow", "kernels", "config"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return f"{head}-dirty" if head and dirty else head


def project_of(project: Path) -> Record:
    """Returns name and id of the repository that measures: its folder's name, and the hash of its first commit.

    Outside of git the name is that of the project's folder and the id is ''. A shallow clone has no id either, since it
    lacks the first commit.
    """
    top = first = ""
    try:
        top = _git(project, "rev-parse", "--show-toplevel")
        if _git(project, "rev-parse", "--is-shallow-repository") == "false":
            first = _git(project, "rev-list", "--max-parents=0", "HEAD").rpartition("\n")[2]
    except (OSError, subprocess.TimeoutExpired):
        pass
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", Path(top or project.resolve()).name)
    return {"name": name[:64] or "_", "id": first}


def _git(project: Path, *arguments: str) -> str:
    """Returns what git prints about the project; '' if it fails."""
    done = subprocess.run(
        ["git", "-C", str(project), *arguments], capture_output=True, text=True, check=False, timeout=30
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def commit_in(campaign: Record, project: Path) -> str:
    """Returns the commit of a measurement: that of the configuration, else of the checkout, else of the campaign."""
    return str(
        campaign["commit"] if campaign.get("commit_named") else commit_of(project) or campaign["commit"]
    )


def of_job(gpu: Gpu, tools: dict[str, str], commit: str, content: str, session: Record) -> Record:
    """Returns the provenance of a measuring job; `session` holds the versions of CuPy and the CUDA runtime."""
    return {
        "gpu_name": gpu.name,
        "gpu_uuid": gpu.uuid,
        "compute_capability": ".".join(map(str, gpu.compute_capability)),
        "driver": gpu.driver,
        "cuda_driver": gpu.cuda_driver,
        "commit": commit,
        "content_sha256": content,
        "finished": now(),
        "python": platform.python_version(),
        "clocks": "unlocked",
        **{k: tools.get(k, "") for k in ("nvcc", "ncu", "nsys")},
        **{k: session.get(k, "") for k in ("cupy", "cuda_runtime")},
    }


def write_campaign(
    path: Path, gpu: Gpu, name: str, commit: str, content: str, tools: dict[str, str]
) -> Record:
    """Writes and returns the campaign record, whose name, tools and code all measurements on this GPU share.

    `name` and `commit` are those of the configuration; "auto" derives the name from GPU, date and commit, and asks git
    for the commit. A commit that the configuration names is marked, so that all measurements carry it. Two campaigns
    may have the same name; the random id tells them apart wherever the record goes.
    """
    started, named = now(), commit != "auto"
    if not named:
        commit = commit_of(paths.project())
    label = name if name != "auto" else f"{gpu.slug}-{started[:10]}-{_short(commit) or content[:7]}"
    record: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "stage": "campaign",
        "campaign": label,
        "id": secrets.token_hex(8),
        "project": project_of(paths.project()),
        "gpu": gpu.slug,
        "gpu_name": gpu.name,
        "arch": gpu.arch,
        "device": door.plain(gpu),
        "origin": "live",
        "commit": commit,
        **({"commit_named": True} if named else {}),
        "content_sha256": content,
        "started": started,
        "driver": gpu.driver,
        "cuda": gpu.cuda_driver,
        "clocks": "unlocked",
        "tools": tools,
    }
    write_json(path, record, "record")
    return record


def _short(commit: str) -> str:
    return re.sub(r"^([0-9a-f]{7})[0-9a-f]*(-dirty)?$", r"\1\2", commit)
