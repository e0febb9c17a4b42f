"""Several boards: which are used, which family is measured on which, and how many jobs each board gets."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import shipped_families
from fake_driver import DESCRIBED
from warplog.core import locks
from warplog.core.defaults import DEFAULTS
from warplog.core.errors import WarplogError
from warplog.machine import device
from warplog.machine.device import Gpu
from warplog.plan import boards
from warplog.plan.judging import Judging
from warplog.plan.plan import make_plan

TWO = [replace(DESCRIBED, uuid="GPU-aaaa"), replace(DESCRIBED, uuid="GPU-bbbb")]
OTHER = replace(DESCRIBED, uuid="GPU-cccc", slug="h100")
RECORDED = Path(__file__).parents[3] / "results" / "recorded" / DEFAULTS["recorded"]


def uuids(found: list[Gpu]) -> list[str]:
    return [gpu.uuid for gpu in found]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("auto", ["GPU-aaaa"]),
        ("all", ["GPU-aaaa", "GPU-bbbb"]),
        ("h100", ["GPU-cccc"]),
        ("1", ["GPU-bbbb"]),
        ("1,0,1", ["GPU-bbbb", "GPU-aaaa"]),
        ([0, "GPU-bbbb"], ["GPU-aaaa", "GPU-bbbb"]),
        ("GPU-cc", ["GPU-cccc"]),
    ],
)
def test_boards_are_named_by_model_index_or_uuid(setting: str | list[str], expected: list[str]) -> None:
    assert uuids(boards.choose(setting, [*TWO, OTHER])) == expected


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("3", "'3' is none of this machine's boards (0: h200 GPU-aaaa"),
        ("GPU-", "'GPU-' is none of this machine's boards"),
        ("0,2", "boards of several models (h100, h200)"),
    ],
)
def test_unknown_boards_and_several_models_are_refused(setting: str, words: str) -> None:
    with pytest.raises(WarplogError) as error:
        boards.choose(setting, [*TWO, OTHER])
    assert words in str(error.value)


def test_the_longest_family_comes_first_and_the_boards_share_the_rest() -> None:
    found = boards.spread({"a": 10.0, "b": 30.0, "c": 12.0, "d": 9.0}, ["x", "y"])
    assert found == {"b": "x", "c": "y", "a": "y", "d": "y"}


def test_a_family_stays_on_the_board_of_its_times_unless_the_other_would_be_idle() -> None:
    seconds = {"a": 10.0, "b": 11.0, "c": 12.0, "d": 9.0}
    assert boards.spread(seconds, ["x", "y"], {"a": "x", "c": "y"})["c"] == "y"
    moved = boards.spread(seconds, ["x", "y"], dict.fromkeys(seconds, "x"))
    assert sorted(moved.values()) == ["x", "x", "y", "y"]
    assert boards.spread({"a": 1.0}, ["x"], {"a": "lost"}) == {"a": "x"}


def test_times_of_a_recorded_campaign_tell_how_long_a_family_takes() -> None:
    chosen = {name: shipped_families.FAMILIES[name].variants for name in ("bf16_gemm", "vector_add")}
    seconds = boards.expected_seconds(chosen, [RECORDED])
    assert seconds["bf16_gemm"] > 5 * seconds["vector_add"] > 5
    few = boards.expected_seconds({"bf16_gemm": chosen["bf16_gemm"][:1]}, [RECORDED])
    assert few["bf16_gemm"] == pytest.approx(seconds["bf16_gemm"] / len(chosen["bf16_gemm"]))


def test_a_family_that_nobody_measured_counts_as_average_variants(tmp_path: Path) -> None:
    sgemm = shipped_families.FAMILIES["sgemm"].variants
    both = boards.expected_seconds({"sgemm": sgemm[:1], "new": sgemm[:3]}, [tmp_path, RECORDED])
    assert both["new"] == pytest.approx(3 * both["sgemm"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns an empty working folder on a machine with two free boards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(device, "boards", lambda: TWO)
    monkeypatch.setattr(locks, "is_held", lambda _: False)
    return tmp_path


def test_one_board_is_used_by_default_and_shown_to_the_jobs(place: Path, project: Path) -> None:
    made = make_plan({}, project)
    assert made.boards.environment == {"CUDA_VISIBLE_DEVICES": "GPU-aaaa"}
    assert (made.boards.limits(), made.boards.slots(), made.retries) == ({}, {}, None)
    assert made.timing_threads(8) == 6


def test_every_family_takes_a_slot_of_one_board(place: Path, project: Path) -> None:
    made = make_plan({"gpu": "all"}, project)
    assert made.boards.environment == {"CUDA_VISIBLE_DEVICES": "GPU-aaaa,GPU-bbbb"}
    assert made.boards.limits() == {"measuring": 6, "host_link": 1, "board0": 3, "board1": 3}
    slots = made.boards.slots()
    used = set()
    for family in [*made.chosen, "oracle"]:
        names = SimpleNamespace(family=family)
        taken = [slots["board0"](names), slots["board1"](names)]
        assert sorted(taken) == [0, 1], family
        assert made.boards.board(names) == TWO[taken.index(1)].uuid
        used.add(taken.index(1))
    assert used == {0, 1}
    assert "2 boards" in made.message
    assert (made.timing_threads(8), made.retries) == (2, 1)


def test_families_that_time_the_host_never_run_at_once(place: Path, project: Path) -> None:
    slots = make_plan({"gpu": "all"}, project).boards.slots()
    taken = {name: slots["host_link"](SimpleNamespace(family=name)) for name in ("transfer", "sgemm")}
    assert taken == {"transfer": 1, "sgemm": 0}


def test_a_round_waits_only_for_records_of_its_own_board(place: Path, project: Path) -> None:
    made = make_plan({"gpu": "all", "families": "sgemm,power,scan", "aa": {"rounds": 2}}, project)
    board = made.boards.of_family
    first, waited = set(), set()
    for family in made.chosen:
        for number in (1, 2):
            before = Judging(made).before(SimpleNamespace(family=family, round=str(number)))
            if before == made.files("check"):
                first.add(board[family])
            else:
                (record,) = before
                assert board[Path(record).stem] == board[family], (family, number)
                waited.add(record)
    assert len(first) == 2, "both boards begin at once"
    assert len(waited) == 4, "a board measures one family after the other"


def test_a_busy_board_is_left_out_and_named(
    place: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "is_held", lambda uuid: uuid == "GPU-aaaa")
    made = make_plan({"gpu": "all"}, project)
    assert made.boards.uuids == ("GPU-bbbb",)
    assert "GPU-aaaa is busy" in made.message
    monkeypatch.setattr(locks, "is_held", lambda _: True)
    with pytest.raises(WarplogError, match="all 2 boards are busy"):
        make_plan({"gpu": "0,1"}, project)


def test_all_boards_of_a_machine_without_any_are_the_recorded_campaign(
    place: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "boards", list)
    assert not make_plan({"gpu": "all"}, project).live
    with pytest.raises(WarplogError, match="this machine has no GPU; name a model"):
        make_plan({"gpu": "all", "mode": "live"}, project)


@pytest.mark.parametrize(
    ("gpu", "expected"), [("h200", "h200"), ("h100-80gb-hbm3", "h100"), ("rtx-4090", None)]
)
def test_a_job_requests_the_schedulers_type_of_gpu(
    place: Path, project: Path, monkeypatch: pytest.MonkeyPatch, gpu: str, expected: str | None
) -> None:
    monkeypatch.setattr(device, "boards", list)
    assert make_plan({"gpu": gpu, "mode": "live"}, project).gres == expected
