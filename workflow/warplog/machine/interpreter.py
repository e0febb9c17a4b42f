"""Checks the path of the Python interpreter: Snakemake puts it into a shell command without quotes."""

import re
import sys

# Characters with a meaning in bash; letters of any alphabet are safe.
_UNSAFE = re.compile(r"[\s\"'`$&*()\[\]{}|;<>?!#~\\]")
REMEDY = (
    "install warplog in a folder whose path has no such character (in a checkout:"
    " UV_PROJECT_ENVIRONMENT=/tmp/warplog-venv uv run snakemake --cores 1)"
)


def unusable(path: str = sys.executable) -> str:
    """Returns why Snakemake cannot start jobs with this interpreter; "" if it can."""
    bad = _UNSAFE.search(path)
    return f"{path}: Snakemake cannot start jobs from a path that contains {bad.group()!r}" if bad else ""
