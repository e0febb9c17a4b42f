"""A small search on the GPU: correct settings get times, wrong ones none, and duels of the best ones decide."""

import shutil
from pathlib import Path

import pytest
import yaml
from gpu_jobs import build_timer, gpu_job, this_gpu

from warplog.catalog.family import load_family
from warplog.duel import match
from warplog.machine import toolchain
from warplog.measure.tuning import finalists
from warplog.measure.tuning import record as tuning_record
from warplog.measure.tuning import search as tuning
from warplog.records.config import TimeSettings, TuneSettings

PROJECT = Path(__file__).parents[2]

pytestmark = pytest.mark.gpu


def test_search_times_correct_settings_rejects_wrong_ones_and_writes_the_winner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # duels keep their timing core there
    folder = tmp_path / "kernels" / "sgemm"
    for name in ("sgemm", "include"):
        shutil.copytree(PROJECT / "kernels" / name, tmp_path / "kernels" / name)
    text = (folder / "family.yaml").read_text()
    for name in ("BM", "BN"):
        text = text.replace(f"        {name}: [32, 64, 128, 256]", f"        {name}: [64, 128]", 1)
    text = text.replace("        BK: [8, 16, 32, 64]", "        BK: [16, 32]", 1)
    for name in ("TM", "TN"):
        text = text.replace(f"        {name}: [2, 4, 8, 16]", f"        {name}: [4, 8]", 1)
    (folder / "family.yaml").write_text(text)
    source = folder / "autotuned.cu"
    good = "result.lane[lane] = alpha * sum"
    assert good in source.read_text()
    source.write_text(source.read_text().replace(good, "result.lane[lane] = (BK == 32 ? 1.1f : alpha) * sum"))
    build_timer(tmp_path)
    policy = TuneSettings(minutes=5.0, timeout_s=60.0)
    family, record = load_family(folder / "family.yaml"), tmp_path / "autotuned.json"
    job, gpu = gpu_job(family, "autotuned", tmp_path / "settings", record, policy), this_gpu()
    tools = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    search = tuning.make_search(job, "c", gpu.arch, tools, tmp_path / "timer.so", TimeSettings(), 4)
    search.run()
    record = tuning_record.write(search, finalists.decide(search, match.of_jobs))
    assert search.complete
    for entry in record.settings:
        assert entry.status == ("wrong" if entry.parameters["BK"] == 32 else "ok"), entry
    winner = yaml.safe_load((folder / "tuned" / gpu.slug / "autotuned.yaml").read_text())
    scores = {e.setting: e.score_us for e in record.settings if e.cases and e.cases[0].final_us}
    assert record.picked == min(scores, key=scores.get) == record.finalists[0]
    assert winner["score_us"] == scores[record.ranking[0]]
    beaten = {duel.leader for duel in record.duels if duel.word == "FASTER"}
    assert record.no_duel in ("", "one_finalist"), record.duels[-1].reason
    assert record.ranking[0] in set(record.finalists) - beaten
