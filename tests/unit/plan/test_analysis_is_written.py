"""What is concluded is written from all tables that it is based on."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from made_up_ceilings import ceilings
from shipped_families import FAMILIES
from warplog.core import paths
from warplog.core.columns import INSTRUCTIONS
from warplog.plan import evaluate
from warplog.plan.files import Files
from warplog.tables.conclusions import ANALYSED
from warplog.tables.files import write_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Path:
    """The tables of transpose of a recorded campaign, with machine code, but ceilings of another and fewer counts."""
    folder = tmp_path_factory.mktemp("analysed") / "tables"
    shutil.copytree(project / "results" / "recorded" / "h200" / "tables", folder)
    (folder / "ceilings.parquet").unlink()
    metrics = pd.read_parquet(folder / "metrics.parquet")
    missing = metrics["metric"].isin(("l1_wavefronts", "l2_requests_from_sms"))
    metrics[~missing].to_parquet(folder / "metrics.parquet")
    codes = {"naive": ("LDG.E R4, [R2.64]", "BRA 0x0"), "smem_conflict": ("LDG.E.128 R4, [R2.64]", "BRA 0x0")}
    rows = [
        {
            "family": "transpose", "variant": variant, "case": "8192", "kernel": "k", "launch": 0, "loop": 0,
            "iterates": True, "iterations": 8, "place": place, "offset": 16 * place, "opcode": text.split()[0],
            "text": text, "executed": 8, "samples": 4, "sample_share": 0.5, "stall": "wait", "stall_samples": 2,
            "line": 1, "gpu": "h200",
        }
        for variant, texts in codes.items() for place, text in enumerate(texts)
    ]  # fmt: skip
    write_table(rows, INSTRUCTIONS, folder / "instructions")
    other = folder.parent / "ceilings.parquet"
    ceilings().to_parquet(other)
    evaluate.write_analysis(FAMILIES, {"transpose": FAMILIES["transpose"].variants}, folder, [other])
    return folder


def test_the_machine_code_of_a_step_is_compared_from_the_table_of_instructions(folder: Path) -> None:
    quantities = pd.read_parquet(folder / "sass_steps.parquet").set_index(["variant", "quantity", "per"])
    widths = quantities.loc[("smem_conflict", "ldg_128", "iteration")]
    assert (widths["before"], widths["after"]) == (0, 1)


def test_a_step_names_the_campaign_of_the_ceilings_and_the_counts_that_this_one_lacks(folder: Path) -> None:
    reasons = pd.read_parquet(folder / "mechanisms.parquet").set_index(["variant", "case"])
    padded = reasons.loc["padded", "8192"]
    assert (padded["word"], padded["ceilings_of"], padded["campaign"][:5]) == (
        "not_in_evidence",
        "synthetic",
        "h200-",
    )
    assert padded["rests_on"].startswith("l1_wavefronts,l2_requests_from_sms,ceilings/")
    assert "ceilings/l2_gbytes_per_s" not in padded["rests_on"]


def test_families_that_are_analysed_side_by_side_have_the_same_rows(folder: Path, tmp_path: Path) -> None:
    chosen = {name: FAMILIES[name].variants for name in ("transpose", "reduction")}
    written = []
    for processes in (1, 2):
        place = tmp_path / str(processes)
        shutil.copytree(folder, place)
        evaluate.write_analysis(FAMILIES, chosen, place, processes=processes)
        written.append({kind.TABLE: (place / f"{kind.TABLE}.parquet").read_bytes() for kind in ANALYSED})
    assert written[0] == written[1]
    assert set(pd.read_parquet(tmp_path / "2" / "verdicts.parquet")["family"]) == set(chosen)


def test_ceilings_are_taken_from_recorded_campaigns_of_the_same_gpu_of_which_its_own_counts_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, gpu in (("a_run", "h200"), ("older", "h200"), ("other", "h100")):
        for file in (f"campaign/{gpu}.json", "tables/ceilings.parquet"):
            path = tmp_path / "home" / "results" / "recorded" / name / file
            path.parent.mkdir(parents=True)
            path.touch()
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "home" / "results" / "recorded" / "a_run"
    plan = SimpleNamespace(gpu="h200", project=tmp_path / "home", root=root)
    assert Files(plan).recorded_ceilings() == [
        path / "tables" / "ceilings.parquet" for path in (root.parent / "older", root)
    ]
