"""Continuous integration checks the lock file and looks for known vulnerabilities in exactly what it locks."""

import re
import shutil
import subprocess

import pytest
import yaml


@pytest.fixture
def steps(project):
    """The commands of the job `dependencies`, line by line."""
    jobs = yaml.safe_load((project / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    return [line for step in jobs["dependencies"]["steps"] for line in step.get("run", "").splitlines()]


def test_the_lock_file_is_checked_and_what_it_locks_is_audited(project, steps):
    here = (project / ".ci" / "run").read_text().splitlines()
    assert all(any("uv lock --check" in line for line in lines) for lines in (steps, here))
    export, audit = (next(line for line in steps if word in line) for word in ("uv export", "pip-audit"))
    (listing,) = re.findall(r"--output-file (\S+)", export)
    assert f"--requirement {listing} " in audit
    assert re.search(r"pip-audit@\d", audit), "a version of its own, so that a run can be repeated"
    triggers = yaml.safe_load((project / ".github" / "workflows" / "test.yml").read_text())[True]
    assert {"push", "pull_request", "schedule"} <= set(triggers)


@pytest.mark.skipif(shutil.which("uv") is None, reason="uv: not found")
def test_the_audited_list_holds_every_locked_version_with_its_hashes(project, steps, tmp_path):
    export = next(line for line in steps if "uv export" in line).split()
    listing = tmp_path / export[export.index("--output-file") + 1]
    command = [*export[:-1], str(listing), "--quiet", "--offline"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    packages = re.findall(r"^(\S+==\S+)(.*?)(?=^\S|\Z)", listing.read_text(), re.DOTALL | re.MULTILINE)
    assert len(packages) > 100
    assert all("--hash=sha256:" in rest for _, rest in packages)
    assert {"snakemake", "mlflow", "cupy-cuda13x", "pytest"} <= {name.split("==")[0] for name, _ in packages}
