"""The Python that starts the jobs: Snakemake puts its path into a shell command as it is, unquoted."""

import re
import sys

# Those that bash gives a meaning to; letters of any alphabet are safe.
_UNSAFE = re.compile(r"[\s\"'`$&*()\[\]{}|;<>?!#~\\]")
REMEDY = "UV_PROJECT_ENVIRONMENT=/tmp/warplog-venv uv run snakemake --cores 1, or move the project"


def unusable(path: str = sys.executable) -> str:
    """Why no job can be started with this interpreter; "" where one can."""
    found = _UNSAFE.search(path)
    return f"{path}: Snakemake starts no job from a path with {found.group()!r}" if found else ""
