"""Does a unit test catch a wrong line? Applies each mutation of mutations.yaml to a copy of the package.

    python tests/benchmarks/mutations.py [FILE ...]

An entry names a file below workflow/warplog, a text that occurs in it exactly once, the text in its place, and the test
files below tests/unit of which one must fail. All of them must pass on the copy without a mutation. With arguments,
only the mutations of files whose names contain one of them are applied. Fails if one is not caught, or no longer fits.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from shutil import copy2, copytree
from tempfile import TemporaryDirectory

import hypothesis  # noqa: F401 - imported once for all runs, as are pandas and scipy
import pandas  # noqa: F401
import pytest
import scipy.special  # noqa: F401
from msgspec import Struct, yaml

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "workflow" / "warplog"
PASSED, FAILED = 0, 1  # pytest's exit statuses; above are errors, such as a module that cannot be imported


class Mutation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wrong line, and the test files of which one must fail."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {' '.join(self.old.split())}  ->  {' '.join(self.new.split()) or '(nothing)'}"


def status(folder: Path, tests: Iterable[str]) -> int:
    """Returns pytest's exit status of test files that import the package from `folder`."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # The option precedes PYTHONPATH, which is for programs that a test starts.
    first = f"pythonpath={folder} tests tests/support tests/support/made_up"
    os.environ["PYTHONPATH"] = str(folder)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    paths = [f"tests/unit/{one}" for one in dict.fromkeys(tests)]
    os._exit(pytest.main(["-x", "-q", "-n", "0", "-o", first, "-p", "no:cacheprovider", *paths]))


def apply(one: Mutation, package: Path) -> str:
    """Applies a mutation to the copy of the package, runs its tests and undoes it; returns what became of it."""
    text = (PACKAGE / one.file).read_text() if (PACKAGE / one.file).is_file() else ""
    if (count := text.count(one.old)) != 1:
        return f"does not fit (its text occurs {count} times)"
    (package / one.file).write_text(text.replace(one.old, one.new))
    found = status(package.parent, one.tests)
    copy2(PACKAGE / one.file, package / one.file)
    return {FAILED: "caught", PASSED: "SURVIVED"}.get(found, f"no verdict (pytest: status {found})")


def main(names: list[str]) -> int:
    """Applies the mutations and prints what became of each; returns 1 unless all were caught."""
    known = yaml.decode(Path(__file__).with_suffix(".yaml").read_bytes(), type=list[Mutation])
    chosen = [one for one in known if not names or any(name in one.file for name in names)]
    os.chdir(PROJECT)
    with TemporaryDirectory() as folder:
        package = copytree(PACKAGE, Path(folder) / PACKAGE.name)
        if status(package.parent, (test for one in chosen for test in one.tests)) != PASSED:
            print("the tests do not pass without a mutation")
            return 1
        found = []
        for one in chosen:
            found.append(apply(one, package))
            print(f"{found[-1]:8}  {one}", flush=True)
    caught = found.count("caught")
    print(f"{caught} of {len(found)} caught")
    return 0 if caught == len(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
