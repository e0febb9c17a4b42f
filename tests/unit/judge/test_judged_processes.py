"""Campaigns whose cases were measured in several processes, from records to verdicts, tables and figures."""

import csv
import json
import math
from dataclasses import replace
from statistics import median

import pandas as pd
import pytest

from made_up_campaigns import BRAKED, SUSTAINED, dated, make
from warplog.analysis import verdicts
from warplog.catalog import family
from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.judge import aa, comparison, floors, history
from warplog.judge.campaigns import Sources
from warplog.judge.figures import comparison_plot, history_plot
from warplog.judge.samples import load
from warplog.records.stages import TIME
from warplog.tables.view import with_floors

KEY = ("sgemm", "warptile", "4096")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Made-up campaigns of three processes: a base with two rounds, and two with warptile 2 % slower, on two boards."""
    place = tmp_path_factory.mktemp("campaigns")
    make(place / "base", 1, about=dated(1), processes=3)
    for number in (1, 2):
        make(place / "base" / "aa" / f"round{number}", 10 + number, processes=3)
    make(place / "slow", 2, {"warptile": 1.02}, dated(2), processes=3)
    make(place / "moved", 2, {"warptile": 1.02}, dated(2), processes=3, board="GPU-other")
    make(place / "single", 3, about=dated(3))
    return place


@pytest.fixture
def compared(place):
    return comparison.run([str(place / "base"), str(place / "slow")], Sources(place))


def record(folder):
    return json.loads((folder / "time" / "h200" / "sgemm.json").read_text())["variants"]["warptile"]


def test_samples_are_those_of_each_process_in_order(place):
    measured = load(place / "base").cases[KEY]
    case = next(case for case in record(place / "base")["cases"] if case["case"] == "4096")
    assert len(measured.processes) == 3
    assert list(measured.numbers()) == pytest.approx([process["median_us"] for process in case["processes"]])
    assert [us for process in measured.processes for us in process.times_us] == case["cold"]["samples_us"]
    assert set(measured.processes[0].sm_mhz) == {1980.0}
    assert measured.numbers("sustained") == tuple(
        process["sustained"]["mean_us"] for process in case["processes"]
    )


def change(place, tmp_path, edit):
    """Copies the base to a folder with another record of warptile."""
    together = json.loads((place / "base" / "time" / "h200" / "sgemm.json").read_text())
    edit(next(case for case in together["variants"]["warptile"]["cases"] if case["case"] == "4096"))
    target = TIME.at(tmp_path, gpu="h200", family="sgemm")
    target.parent.mkdir(parents=True)
    target.write_text(json.dumps(together))


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda case: case["processes"].pop(), "its processes have .* samples, the case has"),
        (
            lambda case: case["cold"].update(samples_us=[-0.1] * len(case["cold"]["samples_us"])),
            "medians of its processes are not all positive",
        ),
        (
            lambda case: case["processes"][0]["sustained"].update(mean_us=0),
            "sustained times are not all positive",
        ),
    ],
)
def test_processes_that_do_not_fit_the_samples_are_an_error(place, tmp_path, edit, why):
    change(place, tmp_path, edit)
    with pytest.raises(WarplogError, match=f"warptile: case 4096: .*{why}"):
        load(tmp_path)


def test_a_sample_as_short_as_the_empty_interval_is_one_like_the_others(place, tmp_path):
    change(place, tmp_path, lambda case: case["cold"]["samples_us"].__setitem__(0, -0.1))
    assert load(tmp_path).cases[KEY].processes[0].times_us[0] == -0.1


def test_a_process_without_samples_or_sustained_time_is_left_out(place, tmp_path):
    def edit(case):
        del case["processes"][0]["sustained"]
        empty = {**case["processes"][0], "process": 4, "samples": 0, "set_mhz": None}
        case["processes"].append(empty)

    change(place, tmp_path, edit)
    measured = load(tmp_path).cases[KEY]
    assert (len(measured.processes), len(measured.sustained_us)) == (3, 2)


@pytest.mark.parametrize(("set_mhz", "remark"), [(None, "sw_power_cap"), (1980.0, "")])
def test_a_limit_that_the_driver_reported_is_a_remark_unless_the_set_clock_is_known(
    place, tmp_path, set_mhz, remark
):
    def edit(case):
        case["board"]["throttle_reasons"] = ["sw_power_cap"]
        for process in case["processes"]:
            process["set_mhz"] = set_mhz

    change(place, tmp_path, edit)
    assert load(tmp_path).cases[KEY].remarks["throttle"] == remark


def test_verdicts_name_their_regime_in_every_form(compared):
    sustained = [row for row in compared.rows if row.regime == "sustained"]
    assert {row.case for row in sustained} == set(BRAKED)
    slower = {(row.case, row.regime) for row in compared.rows if row.word == "SLOWER"}
    assert slower >= {("4096", "rest"), ("8192", "rest"), ("4096", "sustained"), ("8192", "sustained")}
    assert compared.status == 1
    rows = list(csv.DictReader(comparison.as_csv(compared).splitlines()))
    assert [row["regime"] for row in rows] == [row.regime for row in compared.rows]
    assert [row["regime"] for row in json.loads(comparison.as_json(compared))["rows"]] == [
        r["regime"] for r in rows
    ]
    assert "warptile  4096 sustained  +" in comparison.as_json(compared)
    assert "| sustained |" in comparison.as_markdown(compared)
    only = replace(compared, rows=tuple(row for row in compared.rows if row.variant == "warptile"))
    labels = [text.get_text() for text in comparison_plot.draw(only).axes[0].get_yticklabels()]
    assert [label.split()[0] for label in labels if "(sustained)" in label] == list(BRAKED)


def test_another_board_is_said_once_and_confirms_no_regression(place, compared):
    moved = comparison.run([str(place / "base"), str(place / "moved")], Sources(place))
    assert [row.word for row in moved.rows] == [row.word for row in compared.rows]
    assert (compared.status, bool(compared.alarms), compared.remarks) == (1, True, ())
    assert (moved.status, moved.alarms) == (0, [])
    assert "different boards of the same model; boards differ" in moved.remarks[0]
    assert comparison.as_markdown(moved).count("different boards") == 1
    assert not [row for row in moved.rows if any("board" in remark for remark in row.remarks)]


def test_campaigns_of_one_and_of_three_processes_can_be_compared(place):
    compared = comparison.run([str(place / "single"), str(place / "base")], Sources(place))
    words = {row.word for row in compared.rows if row.regime == "rest"}
    assert words <= {"SAME", "AMBIGUOUS"}
    assert {row.reason for row in compared.rows if row.regime == "sustained"} == {"not measured in A"}


def test_rows_of_the_tables_are_tied_as_compare_judges_them(place):
    campaigns = [replace(load(place / "base"), rounds=()), load(place / "slow")]
    sides = []
    for measured_campaign in campaigns:
        rows = [r | {"gpu": "h200"} for r in floors.table_rows(measured_campaign)]
        times = [
            {"family": f, "variant": v, "case": c, "gpu": "h200", "median_us": median(measured.numbers())}
            for (f, v, c), measured in measured_campaign.cases.items()
            if measured.numbers()
        ]
        table = with_floors(pd.DataFrame(times), pd.DataFrame(rows))
        sides.append({(r["family"], r["variant"], r["case"]): r for r in table.to_dict("records")})
    judged = comparison.compare(*map(floors.with_times, campaigns))
    rest = [row for row in judged.rows if row.regime == "rest" and row.verdict]
    tied = [verdicts.tied(*(side[row.family, row.variant, row.case] for side in sides)) for row in rest]
    assert tied == [row.word in ("SAME", "AMBIGUOUS") for row in rest]
    assert 0 < sum(tied) < len(tied)


def test_rounds_list_false_verdicts_and_floors_by_regime(place, tmp_path):
    check = aa.judge_rounds(place / "base", "h200")
    for regime in ("rest", "sustained"):
        assert check.false_share(aa.OWN, regime) <= 0.01
        assert f"false FASTER or SLOWER, {regime}: " in check.summary()
    *_, rest, sustained = check.summary().splitlines()
    assert rest.startswith("floor to use: rest ")
    assert sustained.startswith("floor to use: sustained ")
    rows = check.floor_rows()
    floor = max(row.floor for row in rows if row.regime == "rest" and row.median_us > 10)
    assert f"no floor above {100 * floor:.2f} % for kernels over 10 us" in rest
    assert sum(check.counts(aa.OWN, "sustained").values()) == len(check.compared[aa.OWN]) * sum(
        row.regime == "sustained" for row in rows
    )
    aa.write(check, *(tmp_path / name for name in ("verdicts.csv", "floors.csv", "summary.md")))
    table = pd.read_csv(tmp_path / "floors.csv")
    of_braked = table[(table["variant"] == "warptile") & (table["case"] == 4096)].set_index("regime")[
        "median_us"
    ]
    assert of_braked["sustained"] / of_braked["rest"] == pytest.approx(SUSTAINED, rel=0.01)
    assert table["processes"].eq(3).all()
    assert (table["floor_with_rounds"] <= table["floor"]).all()


def test_history_shows_the_spread_between_processes(place):
    of_sgemm = family.load_family(paths.project() / "kernels" / "sgemm" / "family.yaml")
    data = history.collect_all([place / name for name in ("base", "slow", "single")], [of_sgemm], "h200")[
        of_sgemm.name
    ]
    own = data[data["variant"] == "warptile"]
    measured = load(place / "base").cases[KEY]
    first, _, single = own.to_dict("records")
    assert (first["processes"], single["processes"]) == (3, 1)
    assert first["median_us"] == pytest.approx(median(measured.numbers()))
    assert first["process_min_us"] == min(measured.numbers())
    assert first["process_max_us"] == max(measured.numbers())
    assert list(own["step"])[1] == "SLOWER"
    panel = next(a for a in history_plot.draw(data, of_sgemm).axes if "warptile" in a.get_title(loc="left"))
    ends = [segment[:, 1] for segment in panel.collections[0].get_segments()]
    assert list(ends[0]) == [first["process_min_us"], first["process_max_us"]]
    assert list(ends[2]) == [single["q1_us"], single["q3_us"]]
    assert not math.isclose(single["q1_us"], single["q3_us"])
