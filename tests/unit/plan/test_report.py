"""Snakemake's report: it opens on the ladders of all families, and lists the ladder before the other figures."""

import re
from pathlib import Path
from types import SimpleNamespace

import jinja2
from docutils.core import publish_parts

from warplog import figures
from warplog.plan.files import Files
from warplog.plan.making import make_plan
from warplog.plan.parameters import REPORTED, Parameters

OPENING = Path(__file__).parents[3] / "workflow" / "report" / "workflow.rst"


def opening(*names: str) -> str:
    """Returns the page that the report opens on, rendered as Snakemake does it."""
    families: dict[_Named, list[object]] = {}
    for name in names:
        figure = SimpleNamespace(path=Path(f"results/figures/{name}.png"))
        families.setdefault(_Named(name.partition("/")[0]), []).append(figure)
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
    text = environment.from_string(OPENING.read_text()).render(categories={"Figures": families}, files=[])
    return str(publish_parts(text, writer="html")["html_body"])


class _Named(str):
    @property
    def name(self) -> str:
        return str(self)


def test_it_opens_on_the_ladder_of_each_family_and_on_no_other_figure():
    body = opening("sgemm/roofline", "sgemm/ladder", "scan/ladder", "scan/claims")
    assert re.findall(r"results\['([^']*)'\]", body) == [
        "results/figures/scan/ladder.png",
        "results/figures/sgemm/ladder.png",
    ]
    assert re.findall("<h2>(.*?)</h2>", body) == ["scan", "sgemm"]
    assert "System Message" not in body


def test_without_a_figure_it_opens_on_its_text():
    assert "compiled with nvcc" in opening()


def test_each_reported_figure_exists_and_the_ladder_comes_first():
    assert set(REPORTED) <= set(figures.needs())
    plan = make_plan({"mode": "recorded"})
    labels = [
        Parameters(Files(plan)).report_labels(SimpleNamespace(figure=name))["figure"] for name in REPORTED
    ]
    assert labels == sorted(labels)
    assert labels[0] == "1 ladder"


def test_the_pattern_leaves_out_figures_that_are_not_reported():
    (allowed,) = re.findall(
        r"\{figure,(.*)\}\.png", Parameters(Files(make_plan({"mode": "recorded"}))).reported()
    )
    assert re.fullmatch(allowed, "warp_stalls")
    assert not re.fullmatch(allowed, "claims")
