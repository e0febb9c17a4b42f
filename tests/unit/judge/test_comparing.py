"""Compare campaigns from folders, from the tracking store and with parents; verdicts as text and as figures."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from msgspec import structs

import shipped_families
from made_up_campaigns import RECORDED, dated, make
from warplog.core.errors import WarplogError
from warplog.judge import aa, comparison, history
from warplog.judge import comparison as comparison_text
from warplog.judge.campaigns import Sources, parent_of, parents
from warplog.judge.figures import comparison_plot, history_plot
from warplog.judge.samples import load
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.extract import Extract
from warplog.records.family_file import FamilyRecord
from warplog.records.stages import folder_of
from warplog.records.time import Time, TimeCase
from warplog.track import log
from warplog.track.artefacts import VariantFiles

FAMILY = shipped_families.FAMILIES["sgemm"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Made-up campaigns: a base with three rounds, one with warptile 2 % slower, two later ones."""
    place = tmp_path_factory.mktemp("campaigns")
    make(place / "base", 1, about=dated(1))
    for number in (1, 2, 3):
        make(place / "base" / "aa" / f"round{number}", 10 + number)
    make(place / "slow", 2, {"warptile": 1.02, "vectorized": 1.002}, dated(2))
    make(place / "later", 3, {"warptile": 1.02, "naive": 0.8}, dated(3))
    make(place / "driver", 4, {"warptile": 1.1, "naive": 0.8}, dated(4), driver="590.1")
    return place


@pytest.fixture(scope="module")
def compared(place):
    return comparison.run([str(place / "base"), str(place / "slow")], Sources(place))


def test_the_rounds_beside_a_campaign_give_the_floor(compared):
    assert compared.floors.processes == 4
    slower = {row.case for row in compared.rows if row.variant == "warptile" and row.word == "SLOWER"}
    assert slower >= {"1024", "2048", "4096", "8192"}
    assert {row.variant for row in compared.alarms} == {"warptile"}
    assert compared.status == 1
    floors = [row.verdict.floor for row in compared.rows]
    assert 0.005 < sorted(floors)[len(floors) // 2] < 0.02


def test_the_projects_own_rounds_serve_campaigns_without_any(place, tmp_path):
    names = [str(place / "slow"), str(place / "later")]
    assert comparison.run(names, Sources(tmp_path)).floors is None
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "aa").symlink_to(place / "base" / "aa")
    assert comparison.run(names, Sources(tmp_path)).floors.processes == 3


@pytest.mark.usefixtures("mlflow_tables")
def test_what_is_tracked_can_be_compared(tmp_path):
    """The store holds the records, so a campaign in it can be compared without any other file."""
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    campaign = door.read(RECORDED / "campaign" / "h200.json", Campaign)
    stages = {
        f"{folder_of(kind)}.json": FamilyRecord.read(
            RECORDED / folder_of(kind) / "h200" / "sgemm.json", kind
        ).variants
        for kind in (Time, Extract)
    }
    variants = ("warptile", "cublas", "vectorized")
    files = {
        v: VariantFiles(records={name: records[v] for name, records in stages.items()}) for v in variants
    }
    logged = log.log_campaign(RECORDED / "tables", campaign, {"sgemm": lambda: files}, uri)
    sources = Sources(tmp_path, uri)
    stored, recorded = sources.load(f"mlflow:{campaign.campaign}"), load(RECORDED)
    assert {key[1] for key in stored.cases} == set(variants)
    assert all(stored.cases[key] == recorded.cases[key] for key in stored.cases)
    single_run = sources.load(f"mlflow:{logged.experiments[0].runs['warptile']}")
    assert {key[1] for key in single_run.cases} == {"warptile"}
    for wrong, word in (("mlflow:gone", "no such campaign"), ("mlflow:x' or 1=1", "neither")):
        with pytest.raises(WarplogError, match=word):
            sources.load(wrong)


def test_every_variant_can_be_compared_with_its_parent(place):
    above = parent_of({"sgemm": FAMILY})
    assert above["sgemm", "gmem_coalesced"] == "naive"
    compared = comparison.run(["parents", str(place / "base")], Sources(place), above=above)
    row = next(row for row in compared.rows if (row.variant, row.case) == ("gmem_coalesced", "4096"))
    assert (row.word, row.verdict.ratio < 0.1) == ("FASTER", True)
    assert "naive" not in {row.variant for row in compared.rows}
    own = comparison.run([str(place / "base")] * 2, Sources(place)).floors
    assert compared.floors == own, "a parent of three children is one variant, not three that are alike"


