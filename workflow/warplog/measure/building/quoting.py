"""What a build record quotes: messages about the project's own files, and paths that lead to no home folder.

Records are published, in MLflow and in recorded campaigns. A source may include any file that its author names, and the
compiler quotes the lines of that file that it does not understand.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warplog.catalog.compiling import HEADERS

# A message of cudafe++, "a.cu(3): error: ...", or of the host compiler, "a.cu:3:1: error: ...". The lines up to the
# next message of any kind quote the source.
_MESSAGE = re.compile(
    r"(?P<file>\S.*?)(?:\((?P<line>\d+)\)|:(?P<host_line>\d+)(?::\d+)?): "
    r"(?P<kind>(?:[a-z-]+ )?(?:error|warning|note|remark)\b)"
)
_OTHER = re.compile(
    r"(?:\d+ (?:error|warning)s? |Error limit|[Cc]ompilation terminated|Remark: |In file included from|"
    r"(?:\S*/)?(?:ptxas|nvcc|nvlink|cudafe\+\+|cicc|fatbinary|collect2|ld|g\+\+|gcc|cc1plus)\b)"
)
# cudafe++ indents its explanations, such as the types of arguments, deeper than the line that it quotes.
_EXPLANATION = re.compile(r" {6,}\S")
# A path that is longer keeps its first folder and as many of the last parts as fit.
_LONGEST_PATH = 60
_PATH = re.compile(r"(?<![\w.~/+-])[\w.~+@-]*(?:/[\w.+@-]+){2,}")
_SYSTEM = (Path("/usr/include"), Path("/usr/lib/gcc"))


def shortened(text: str) -> str:
    """Returns the text with long paths cut in the middle: `/usr/.../cub/device/device_scan.cuh`."""
    return _PATH.sub(lambda match: _shortened(match[0]), text)


def _shortened(path: str) -> str:
    if len(path) <= _LONGEST_PATH:
        return path
    first, *rest = path.removeprefix("/").split("/")
    head = f"{'/' if path.startswith('/') else ''}{first}/.../"
    kept = rest[-1]
    for part in reversed(rest[:-1]):
        if len(head) + len(part) + 1 + len(kept) > _LONGEST_PATH:
            break
        kept = f"{part}/{kept}"
    return head + kept


@dataclass(frozen=True)
class Places:
    """The folders of a build.

    Attributes:
        project: the working directory of the compiler.
        families: the folder of the kernel families, which may lie elsewhere.
        output: the folder of the library, with the generated launcher.
        toolkit: the installation of nvcc.
        repository: the folder that contains the families and their sources; by default that of the families.
    """

    project: Path
    families: Path
    output: Path
    toolkit: Path
    repository: Path | None = None

    def quoted(self, output: str) -> str:
        """Returns output of nvcc with lines of source only from files of the project, and with short paths.

        Of files of the toolkit and the system, the messages are kept; of any other file, its name and the line.
        """
        return self.text("\n".join(self._kept(output.splitlines())))

    def name(self, path: Path | str) -> str:
        """Returns the path relative to the project or its repository, below `...` relative to the families or theirs.

        Of any other file, it is only the name.
        """
        absolute = Path(os.path.normpath(self.project / path))
        root = self.repository or self.families
        if absolute.is_relative_to(self.project) or (
            self.project.is_relative_to(root) and absolute.is_relative_to(root)
        ):
            return os.path.relpath(absolute, self.project)
        for folder in (self.families, root):
            if absolute != folder and absolute.is_relative_to(folder):
                return f".../{absolute.relative_to(folder)}"
        return "..." if absolute in (Path.home(), Path("/")) else f".../{absolute.name}"

    def text(self, text: str) -> str:
        """Returns the text with paths relative to the project, below `...` for the families and `~` for the home."""
        root = self.repository or self.families
        above = os.path.relpath(root, self.project) if self.project.is_relative_to(root) else "..."
        for folder, short in (
            *((self.project, "."), (self.families, "..."), (root, above)),
            (Path.home(), "~"),
        ):
            if folder != Path("/"):
                text = re.sub(rf"(?<![\w.~/-]){re.escape(str(folder))}(?![\w.-])", short, text)
        return re.sub(r"(?<![\w./])\./(?=\w)", "", text)

    def command(self, words: Sequence[str]) -> list[str]:
        """Returns a command whose program, folders (-I, -L) and files have short paths."""
        return [Path(words[0]).name, *map(self._word, words[1:])]

    def _word(self, word: str) -> str:
        option = word[:2] if word.startswith(("-I", "-L")) else ""
        path = word.removeprefix(option)
        return f"{option}{self.name(path)}" if path.startswith("/") else self.text(word)

    def _kept(self, lines: Sequence[str]) -> Iterator[str]:
        own = explained = True
        for line in lines:
            if message := _MESSAGE.match(line):
                own = self._is_own(message["file"])
                explained = own or self._is_of_the_toolkit(message["file"])
                yield line if explained else self._withheld(message)
            elif _OTHER.match(line):
                own = explained = True
                yield line
            elif own or (explained and _EXPLANATION.match(line)):
                yield line

    def _withheld(self, message: re.Match[str]) -> str:
        place = f"{Path(message['file']).name}:{message['line'] or message['host_line']}"
        return f"{place}: {message['kind']}: not quoted, since the file is outside of the project"

    def _is_own(self, file: str) -> bool:
        """Returns whether the file is generated, or in the project and neither hidden nor in a hidden folder."""
        real = Path(os.path.realpath(self.project / file))
        if not real.exists():
            return True
        own = (self.project, self.families, self.output, self.repository or self.families)
        folders = {Path(os.path.realpath(folder)) for folder in own}
        folders -= {Path("/"), Path(os.path.realpath(Path.home()))}
        parts = [real.relative_to(folder).parts for folder in folders if real.is_relative_to(folder)]
        return any(not any(part.startswith(".") for part in inside) for inside in parts)

    def _is_of_the_toolkit(self, file: str) -> bool:
        real = Path(os.path.realpath(self.project / file))
        known = (self.toolkit, HEADERS / "warplog", *_SYSTEM)
        return any(real.is_relative_to(os.path.realpath(folder)) for folder in known)
