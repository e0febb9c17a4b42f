"""A campaign as a folder of static pages, beside campaigns of other GPUs."""

from warplog.worklog.site.pages import Site

__all__ = ["Site"]
