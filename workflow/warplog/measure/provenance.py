"""Provenance of measurements: code, machine, tools and time, collected in the measuring job."""

import hashlib
import platform
import re
import secrets
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from warplog.core import paths
from warplog.records import door
from warplog.records.campaign import Campaign, Gpu, Project
from warplog.records.measured import Provenance, Session

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


def project_of(project: Path) -> Project:
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
    return Project(name=name[:64] or "_", id=first)


def _git(project: Path, *arguments: str) -> str:
    """Returns what git prints about the project; '' if it fails."""
    done = subprocess.run(
        ["git", "-C", str(project), *arguments], capture_output=True, text=True, check=False, timeout=30
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def commit_in(campaign: Campaign, project: Path) -> str:
    """Returns the commit of a measurement: that of the configuration, else of the checkout, else of the campaign."""
    return campaign.commit if campaign.commit_named else commit_of(project) or campaign.commit


def of_job(
    gpu: Gpu, tools: Mapping[str, str | None], commit: str, content: str, session: Session
) -> Provenance:
    """Returns the provenance of a measuring job; `session` holds the versions of CuPy and the CUDA runtime."""
    return Provenance(
        gpu_name=gpu.name,
        gpu_uuid=gpu.uuid,
        compute_capability=".".join(map(str, gpu.compute_capability)),
        driver=gpu.driver,
        cuda_driver=gpu.cuda_driver,
        cuda_runtime=session.cuda_runtime,
        commit=commit,
        content_sha256=content,
        finished=now(),
        python=platform.python_version(),
        cupy=session.cupy,
        nvcc=tools.get("nvcc") or "",
        ncu=tools.get("ncu") or "",
        nsys=tools.get("nsys") or "",
        clocks="unlocked",
    )


def write_campaign(
    path: Path, gpu: Gpu, name: str, commit: str, content: str, tools: Mapping[str, str | None]
) -> Campaign:
    """Writes and returns the campaign record, whose name, tools and code all measurements on this GPU share.

    `name` and `commit` are those of the configuration; "auto" derives the name from GPU, date and commit, and asks git
    for the commit. A commit that the configuration names is marked, so that all measurements carry it. Two campaigns
    may have the same name; the random id tells them apart wherever the record goes.
    """
    started, named = now(), commit != "auto"
    if not named:
        commit = commit_of(paths.project())
    record = Campaign(
        campaign=name if name != "auto" else f"{gpu.slug}-{started[:10]}-{_short(commit) or content[:7]}",
        id=secrets.token_hex(8),
        project=project_of(paths.project()),
        gpu=gpu.slug,
        gpu_name=gpu.name,
        arch=gpu.arch,
        origin="live",
        commit=commit,
        commit_named=named,
        content_sha256=content,
        started=started,
        driver=gpu.driver,
        cuda=gpu.cuda_driver,
        clocks="unlocked",
        device=gpu,
        tools=tools,
    )
    door.write(path, record)
    return record


def _short(commit: str) -> str:
    return re.sub(r"^([0-9a-f]{7})[0-9a-f]*(-dirty)?$", r"\1\2", commit)
