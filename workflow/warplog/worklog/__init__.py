"""The worklog: a page that describes a family's ladder step by step, from its tables and sources.

`gather` and `sections` select the rows, texts and code of a `page`; the templates make words of them, all of which are
in `words.html.j2`.
"""

from warplog.worklog.html import html
from warplog.worklog.latex import latex
from warplog.worklog.markdown import markdown
from warplog.worklog.page_content import gather

__all__ = ["gather", "html", "latex", "markdown"]
