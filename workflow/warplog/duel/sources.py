"""Sources of an earlier commit: a folder with its files, beside those of the working tree."""

import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.files import temporary_folder
from warplog.core.process import explain_exit, minimal_env, run
from warplog.records.requested.bisect import Commit

_GIT_S = 120.0


@dataclass(frozen=True)
class Tree:
    """The files of a commit, or of the working tree.

    Attributes:
        top: folder of the repository, or of the copy of the commit.
        commit: its hash; "" for the working tree.
    """

    top: Path
    commit: str = ""


def repository_of(folder: Path) -> Path:
    """Returns the top folder of the repository around `folder`.

    Raises:
        WarplogError: It lies in none.
    """
    return Path(_git(folder, "rev-parse", "--show-toplevel"))


def tree_of(ref: str, top: Path, cache: Path) -> Tree:
    """Returns the files of a commit, which are taken out of the repository once and kept in `cache`.

    Raises:
        WarplogError: The repository has no such commit, or the files cannot be written.
    """
    commit = commit_of(ref, top)
    folder = cache / commit
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=cache) as name:
            archive, files = Path(name) / "archive.tar", Path(name) / "files"
            _git(top, "archive", f"--output={archive}", commit)
            with tarfile.open(archive) as packed:
                packed.extractall(files, filter="data")
            shutil.rmtree(files / "results", ignore_errors=True)  # recorded campaigns, which no build reads
            if not folder.is_dir():  # another process may have been faster
                files.replace(folder)
    return Tree(folder, commit)


def commit_of(ref: str, top: Path) -> str:
    """Returns the hash of a commit.

    Raises:
        WarplogError: The repository has no such commit.
    """
    try:
        return _git(top, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    except WarplogError:
        raise WarplogError(f"{ref!r} is no commit, tag or branch of {top}") from None


def commits_between(good: str, bad: str, top: Path) -> list[Commit]:
    """Returns the commits after `good` up to `bad`, oldest first, along first parents: a merge counts as one.

    Raises:
        WarplogError: There is no such commit, or `good` is no ancestor of `bad`.
    """
    first, last = commit_of(good, top), commit_of(bad, top)
    if first == last or _git(top, "merge-base", first, last) != first:
        raise WarplogError(f"{good} is not an earlier commit that {bad} is built on")
    with temporary_folder() as folder:
        log = folder / "commits"  # there may be more than what is kept of the output
        _git(
            top, "rev-list", "--first-parent", "--reverse", "--format=%x01%H %s", f"{first}..{last}", log=log
        )
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    found = [line[1:].partition(" ") for line in lines if line.startswith("\x01")]
    return [Commit(hash=name, subject=subject) for name, _, subject in found]


def _git(folder: Path, *words: str, log: Path | None = None) -> str:
    done = run(["git", "-C", str(folder), *words], timeout_s=_GIT_S, env=minimal_env(), log=log)
    if not done.ok:
        said = " ".join(done.output_tail.split()) or explain_exit(done)
        raise WarplogError(f"git {' '.join(words)} in {folder}: {said}")
    return done.output_tail.strip()
