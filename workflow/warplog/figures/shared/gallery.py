"""One HTML page with all figures of a family."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

NAME = "figures.html"
_STYLE = "body{font:15px sans-serif;margin:16px;max-width:1000px}img{max-width:100%;height:auto}nav a{margin-right:1em}"


def page(family: str, figures: Sequence[Path]) -> str:
    """Returns a page that needs no other file: links to the figures, and the PNG files in the given order."""
    titles = {path: path.stem.replace("_", " ") for path in figures}
    links = "\n".join(f'<a href="#{escape(path.stem)}">{escape(titles[path])}</a>' for path in figures)
    parts = "\n".join(
        f'<h2 id="{escape(path.stem)}">{escape(titles[path])}</h2>\n'
        f'<img alt="{escape(titles[path])} of {escape(family)}" src="{_address(path)}">'
        for path in figures
    )
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(family)}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{escape(family)}</h1>\n<nav>\n{links}\n</nav>\n{parts}\n</html>\n"
    )


def _address(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
