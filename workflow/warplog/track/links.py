"""A page with a link to every run of a campaign in MLflow."""

from html import escape

from warplog.core.project import own_command
from warplog.track.log import LOCAL_UI, LoggedFamily, TrackingResult, link_base
from warplog.track.view import run_path

_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Runs in MLflow</title>
<style>body{font:15px sans-serif;margin:24px;max-width:60rem}</style>
<style>ul{padding:0}li{display:inline-block;margin-right:1.2em}</style>
<h1>Runs in MLflow</h1>
"""


def page(result: TrackingResult, uri: str) -> str:
    """Returns an HTML page with a link to the charts of each family and to the run of each variant."""
    base = link_base(uri)
    how = f"<p>First run <code>{escape(own_command('ui'))}</code></p>\n" if base == LOCAL_UI else ""
    return f"{_HEAD}{how}{''.join(_family(logged, base) for logged in result.experiments)}</html>\n"


def _family(logged: LoggedFamily, base: str) -> str:
    found = {
        name: f"{base}/{run_path(logged.experiment_id, run.run_id)}" for name, run in logged.runs.items()
    }
    runs = "\n".join(f"<li>{_link(address, variant)}</li>" for variant, address in found.items())
    return f"<h2>{_link(logged.link, logged.family)}</h2>\n<ul>\n{runs}\n</ul>\n"


def _link(address: str, text: str) -> str:
    return f'<a href="{escape(address)}">{escape(text)}</a>'
