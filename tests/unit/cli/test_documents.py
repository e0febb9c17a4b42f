"""The examples of README.md and workflow/docs/ work as shown, their links resolve, their numbers are the campaign's."""

import importlib.util
import re
import shutil
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tools import articles

from sass_builds import built
from warplog.catalog import family as catalog
from warplog.catalog.claims import verdict_words
from warplog.catalog.header import read_source
from warplog.cli import main
from warplog.figures.shared import style
from warplog.metrics import registry
from warplog.metrics.metric import Metric
from warplog.records.config import Config
from warplog.tables import view

PROJECT = Path(__file__).parents[3]
RECORDED = PROJECT / "results" / "recorded" / Config().recorded
TABLES = RECORDED / "tables"
DOCUMENTS = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "CHANGELOG.md",
    PROJECT / "config" / "README.md",
    PROJECT / "results" / "recorded" / "README.md",
    *sorted((PROJECT / "workflow" / "docs").glob("*.md")),
]


def block(document: str, language: str, holds: str) -> str:
    """Returns the first code block in `language` that contains `holds`."""
    blocks = re.findall(rf"```{re.escape(language)}\n(.*?)```", (PROJECT / document).read_text(), re.DOTALL)
    return next(text for text in blocks if holds in text)


def module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_links_resolve(document):
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text()):
        path, _, anchor = target.partition("#")
        if path.startswith("https://"):
            continue
        linked = document.parent / path if path else document
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked.read_text()), target