def test_parents_take_their_rounds_with_them(place):
    shifted = parents(load(place / "base"), {("sgemm", "warptile"): "vectorized"})
    assert len(shifted.rounds) == 3
    assert {key[1] for part in (shifted, *shifted.rounds) for key in part.cases} == {"warptile"}


def test_csv_json_and_markdown_say_the_same(compared):
    rows = list(csv.DictReader(io.StringIO(comparison_text.as_csv(compared))))
    printed = json.loads(comparison_text.as_json(compared))
    assert [row["verdict"] for row in rows] == [row["word"] for row in printed["rows"]]
    assert float(rows[0]["ratio"]) == printed["rows"][0]["verdict"]["ratio"]
    assert float(rows[0]["floor"]) == printed["rows"][0]["verdict"]["floor"]
    page = comparison_text.as_markdown(compared)
    slower = sum(row["verdict"] == "SLOWER" for row in rows)
    assert len(re.findall(r"\| SLOWER +\|", page)) == slower >= 5
    assert not re.search(r"\| SAME +\|", page)
    assert f"{len(compared.alarms)} certain to be SLOWER" in page


def test_the_terminal_shows_what_differs_and_all_cases_on_demand(compared):
    def shown(*everything):
        out = io.StringIO()
        comparison_text.show(compared, out, *everything)
        words = "SAME|SLOWER|FASTER|AMBIGUOUS|REFUSED"
        return re.findall(rf"^ \w+ .*? (?:rest|sustained) +({words}) ", out.getvalue(), re.MULTILINE)

    differing = [row.word for row in compared.rows if row.word != "SAME" or row.counters not in ("", "SAME")]
    assert 0 < len(differing) < len(compared.rows)
    assert shown() == differing
    assert shown(True) == [row.word for row in compared.rows]


def test_what_one_side_lacks_is_a_line_for_people_and_every_case_for_programs(compared):
    judged = replace(compared.rows[0], family="known")
    lacks = replace(judged, word="REFUSED", reason="not measured in A", remarks=(), verdict=None, changes=())
    cases = [("sgemm", v, c) for v in ("naive", "warptile") for c in ("1024", "2048")]
    rows = [
        replace(lacks, family=f, variant=v, case=c)
        for f, v, c in [*cases, ("scan", "cub", "1"), ("scan", "cub", "2")]
    ]
    other = replace(lacks, family="scan", variant="mine", case="1", reason="A: wrong")
    lines = comparison_text.folded((judged, *rows, other))
    assert [(r.family, r.variant, r.case) for r in lines] == [
        ("known", judged.variant, judged.case),
        ("sgemm", "2 variants", "4 cases"),
        ("scan", "cub", "2 cases"),
        ("scan", "mine", "1"),
    ]
    assert comparison_text.folded(compared.rows) == list(compared.rows)
    all_of_it = replace(compared, rows=(judged, *rows, other))
    assert comparison_text.as_csv(all_of_it).count("REFUSED") == 7
    assert len(re.findall(r"\| REFUSED +\|", comparison_text.as_markdown(all_of_it))) == 3


def test_words_from_outside_cannot_break_the_table(compared):
    row = replace(compared.rows[0], word="REFUSED", reason="a | b\n<script>", verdict=None)
    page = comparison_text.as_markdown(replace(compared, rows=(row,)))
    assert "a \\| b &lt;script>" in page
    row = replace(next(row for row in compared.rows if row.word == "SLOWER"), case="4096\x1b[2J")
    assert (
        json.loads(comparison_text.as_json(replace(compared, rows=(row,))))["claims"][0].count("4096 [2J")
        == 1
    )


def test_the_picture_shows_every_case_or_the_ones_that_changed(compared):
    figure = comparison_plot.draw(compared)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert len(labels) == len(compared.rows)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("SLOWER") == sum(row.word == "SLOWER" for row in compared.rows)
    assert "NVIDIA H200" in figure.get_supxlabel()
    many = comparison_plot.shown(compared.rows * 3)
    assert {row.word for row in many} == {row.word for row in compared.rows} - {"SAME"}
    nothing = replace(
        compared, rows=(replace(compared.rows[0], word="REFUSED", verdict=None, reason="driver"),)
    )
    assert any("driver" in text.get_text() for text in comparison_plot.draw(nothing).axes[0].texts)


