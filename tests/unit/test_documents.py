"""What README.md and workflow/docs/ show can be done as it stands there, and what they link to is there."""

import importlib.util
import re
import shutil
import textwrap
from pathlib import Path

import numpy as np
import pytest

from sass_builds import compilers
from warplog.catalog import family as catalog
from warplog.cli import main
from warplog.core.defaults import DEFAULTS
from warplog.measure import build
from warplog.plotting import style
from warplog.tables import view

PROJECT = Path(__file__).parents[2]
RECORDED = PROJECT / "results" / "recorded" / DEFAULTS["recorded"]
TABLES = RECORDED / "tables"
DOCUMENTS = [
    PROJECT / "README.md",
    PROJECT / "config" / "README.md",
    *sorted((PROJECT / "workflow" / "docs").glob("*.md")),
]


def block(document: str, language: str, holds: str) -> str:
    """The code block of that language that holds a text."""
    found = re.findall(rf"```{re.escape(language)}\n(.*?)```", (PROJECT / document).read_text(), re.DOTALL)
    return next(text for text in found if holds in text)


def module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
        assert target.startswith("https://") or (document.parent / target).exists(), target


def test_the_pictures_of_the_readme_are_those_of_the_default_campaign():
    shown = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (PROJECT / "README.md").read_text())
    assert len(shown) >= 3
    assert all((PROJECT / path).is_relative_to(RECORDED / "figures") for path in shown)


def test_what_the_readme_says_of_its_pictures_is_what_the_campaign_found():
    verdicts = view.read_table(TABLES, "claims").set_index(["family", "id"])["verdict"]
    said = {"overlap": ["D18a", "D18b"], "power": ["G14a", "G15a", "G15b"]}
    assert {verdicts[family, name] for family, names in said.items() for name in names} == {"confirmed"}
    sgemm = view.load(TABLES, "sgemm")
    ahead = sgemm.ladder(sgemm.case).set_index("variant")["ratio_to_baseline"]
    assert min(ahead["tma_pipelined"], ahead["register_reuse"], ahead["best_of"]) > 1
    waves = view.load(TABLES, "quantization")
    rates = [waves.ladder(case).set_index("variant").loc["tile_128", "gflops"] for case in ("16896", "16897")]
    assert rates[1] < 0.75 * rates[0]
    bf16 = view.load(TABLES, "bf16_gemm").ladder("4096").set_index("variant")["gflops"]
    assert bf16["wmma_naive"] < bf16["mma_sync"] < bf16["wgmma_tma_store"]


@pytest.mark.nvcc
def test_the_variant_of_the_readme_is_accepted_and_compiles(tmp_path):
    nvcc, cuobjdump = compilers()
    folder = shutil.copytree(PROJECT / "kernels", tmp_path / "kernels") / "sgemm"
    (folder / "mine.cu").write_text(block("README.md", "c++", "launch("))
    listed = (folder / "family.yaml").read_text()
    first = listed.index("\nvariants:\n")
    end = first + 11 + re.search(r"^(?=[a-z])", listed[first + 11 :] + "x", re.MULTILINE).start()
    (folder / "family.yaml").write_text(f"{listed[:end]}{block('README.md', 'yaml', 'mine')}{listed[end:]}")
    family = catalog.load_family(folder / "family.yaml")
    made = build.build_variant(family, family.variant("mine"), "sm_90", nvcc, cuobjdump, tmp_path / "out")
    assert made["status"] == "ok", made


@pytest.fixture
def scale(tmp_path):
    """A folder with the family of workflow/docs/extending.md."""
    folder = tmp_path / "mine" / "scale"
    folder.mkdir(parents=True)
    (folder / "family.yaml").write_text(block("workflow/docs/extending.md", "yaml", "family: scale"))
    (folder / "reference.py").write_text(block("workflow/docs/extending.md", "python", "make_inputs"))
    (folder / "plain.cu").write_text("// made by the reader\n")
    return folder


def test_the_family_of_the_documentation_is_accepted_and_has_an_answer(scale):
    family = catalog.load_family(scale / "family.yaml")
    assert [variant.name for variant in family.variants] == ["plain", "small_blocks"]
    reference = module(scale / "reference.py")
    inputs = reference.make_inputs(np, np.random.default_rng(1), {"n": 33})
    answer, magnitude = reference.reference(np, inputs, {"n": 33})["y"]
    assert answer.dtype == np.float64
    assert np.array_equal(answer, 2 * inputs["x"].astype(np.float64))
    assert np.array_equal(magnitude, answer)


def test_the_figure_of_the_documentation_is_drawn(tmp_path):
    (tmp_path / "registers.py").write_text(block("workflow/docs/extending.md", "python", "def draw"))
    registers = module(tmp_path / "registers.py")
    tables = view.load(TABLES, "sgemm")
    drawn = registers.draw(registers.data(tables), style.look(tables))
    assert len(drawn.axes[0].patches) == len(tables.variants)


def test_commands_know_the_kernel_folders_of_the_configuration(scale, tmp_path, monkeypatch, capsys):
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
