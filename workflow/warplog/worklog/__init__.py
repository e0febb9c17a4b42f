"""The worklog: a page that describes a family's ladder step by step, from its tables and sources.

`gather` and `ladder` fill the data classes of `page` from the tables; `excerpt` selects the code to show.
`html`, `markdown` and `latex` render a page and compute nothing.
"""

from warplog.worklog.gather import gather
from warplog.worklog.html import html
from warplog.worklog.latex import latex
from warplog.worklog.markdown import markdown

__all__ = ["gather", "html", "latex", "markdown"]
