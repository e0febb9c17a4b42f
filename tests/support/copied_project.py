"""Copies of the project for tests that run its workflow."""

import os
import shutil
from collections.abc import Collection
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def copy_project(place: Path, *more: str, families: Collection[str] | None = None) -> Path:
    """Copies the workflow, kernels and settings to `place`, with compiled modules; all families, or those named."""
    kernels = [f"kernels/{name}" for name in (*families, "include")] if families is not None else ["kernels"]
    for name in ("workflow", *kernels, "config", "profiles", *more):
        # A module that is being compiled has a temporary name.
        shutil.copytree(PROJECT / name, place / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    shutil.copy(PROJECT / "Snakefile", place)
    return place


class RestoredCopy:
    """A copy of `original`, with its modification times, at `place`; `restore` undoes what was changed in it.

    Copying a thousand files for each test takes half a second.
    """

    def __init__(self, original: Path, place: Path) -> None:
        self.original, self.place = original, place
        shutil.copytree(original, place)
        self._states = self._read()

    def restore(self) -> None:
        """Deletes what is new, and copies what was changed or deleted."""
        states = self._read()
        for path in states.keys() - self._states.keys():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)  # its folder may be new, too
        for path, state in self._states.items():  # a folder before what is in it
            if path not in states or states[path] != state:
                if state is None:
                    path.mkdir()
                else:
                    shutil.copy2(self.original / path.relative_to(self.place), path)

    def _read(self) -> dict[Path, tuple[int, int] | None]:
        """Returns the size and modification time of each file, and None for each folder."""
        found: dict[Path, tuple[int, int] | None] = {}
        for folder, folders, files in os.walk(self.place):
            found |= dict.fromkeys((Path(folder, name) for name in folders), None)
            for path in (Path(folder, name) for name in files):
                state = path.lstat()
                found[path] = (state.st_size, state.st_mtime_ns)
        return found
