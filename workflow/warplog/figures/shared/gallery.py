"""One HTML page with all figures of a family."""

import base64
import gzip
from collections.abc import Sequence
from html import escape
from pathlib import Path

NAME = "figures.html"
_STYLE = "body{font:15px sans-serif;margin:16px;max-width:1000px}img{width:100%;height:auto}nav a{margin-right:1em}"
# MLflow shows the page in a frame that may run scripts, but has no address that a picture could be fetched from.
_SCRIPT = """<script>
for (const image of document.querySelectorAll("img")) {
  const packed = Uint8Array.from(atob(image.dataset.packed), letter => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  new Response(unpacked, {headers: {"content-type": "image/svg+xml"}}).blob()
    .then(figure => { image.src = URL.createObjectURL(figure); });
}
</script>
<noscript>The figures are packed in this page, and unpacked by a script.</noscript>"""


def page(family: str, figures: Sequence[Path]) -> str:
    """Returns a page that needs no other file: links to the figures, and the SVG files in the given order.

    Each run of the family has a copy, so they are compressed: a sixth of the size of the same figures as PNG.
    """
    titles = {path: path.stem.replace("_", " ") for path in figures}
    links = "\n".join(f'<a href="#{escape(path.stem)}">{escape(titles[path])}</a>' for path in figures)
    parts = "\n".join(
        f'<h2 id="{escape(path.stem)}">{escape(titles[path])}</h2>\n'
        f'<img alt="{escape(titles[path])} of {escape(family)}" data-packed="{_packed(path)}">'
        for path in figures
    )
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(family)}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{escape(family)}</h1>\n<nav>\n{links}\n</nav>\n{parts}\n{_SCRIPT}\n</html>\n"
    )


def _packed(path: Path) -> str:
    return base64.b64encode(gzip.compress(path.read_bytes(), mtime=0)).decode()
