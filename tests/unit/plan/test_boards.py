"""Several boards: which are used, and how many jobs each of them gets."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from fake_driver import DESCRIBED
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.machine import device
from warplog.measure.family_board import note_of
from warplog.plan import boards
from warplog.plan.files import Files
from warplog.plan.judging import Judging
from warplog.plan.making import make_plan
from warplog.plan.parameters import Parameters
from warplog.records.campaign import Gpu
from warplog.records.config import Config
from warplog.records.stages import CHECK

TWO = [replace(DESCRIBED, uuid="GPU-aaaa"), replace(DESCRIBED, uuid="GPU-bbbb")]
OTHER = replace(DESCRIBED, uuid="GPU-cccc", slug="h100")
RECORDED = Path(__file__).parents[3] / "results" / "recorded" / Config().recorded


def uuids(gpus: list[Gpu]) -> list[str]:
    return [gpu.uuid for gpu in gpus]


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


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns an empty working folder on a machine with two boards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(device, "boards", lambda: TWO)
    return tmp_path


def test_one_board_is_used_by_default_and_shown_to_the_jobs(place: Path, project: Path) -> None:
    made = make_plan({}, project)
    assert made.boards.environment == {"CUDA_VISIBLE_DEVICES": "GPU-aaaa"}
    assert (made.boards.limits(), made.boards.slots(), Parameters(Files(made)).retries) == (
        {},
        {"measuring": 1},
        None,
    )
    assert made.boards.priority == 0
    assert Parameters(Files(made)).timing_threads(8) == 6


def test_each_board_has_room_for_three_jobs_and_a_familys_first_one_takes_as_much(
    place: Path, project: Path
) -> None:
    made = make_plan({"gpu": "all"}, project)
    assert made.boards.environment == {"CUDA_VISIBLE_DEVICES": "GPU-aaaa,GPU-bbbb"}
    assert made.boards.limits() == {"measuring": 6, "host_link": 1, "board0": 3, "board1": 3}
    assert "2 boards" in made.message
    assert (
        Parameters(Files(made)).timing_threads(8),
        Parameters(Files(made)).retries,
        made.boards.priority,
    ) == (2, 1, 1)

    def taken() -> dict[str, int]:
        names = SimpleNamespace(family="sgemm")
        return {name: share(names) for name, share in made.boards.slots().items()}

    free = {"measuring": 3, "host_link": 0, "board0": 0, "board1": 0}
    assert taken() == free
    note = note_of(Path("results"), "h200", "sgemm")
    write_text(note, "GPU-bbbb")
    assert taken() == free | {"measuring": 1, "board1": 1}
    write_text(note, "GPU-lost")
    assert taken() == free


def test_families_that_time_the_host_never_run_at_once(place: Path, project: Path) -> None:
    slots = make_plan({"gpu": "all"}, project).boards.slots()
    taken = {name: slots["host_link"](SimpleNamespace(family=name)) for name in ("transfer", "sgemm")}
    assert taken == {"transfer": 1, "sgemm": 0}


@pytest.mark.parametrize("gpu", ["all", "auto"])
def test_a_round_waits_for_the_one_before_it(place: Path, project: Path, gpu: str) -> None:
    made = make_plan({"gpu": gpu, "families": "sgemm,power,scan", "aa": {"rounds": 2}}, project)
    root = Path("results/aa")

    def before(family: str, number: int) -> list[str]:
        return Judging(Files(made)).before(SimpleNamespace(family=family, round=str(number)))

    def files(number: int, *families: str) -> list[str]:
        return [str(root / f"round{number}/time/h200/{family}.json") for family in families]

    first, second, third = made.chosen
    assert before(first, 1) == Files(made).record_files(CHECK)
    if gpu == "all":
        assert before(third, 1) == Files(made).record_files(CHECK), "the boards work at once"
        assert before(second, 2) == files(1, first, second, third)
    else:
        assert before(third, 1) == files(1, second)
        assert before(third, 2) == files(1, third), "even rounds take the families backwards"
        assert before(second, 2) == files(2, third)


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
    assert Parameters(Files(make_plan({"gpu": gpu, "mode": "live"}, project))).gres == expected
