"""Templates for formats other than HTML: the words of the pages, with texts and numbers escaped for the format."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog.core.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def words(escape: Callable[[str], str]) -> Any:
    """Returns the words of the pages, words.html.j2: its dictionaries and macros by name."""
    return environment(escape).get_template("words.html.j2").module


@cache
def environment(escape: Callable[[str], str]) -> "Environment":
    """Returns an environment in which `escape` makes each value safe, a number as its text; templates are not escaped.

    What a macro returns is safe already, so that the macros of `words` can be used in any format.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def safe(value: Any) -> Markup:
        if isinstance(value, Markup):
            return value
        text = visible(str(value))
        body = text.strip()  # `escape` may drop the space around it
        return Markup(text.replace(body, escape(body), 1) if body else text)  # noqa: S704

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # so that macros return Markup, which `safe` leaves alone
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=safe,
    )
    templates.filters.update(name=str, code=str, counted=str)  # marks of HTML
    return templates
