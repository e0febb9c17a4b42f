"""The worklog: a family's ladder told step by step, from its tables and sources.

`excerpt` takes the code that is a rung's idea, `page` holds what is told, `rungs` and `gather` fill it from the
tables, and `html`, `markdown` and `latex` write it. No fact is computed while writing.
"""

from warplog.worklog.gather import gather
from warplog.worklog.html import html
from warplog.worklog.latex import latex
from warplog.worklog.markdown import markdown

__all__ = ["gather", "html", "latex", "markdown"]
