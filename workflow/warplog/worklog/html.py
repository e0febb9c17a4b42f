"""Renders a worklog as one self-contained HTML file, with figures, style sheet and syntax colours."""

import base64
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core.errors import WarplogError
from warplog.core.text import one_line, visible
from warplog.metrics import STALL_REASONS
from warplog.worklog.excerpt import Excerpt
from warplog.worklog.page import Page, Picture

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_MOST_PNG_BYTES = 8 << 20
_ANY = "|".join(STALL_REASONS)
_LONG = "|".join(reason for reason in STALL_REASONS if "_" in reason)
# Names of warp states in a sentence; "barrier" and "wait" only where they are used as names.
_STATES = re.compile(rf"\b(?:{_LONG})\b|(?<=\()(?:{_ANY})(?=, )|(?<= on )(?:{_ANY})(?= \()")
LIGHT, DARK = "default", "github-dark"
_UNITS = re.compile(r"(?<=\d) (?=(?:[kMGT]B?|B|MHz|%)(?:\W|$))")


def html(page: Page) -> str:
    """Returns the page; every text in it is escaped.

    Raises:
        WarplogError: if a figure is missing, too large or not a PNG.
    """
    return _environment().get_template("page.html.j2").render(page=page, style=_style()) + "\n"


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        states=_mark_states, code=_code, image=_image, anchor=_anchor, width=_width, sentence=_sentence
    )
    return environment


def _finalize(value: object) -> object:
    """Shows hidden characters of a text as escapes; text that a filter has made safe is left alone."""
    return visible(value) if type(value) is str else value


def _mark_states(text: str) -> "Markup":
    """Escapes the text, marks names of warp states as code and puts no-break spaces before units."""
    from markupsafe import Markup, escape

    marked = _STATES.sub(r"<code>\g<0></code>", str(escape(one_line(text))))
    return Markup(_UNITS.sub("\u00a0", marked))  # noqa: S704


def _code(excerpt: Excerpt) -> "Markup":
    """Returns the lines of an excerpt, escaped and with syntax colours."""
    from markupsafe import Markup
    from pygments import highlight  # type: ignore[import-untyped]
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
    from pygments.lexers import CudaLexer, PythonLexer  # type: ignore[import-untyped]

    lexer = PythonLexer() if excerpt.is_python else CudaLexer()
    return Markup(highlight(visible(excerpt.code), lexer, HtmlFormatter(nowrap=True)))  # noqa: S704


def _image(picture: Picture) -> str:
    """Returns the PNG as a data URI."""
    from PIL import Image

    try:
        if picture.path.stat().st_size > _MOST_PNG_BYTES:
            raise WarplogError(f"{picture.path}: larger than {_MOST_PNG_BYTES} bytes; draw it again")
        with Image.open(picture.path) as image:
            image.verify()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise WarplogError(f"{picture.path}: not a readable PNG ({error}); draw it again") from None
    return f"data:image/png;base64,{base64.b64encode(picture.path.read_bytes()).decode()}"


def _anchor(name: str) -> str:
    return "rung-" + re.sub(r"[^A-Za-z0-9_]", "-", name)


def _width(percent: float) -> str:
    """Formats a percentage for CSS, clipped to the range from 0 to 100."""
    return f"{min(100.0, max(0.0, percent)):.1f}"


def _sentence(text: str) -> str:
    """Returns the text with a capital letter and a full stop."""
    text = one_line(text)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) or not text else ".")


def _style() -> "Markup":
    """Returns the CSS of the page and of the syntax colours; neither contains user input."""
    from markupsafe import Markup
    from pygments.formatters import HtmlFormatter

    rules = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    light, dark = (
        HtmlFormatter(style=style, nobackground=True).get_style_defs("pre") for style in (LIGHT, DARK)
    )
    return Markup(f"{rules}\n{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n")  # noqa: S704