def anchors(text: str) -> set[str]:
    """Returns the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_shows_figures_of_the_default_campaign():
    shown = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (PROJECT / "README.md").read_text())
    assert len(shown) >= 3
    assert all((PROJECT / path).is_relative_to(RECORDED / "figures") for path in shown)


def counter(family: str, variant: str, name: str) -> float:
    """Returns a metric of a variant at the headline case of its family."""
    tables = view.load(TABLES, family)
    metrics = tables.metrics
    rows = (metrics["variant"] == variant) & (metrics["metric"] == name) & (metrics["case"] == tables.case)
    return float(metrics.loc[rows, "value"].iloc[0])


def readme() -> str:
    """Returns the README with its lines joined, so that sentences are found regardless of line breaks."""
    return " ".join((PROJECT / "README.md").read_text().split())


def test_the_speeds_in_the_readme_are_those_of_the_campaign():
    measured = view.read_table(TABLES, "measurements")
    speed = measured.set_index(["family", "variant", "case"])["ratio_to_baseline"]
    naive, best = (100 * speed["sgemm", name, "4096"] for name in ("naive", "register_reuse"))
    assert f"from `naive` ({naive:.1f} % of cuBLAS) to `register_reuse` ({best:.1f} %)" in readme()
    own = measured[~measured["variant"].str.startswith("cublas")]
    large = own[own["case"].isin(["4096", "8192", "16384"])].groupby(["family", "case"])["ratio_to_baseline"]
    ahead = 100 * (large.max() - 1)
    assert f"{ahead['sgemm'].min():.1f} to {ahead['sgemm'].max():.1f} % ahead of cuBLAS" in readme()
    bf16 = ahead["bf16_gemm"]
    assert (
        f"the fastest bf16 kernel is {bf16['4096']:.1f} % ahead of it at 4096, {bf16['8192']:.1f} % at 8192"
        in readme()
    )
    assert f"and {-bf16['16384']:.1f} % behind at 16384" in readme()


def test_the_descriptions_of_figures_in_the_readme_match_the_campaign():
    stall = [
        counter("sgemm", name, "stall_lg_throttle_pct") for name in ("naive", "gmem_coalesced", "smem_tiled")
    ]
    assert f"spends {stall[0]:.0f} % of its warp cycles" in readme()
    assert f"`gmem_coalesced` {stall[1]:.0f} %" in readme()
    assert stall[2] < 0.1
    times = view.read_table(TABLES, "measurements").set_index(["family", "variant", "case"])["median_us"]
    wall = [times["overlap", name, "64Mi"] / 1000 for name in ("sequential", "three_streams")]
    hidden = counter("overlap", "three_streams", "copy_hidden_pct")
    assert f"takes {wall[0]:.1f} ms one after the other and {wall[1]:.1f} ms in three streams" in readme()
    assert f"{hidden:.0f} % of the time of the copies overlaps" in readme()
    power = view.read_table(TABLES, "measurements").set_index(["variant", "case"])
    random, zeros = (power.loc["tensor_cores", f"8192-{data}"] for data in ("random", "zeros"))
    assert (
        f"{random['pj_per_flop']:.2f} pJ per FLOP on random matrices and {zeros['pj_per_flop']:.2f}"
        in readme()
    )
    assert (
        f"from {zeros['sustained_sm_mhz'] / 1000:.2f} to {random['sustained_sm_mhz'] / 1000:.2f} GHz"
        in readme()
    )
    assert f"takes {random['sustained_us'] / zeros['sustained_us']:.2f} times as long" in readme()


def test_the_counts_in_the_readme_are_those_of_the_campaign():
    measured, claims = view.read_table(TABLES, "measurements"), view.read_table(TABLES, "claims")
    ladders = measured[["family", "variant"]].drop_duplicates()
    assert f"{ladders['family'].nunique()} families with {len(ladders)} variants" in readme()
    verdicts = claims["verdict"].value_counts()
    assert f"{verdicts['confirmed']} are confirmed, {verdicts['refuted']} refuted, and" in readme()
    assert (
        f"{verdicts['within_noise']} are within the noise; {verdicts['not_measurable']} are not judged"
        in readme()
    )
    captured = measured["ncu_us"].notna() | measured["nsys_us"].notna()
    differ = (measured["agreement"] == "disagree").sum()
    assert f"{differ} of the {captured.sum()} captured rows differ" in readme()
    oracle = pd.read_parquet(TABLES / "oracle.parquet")["verdict"]
    assert f"{(oracle == 'right').sum()} of {len(oracle)} quantities were right" in readme()


@pytest.mark.parametrize("name", ["h200", "h100"])
def test_the_verdicts_counted_in_the_list_of_campaigns_are_theirs(name):
    text = " ".join((RECORDED.parent / "README.md").read_text().split(f"## {name}\n")[1].split())
    verdicts = view.read_table(RECORDED.parent / name / "tables", "claims")["verdict"].value_counts()
    counts = f"{verdicts['confirmed']} claims are confirmed, {verdicts['refuted']} refuted,"
    assert (
        f"{counts} {verdicts['within_noise']} within the noise, and {verdicts['not_measurable']} are not judged"
        in text
    )


@pytest.mark.parametrize(("name", "column"), [("h200", 2), ("h100", 3)])
def test_the_figures_in_the_experiments_are_those_of_the_campaigns(name, column):
    section = (PROJECT / "workflow" / "docs" / "experiments.md").read_text().split("\n## ")
    lines = next(part for part in section if part.startswith("Families and variants first")).splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    shown = {cells[0]: cells[column] for cells in rows}
    tables = RECORDED.parent / name / "tables"
    claimed = view.read_table(tables, "claims").set_index("id")["measured"]
    times = view.read_table(tables, "measurements").set_index(["family", "variant", "case"])["median_us"]
    for quantity, figure in {
        "DRAM over shared memory": f"{claimed['G20b']:.1f}",
        "access to the host": f"{claimed['D32']:.2f} us",
        "shared memory over DRAM": f"{claimed['T5b']:.1f}",
        "a dependent FMA": f"{claimed['B24']:.2f}",
        "8-way conflicts over none": f"{claimed['G6d']:.2f}",
        "cuBLAS: tf32 and bf16 over fp32": f"{claimed['B27a']:.2f}, {claimed['B27b']:.1f}",
        "share of the peak at one row": f"{claimed['T7a']:.2f} %",
        "`published` of cuBLAS": f"{claimed['D15']:.1f} %",
        "two streams over one": f"{claimed['D28a']:.2f}",
        "`warptile_published` of cuBLAS": f"{claimed['B17']:.1f} %",
        "time with the worst stride": f"{claimed['T4a']:.1f}",
        "bytes used of those fetched": f"{claimed['T4b']:.1f} %",
        "time with the block size of the occupancy API over the best": f"{claimed['D21c']:.3f}",
        "65536 blocks of one warp": f"{times['costs', 'nothing', '65536x1x1']:.1f} us",
    }.items():
        assert shown[quantity] == figure, quantity


def test_the_page_of_the_articles_is_that_of_the_families_and_campaigns():
    """After an edit of a family.yaml or another campaign: `python tests/tools/articles.py`."""
    assert f"<!-- warplog articles -->\n\n{articles.text()}\n<!-- end -->" in articles.DOCUMENT.read_text()


def test_the_verdicts_that_changed_are_now_those_of_the_campaigns():
    lines = articles.DOCUMENT.read_text().split("<!-- end -->")[1].splitlines()
    changed = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][1:]
    assert len(changed) > 20
    for column, name in ((2, "h200"), (4, "h100")):
        table = view.read_table(RECORDED.parent / name / "tables", "claims").set_index("id")
        for cells in changed:
            row = table.loc[cells[0]]
            assert cells[column] == verdict_words(row["verdict"], row["measured"], ""), cells[0]


def test_the_example_metric_of_contributing_fits_the_registry():
    metric = eval(textwrap.dedent(block("CONTRIBUTING.md", "python", "Metric(")), vars(registry))
    assert isinstance(metric, Metric)
    assert metric.name not in registry.METRICS
    assert {name.removeprefix("@") for name in metric.counters} <= set(registry.METRICS)


@pytest.mark.nvcc
def test_the_example_variant_of_the_readme_is_valid_and_compiles(tmp_path, kept_builds):
    folder = shutil.copytree(PROJECT / "kernels", tmp_path / "kernels") / "sgemm"
    (folder / "mine.cu").write_text(block("README.md", "c++", "launch("))
    listed = (folder / "family.yaml").read_text()
    first = listed.index("\nvariants:\n")
    end = first + 11 + re.search(r"^(?=[a-z])", listed[first + 11 :] + "x", re.MULTILINE).start()
    (folder / "family.yaml").write_text(f"{listed[:end]}{block('README.md', 'yaml', 'mine')}{listed[end:]}")
    family = catalog.load_family(folder / "family.yaml")
    _, made = built(family, family.variant("mine"), "sm_90", kept_builds)
    assert made.status == "ok", made


@pytest.fixture
def scale(tmp_path):
    """Returns the folder of the example family in workflow/docs/extending.md."""
    folder = tmp_path / "mine" / "scale"
    folder.mkdir(parents=True)
    (folder / "family.yaml").write_text(block("workflow/docs/extending.md", "yaml", "family: scale"))
    (folder / "reference.py").write_text(block("workflow/docs/extending.md", "python", "make_inputs"))
    (folder / "plain.cu").write_text("// empty\n")
    return folder


def test_the_example_family_of_the_documentation_is_valid_and_its_reference_is_correct(scale):
    family = catalog.load_family(scale / "family.yaml")
    assert [variant.name for variant in family.variants] == ["plain", "small_blocks"]
    reference = module(scale / "reference.py")
    inputs = reference.make_inputs(np, np.random.default_rng(1), {"n": 33})
    answer, magnitude = reference.reference(np, inputs, {"n": 33})["y"]
    assert answer.dtype == np.float64
    assert np.array_equal(answer, 2 * inputs["x"].astype(np.float64))
    assert np.array_equal(magnitude, answer)


def test_the_example_of_a_python_variant_fits_the_example_family(scale):
    entry = block("workflow/docs/extending.md", "yaml", "language: triton")
    with (scale / "family.yaml").open("a") as file:
        file.write(entry)
    (scale / "blocks.py").write_text(block("workflow/docs/extending.md", "python", "def launch"))
    variant = catalog.load_family(scale / "family.yaml").variant("blocks")
    assert (variant.language, variant.file.name) == ("triton", "blocks.py")
    assert "def scale(" in read_source(variant.file)


def test_the_example_figure_of_the_documentation_is_drawn(tmp_path):
    (tmp_path / "registers.py").write_text(block("workflow/docs/extending.md", "python", "def draw"))
    registers = module(tmp_path / "registers.py")
    tables = view.load(TABLES, "sgemm")
    drawn = registers.draw(registers.data(tables), style.look(tables))
    assert len(drawn.axes[0].patches) == len(tables.variants)


def test_commands_find_families_in_the_configured_kernel_folders(scale, tmp_path, monkeypatch, capsys):
    (tmp_path / "Snakefile").touch()
    (tmp_path / "kernels").mkdir()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text("kernel_folders: [mine]\n")
    monkeypatch.chdir(tmp_path)
    claim = """
    claims:
      - {id: S1, claim: fast, source: me, measure: "median_us(plain) / median_us(small_blocks)", confirmed_if: ">= 1"}
    """
    with (scale / "family.yaml").open("a") as file:
        file.write(textwrap.dedent(claim))
    assert main.main(["claims", "--family", "scale", str(TABLES)]) == 0
    assert main.main(["claims", "--family", "scales", str(TABLES)]) == 1
    assert "did you mean 'scale'?" in capsys.readouterr().err
