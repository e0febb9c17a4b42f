"""The commands that the documents show: those in blocks of shell commands, and those in a sentence."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
DOCUMENTS = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "config" / "README.md",
    PROJECT / "results" / "recorded" / "README.md",
    *sorted((PROJECT / "workflow" / "docs").glob("*.md")),
    *sorted((PROJECT / "examples").rglob("*.md")),
    *sorted((PROJECT / "workflow" / "warplog" / "cli" / "templates").glob("*.md*")),
]
# What a block of shell commands may need that a test lacks, after its language: `sh gpu`. It is parsed and not run;
# what changes this checkout itself is not run either.
NEEDS = {"", "gpu", "cluster", "server", "checkout"}
_FENCE = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PROGRAMS = ("uv run ", "uvx ", "snakemake ", "warplog ")


@dataclass(frozen=True)
class Block:
    """A fenced block: its first line's words, such as `sh gpu`, and its text."""

    document: Path
    line: int
    words: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        return f"{self.document.relative_to(PROJECT)}:{self.line}"

    @property
    def is_shell(self) -> bool:
        return self.words[:1] == ("sh",)

    @property
    def needs(self) -> str:
        return " ".join(self.words[1:])


def blocks() -> list[Block]:
    """Returns all fenced blocks of the documents."""
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(document, line, tuple(match[1].split()), match[2]))
    return found


def first_lines(found: list[Block]) -> dict[str, list[str]]:
    """Returns the lines of each block by its name, without those that stand in an earlier block too."""
    seen: set[str] = set()
    lines: dict[str, list[str]] = {}
    for block in found:
        own = {
            line.partition(" # ")[0].strip().removeprefix("uv run "): line
            for line in block.text.splitlines()
            if line.strip()
        }
        lines[block.name] = [line for text, line in own.items() if text not in seen]
        seen |= own.keys()
    return {name: new for name, new in lines.items() if new}


def commands(shell: str) -> Iterator[list[str]]:
    """Yields the words of each simple command of a shell text, without comments, variables and redirections.

    `uv run` and `uvx --from PACKAGE` before a program are left out.
    """
    for line in shell.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word in (";", "&&", "||", "|", "&"):
                if program := _program(words):
                    yield program
                words = []
            else:
                words.append(word)


def _program(words: list[str]) -> list[str]:
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    for prefix in (["uv", "run"], ["uvx", "--from"]):
        if words[:2] == prefix:
            words = words[2 + (prefix[0] == "uvx") :]
    return words


def inline() -> Iterator[tuple[str, list[str]]]:
    """Yields document and words of each command in a sentence, such as `warplog verify results`."""
    for document in DOCUMENTS:
        prose = _FENCE.sub("", document.read_text(encoding="utf-8"))
        for match in _INLINE.finditer(prose):
            if match[1].startswith(_PROGRAMS):
                text = re.sub(r"<[\w ]+>", "NAME", match[1])
                yield str(document.relative_to(PROJECT)), next(iter(commands(text)))