def test_rounds_against_each_other_give_table_and_floor(place, tmp_path):
    check = aa.judge_rounds(place / "base", "h200")
    assert len(check.measured) == 3
    for origin in (aa.OWN, aa.OTHERS):
        assert sum(check.counts(origin, "rest").values()) == 3 * 54
        assert check.false_share(origin, "rest") <= 0.01
    paths = [tmp_path / name for name in ("verdicts.csv", "floors.csv", "summary.md")]
    aa.write(check, *paths)
    verdicts, floors = (list(csv.DictReader(path.open())) for path in paths[:2])
    assert len(verdicts) == 3 * 54
    assert len(floors) == 54
    for row in floors:
        median, worst, floor, with_rounds = (
            float(row[name]) for name in ("median_gap", "worst_gap", "floor", "floor_with_rounds")
        )
        assert 0 <= median <= worst
        assert floor >= with_rounds >= 0.005
    assert "floor to use:" in paths[2].read_text()
    with pytest.raises(WarplogError, match="snakemake aa"):
        aa.judge_rounds(place / "slow", "h200")


def test_history_marks_the_steps_and_not_the_drift(place):
    folders = [place / name for name in ("later", "driver", "base", "slow")]
    data = history.collect_all(folders, [FAMILY], "h200")[FAMILY.name]
    assert list(data["campaign"].unique()) == [f"made-up-{day}" for day in (1, 2, 3, 4)]
    steps = data.pivot(index="variant", columns="place", values="step")
    assert list(steps.loc["warptile"]) == ["", "SLOWER", "", "REFUSED"]
    assert list(steps.loc["naive"]) == ["", "", "FASTER", "REFUSED"]
    assert list(steps.loc["vectorized"]) == ["", "", "", "REFUSED"]
    assert data.loc[(data["variant"] == "warptile") & (data["place"] == 1), "change"].item() == pytest.approx(
        0.02, abs=0.008
    )
    figure = history_plot.draw(data, FAMILY)
    assert len([axes for axes in figure.axes if axes.get_visible()]) == data["variant"].nunique()


def test_the_history_of_several_families_reads_each_campaign_once(place, monkeypatch):
    folders = [place / name for name in ("later", "driver", "base", "slow")]
    whole = history.collect_all(folders, [FAMILY], "h200")[FAMILY.name]
    read = []
    monkeypatch.setattr(history, "load", lambda folder, gpu: (read.append(folder.name), load(folder, gpu))[1])
    other = structs.replace(FAMILY, name="mgemm")
    by_family = history.collect_all(folders, [FAMILY, other], "h200")
    assert sorted(read) == ["base", "driver", "later", "slow"]
    assert by_family["sgemm"].equals(whole)
    assert by_family["mgemm"].empty


def test_history_says_where_there_is_nothing(tmp_path):
    data = history.collect_all([tmp_path], [FAMILY], "h200")[FAMILY.name]
    assert data.empty
    assert any("no campaign" in text.get_text() for text in history_plot.draw(data, FAMILY).texts)


def test_history_keeps_a_gap_where_a_campaign_failed(place, tmp_path):
    make(tmp_path / "failed", 5, about=dated(5))
    path = tmp_path / "failed" / "time" / "h200" / "sgemm.json"
    records = FamilyRecord.read(path, Time)
    record = records.variants["warptile"]
    crashed = {"status": "crashed", "reason": "illegal address"}
    cases = tuple(TimeCase(case=case.case, **crashed) for case in record.cases)
    records.put(structs.replace(record, cases=cases, **crashed))
    records.write()
    make(tmp_path / "mended", 6, about=dated(6))
    data = history.collect_all([place / "base", tmp_path / "failed", tmp_path / "mended"], [FAMILY], "h200")[
        FAMILY.name
    ]
    own = data[data["variant"] == "warptile"]
    assert list(own["status"]) == ["ok", "crashed", "ok"]
    assert list(own["against"])[2] == "made-up-1"
    panel = next(a for a in history_plot.draw(data, FAMILY).axes if "warptile" in a.get_title(loc="left"))
    assert "crashed" in [text.get_text() for text in panel.texts]
