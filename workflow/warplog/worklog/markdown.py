"""Renders a worklog as Markdown; the figures are linked, not copied."""

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core.text import escape_markdown, visible
from warplog.worklog.code.listing import Code
from warplog.worklog.page import Page, Picture
from warplog.worklog.texts import environment

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_SIGNS = {"new": "+", "gone": "-", "same": " "}


def markdown(page: Page, folder: Path) -> str:
    """Returns the page as Markdown for a file in `folder`; links to figures are relative to it."""

    def address(picture: Picture) -> str:
        return Path(os.path.relpath(picture.path, folder)).as_posix()

    text = _environment().get_template("page.md.j2").render(page=page, address=address)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


@cache  # a site compiles the template once
def _environment() -> "Environment":
    templates = environment(escape_markdown)
    templates.filters.update(diff=_diff, quoted=_quoted)
    return templates


def _quoted(text: str) -> "Markup":
    """Escapes a text except for backticks around a name."""
    from markupsafe import Markup

    return Markup(re.sub(r"\\`([\w.]+)\\`", r"`\1`", escape_markdown(text)))  # noqa: S704


def _diff(code: Code) -> "Markup":
    """Returns the lines of a variant in a block of code, with signs if they are compared with the parent's."""
    from markupsafe import Markup

    lines = []
    for change in code.changes:
        sign = _SIGNS.get(change.kind, "") if code.parent else ""
        text = (
            f"... {change.folded} lines as in {code.parent}" if change.kind == "folded" else change.line.text
        )
        lines.append(visible(f"{sign}{text}"))
    fence = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
    is_python = any(change.line.file.endswith(".py") for change in code.changes)
    kind = "diff" if code.parent else "python" if is_python else "cuda"
    return Markup("\n".join((f"{fence}{kind}", *lines, fence)))  # noqa: S704
