"""What is concluded is written from all tables that it is based on."""

import shutil
from pathlib import Path

import pandas as pd

from shipped_families import FAMILIES
from warplog.core.columns import INSTRUCTIONS
from warplog.plan import evaluate
from warplog.tables.files import write_table


def test_the_machine_code_of_a_step_is_compared_from_the_table_of_instructions(
    tmp_path: Path, project: Path
) -> None:
    folder = tmp_path / "tables"
    shutil.copytree(project / "results" / "recorded" / "h200" / "tables", folder)
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
    evaluate.write_analysis({"transpose": FAMILIES["transpose"].variants}, folder)
    quantities = pd.read_parquet(folder / "sass_steps.parquet").set_index(["variant", "quantity", "per"])
    widths = quantities.loc[("smem_conflict", "ldg_128", "iteration")]
    assert (widths["before"], widths["after"]) == (0, 1)
