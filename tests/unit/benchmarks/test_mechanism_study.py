"""The study of mechanisms: it fits to one half of the planted pairs, and judges by the other."""

import math
import sys

import pytest
import yaml
from benchmarks import mechanism_study

from made_up_work import gpu, work
from warplog.analysis.mechanisms import model
from warplog.analysis.mechanisms.campaign import Campaign
from warplog.analysis.mechanisms.model import Calibration
from warplog.analysis.verdicts import Noise, Timed
from warplog.core.errors import WarplogError

EMPTY = ("changes", "lines", "instructions", "accesses", "bubbles_pct", "compulsory_bytes")


@pytest.fixture(scope="module")
def planted():
    """Of lines_32, 16, 8 and 1, lines_16 is fitted; here all of them take exactly what L2 does."""
    sectors = {"lines_32": 32, "lines_16": 16, "lines_8": 8, "lines_1": 4}
    works = {
        name: work(loads=1e6, load_bytes=4.0, load_sectors=n * 1e6, l2_requests=1e8 * n, l2_bytes=1e10 * n)
        for name, n in sectors.items()
    }
    keys = {name: ("causes", name, "4Mi") for name in sectors}
    return Campaign(
        gpu=gpu(),
        launches={key: (works[name],) for name, key in keys.items()},
        times={key: Timed(2 + 2000.0 * sectors[name], Noise(0.001)) for name, key in keys.items()},
        parents={
            ("causes", "lines_16"): "lines_32",
            ("causes", "lines_8"): "lines_16",
            ("causes", "lines_1"): "lines_8",
        },
        **{name: {} for name in EMPTY},
    )


def test_the_fitted_half_of_the_planted_pairs_calibrates_and_the_other_half_judges(planted):
    calibration = mechanism_study.calibrated(planted)
    assert calibration.power in mechanism_study.POWERS
    assert calibration.error == pytest.approx(0, abs=1e-3)
    counts = list(mechanism_study.counts(mechanism_study.collected(planted, calibration), []))
    lines = list(mechanism_study.table_of_counts({"one": counts, "other": counts}))
    assert "| what is asked | asked | one | other |" in lines
    named = "| judged pairs: the planted mechanism is named first | 100 % | 2 of 2 (100 %) | 2 of 2 (100 %) |"
    assert named in lines
    assert "| judged pairs: gain within 25 % | 90 % | 2 of 2 (100 %) | 2 of 2 (100 %) |" in lines
    assert "| of these, fitted pairs: within 40 % |  | 1 of 1 (100 %) | 1 of 1 (100 %) |" in lines


def test_what_is_less_than_asked_is_bold():
    reached = [mechanism_study.Count("c", asked, [True, True, False]).reached() for asked in (None, 66, 67)]
    assert reached == ["2 of 3 (66.7 %)", "2 of 3 (66.7 %)", "**2 of 3 (66.7 %)**"]


def test_pairs_stand_beside_what_each_gpu_shows_of_them(planted):
    found = mechanism_study.collected(planted, Calibration(4.0, 0.1))
    lines = list(mechanism_study.table_of_pairs({"one": found, "other": found[:1]}))
    saved = "32000.0 (32000.0) | `coalescing`"
    assert f"| `lines_32`, `lines_16` | `coalescing` | fitted | {saved} | {saved} |" in lines


@pytest.fixture
def study(planted, tmp_path, monkeypatch, capsys):
    """Runs the study with a calibration of its own, and returns its first line and the calibration then."""
    monkeypatch.setattr(model, "CALIBRATION", tmp_path / "calibration.yaml")
    monkeypatch.setattr(mechanism_study, "read", lambda *_: planted)
    rows = [{"campaign": name, "gpu_name": "one"} for name in ("b", "a", "b")]
    monkeypatch.setattr(mechanism_study, "_rows", lambda *_: rows)
    monkeypatch.setattr(mechanism_study, "calibrated", lambda _: Calibration(5.0, 0.125))
    monkeypatch.setattr(mechanism_study, "collected", lambda *_: [])
    model.CALIBRATION.write_text("power: 3.0\nerror: 0.25\n")

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["mechanism_study.py", "tables", *options])
        mechanism_study.main()
        return capsys.readouterr().out.splitlines()[0], model.calibration()

    return run


def test_the_committed_calibration_is_judged_unless_others_are_given(study):
    committed = Calibration(3.0, 0.25)
    assert study() == ("p = 3, error 0.25", committed)
    assert study("--error", "0.5") == ("p = 3, error 0.50", committed)


def test_fitted_values_are_judged_and_written_with_their_campaigns(study):
    assert study("--write") == ("p = 5, error 0.12", Calibration(5.0, 0.125, ("a", "b")))


@pytest.mark.parametrize(("value", "refused"), [(0.0, WarplogError), (math.inf, yaml.YAMLError)])
def test_an_error_that_the_model_cannot_read_is_not_written(value, refused, tmp_path):
    path = tmp_path / "calibration.yaml"
    with pytest.raises(refused):
        mechanism_study.write_calibration(Calibration(4.0, value), path)
    assert not path.exists()
