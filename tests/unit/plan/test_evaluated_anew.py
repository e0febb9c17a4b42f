"""`warplog record NAME --from-records` makes tables anew and leaves the records of a campaign as they are."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from made_up_duels import DUEL
from small_campaign import FOLDER
from warplog.catalog.family import load_family
from warplog.cli.main import main
from warplog.core import store
from warplog.measure import provenance
from warplog.records import door, stages
from warplog.records.build import ChipBuild, ChipKernel, Chips
from warplog.records.campaign import Campaign
from warplog.records.requested.step_duels import StepDuel, StepDuels
from warplog.records.verification import manifest, recorded

ROOT = Path("results") / "recorded" / "small"
NOW = "f" * 40


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: Path) -> dict[str, bytes]:
    """The archives of a recorded campaign, in a project whose kernels may be changed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(provenance, "commit_of", lambda project: NOW)
    for family in ("include", "transpose"):
        shutil.copytree(project / "kernels" / family, tmp_path / "kernels" / family)
    about = door.read(FOLDER / "campaign" / "h200.json", Campaign)
    step = StepDuel(variant="padded", parent="smem_conflict", inputs_sha256="", duel=DUEL)
    duels = door.as_json(StepDuels(gpu="h200", family="transpose", duels=(step,))).encode()
    files = recorded.kept(FOLDER, ["figures/sgemm/ladder.png"])
    recorded.write(ROOT, {**files, "duels/h200/transpose/record.json": duels}, about)
    return archives()


def archives() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (ROOT / store.FOLDER).iterdir()}


def test_the_tables_follow_the_code_of_today_and_the_records_stay(
    kept: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    before = pd.read_parquet(FOLDER / "tables" / "measurements.parquet")
    Path("config").mkdir()
    Path("config/config.yaml").write_text("cases: ['8192']\n")
    family = Path("kernels/transpose/family.yaml")
    family.write_text(family.read_text().replace("title: ", "title: Another ", 1))
    source = Path("kernels/transpose/naive.cu")
    source.write_text(source.read_text() + "// edited since\n")
    assert main(["record", "small", "--from-records"]) == 0
    assert "MB; use it with" in capsys.readouterr().out
    assert archives() == kept
    assert manifest.problems(ROOT) == []
    assert (ROOT / "figures" / "sgemm" / "ladder.png").is_file()
    titles = pd.read_parquet(ROOT / "tables" / "variants.parquet")["title"]
    assert all(title.startswith("Another ") for title in titles)
    rows = pd.read_parquet(ROOT / "tables" / "measurements.parquet")
    assert set(rows["origin"]) == {"live"}, "the tables are those that the machine with the GPU would make"
    assert set(rows["case"]) == {"8192"}, "those of the configuration"
    was = before[(before["family"] == "transpose") & (before["case"] == "8192")]
    keys = ["variant", "case"]
    assert rows.set_index(keys)["median_us"].to_dict() == was.set_index(keys)["median_us"].to_dict()
    verdicts = pd.read_parquet(ROOT / "tables" / "verdicts.parquet")
    assert (set(verdicts["case"]), set(verdicts["origin"])) == ({"8192"}, {"live"})
    (duel,) = pd.read_parquet(ROOT / "tables" / "duels.parquet").itertuples()
    assert (duel.variant, duel.against, duel.word, duel.origin) == (
        "padded",
        "smem_conflict",
        "SLOWER",
        "live",
    )
    assert not rows["remarks"].str.contains("earlier_source").any()
    assert not Path("results", "build").exists(), "nothing is compiled"


def test_a_variant_that_is_newer_than_the_campaign_is_not_in_its_tables(kept: dict[str, bytes]) -> None:
    family = Path("kernels/transpose/family.yaml")
    text = family.read_text()
    entry = text[text.index("  - name: naive\n") : text.index("  - name: smem_conflict\n")]
    newer = entry.replace("name: naive\n", "name: newer\n    file: naive.cu\n")
    family.write_text(text.replace(entry, entry + newer))
    assert main(["record", "small", "--from-records"]) == 0
    for name in ("measurements", "variants", "verdicts"):
        variants = set(pd.read_parquet(ROOT / "tables" / f"{name}.parquet")["variant"])
        assert "naive" in variants
        assert "newer" not in variants


def test_the_campaign_names_the_commit_that_measured_and_the_one_that_evaluated(
    kept: dict[str, bytes],
) -> None:
    measured = door.read(ROOT / "campaign" / "h200.json", Campaign)
    assert main(["record", "small", "--from-records"]) == 0
    campaign = door.read(ROOT / "campaign" / "h200.json", Campaign)
    assert (campaign.commit, campaign.evaluated_commit) == (measured.commit, NOW)
    assert campaign.commits == f"{measured.commit[:12]}, evaluated at {NOW[:12]}"
    assert door.read(ROOT / "manifest.json", manifest.Manifest).commit == measured.commit


def test_a_campaign_that_was_changed_is_not_evaluated(
    kept: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    path = ROOT / store.FOLDER / "time.tar.xz"
    path.write_bytes(kept["check.tar.xz"])
    assert main(["record", "small", "--from-records"]) == 1
    assert f"{path.name}: was changed after it was written" in capsys.readouterr().err
    assert main(["record", "nowhere", "--from-records"]) == 1
    assert "nowhere: no such recorded campaign" in capsys.readouterr().err


def built_for_chips(source: str, arch: str = "sm_120") -> Path:
    """Writes a build of transpose's variant `naive` for an architecture; returns its file."""
    name = "transpose_naive(float const*, float*, int, int)"
    kernel = ChipKernel(kernel=name, registers_per_thread=30, static_shared_bytes=0, stack_bytes=0,
                        spill_store_bytes=0, spill_load_bytes=0)  # fmt: skip
    build = ChipBuild(status="ok", target=arch, source_sha256=source, inputs_sha256="", kernels=(kernel,))
    path = stages.FOR_CHIPS.at(Path("results"), arch=arch, family="transpose")
    door.write(path, Chips(arch=arch, family="transpose", nvcc="13.0.88", variants={"naive": build}))
    return path


def test_builds_for_other_chips_of_the_same_sources_become_part_of_it(
    kept: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", "small", "--from-records", "--chips"]) == 1
    assert "results/chips: holds no builds; run `" in capsys.readouterr().err
    path = built_for_chips("0" * 64)
    assert main(["record", "small", "--from-records", "--chips"]) == 1
    assert f"{path}: naive: was built from another source or parameters; run `" in capsys.readouterr().err
    assert archives() == kept
    source = load_family(Path("kernels/transpose/family.yaml")).variant("naive").fingerprint()
    built_for_chips(source)
    for again in (["--chips"], []):
        assert main(["record", "small", "--from-records", *again]) == 0
        rows = pd.read_parquet(ROOT / "tables" / "chips.parquet")
        assert rows[["variant", "arch", "status", "source_sha256"]].to_numpy().tolist() == [
            ["naive", "sm_120", "ok", source]
        ]
        assert archives().keys() - kept.keys() == {"chips.tar.xz"}
        assert manifest.problems(ROOT) == []
        shutil.rmtree("results/chips", ignore_errors=True)
    built_for_chips(source, "sm_80")
    assert main(["record", "small", "--from-records", "--chips"]) == 0
    assert set(pd.read_parquet(ROOT / "tables" / "chips.parquet")["arch"]) == {"sm_80", "sm_120"}
    assert main(["record", "small", "--chips"]) == 1
    assert "--chips: goes with --from-records" in capsys.readouterr().err
