"""Which setting wins if the times of a search do not tell the best ones apart: duels with made-up ratios decide."""

from collections.abc import Callable, Mapping
from pathlib import Path

import host_tuning
import pytest
import yaml

import made_up_records
from made_up_duels import failed, found
from warplog.catalog.space import name_of
from warplog.measure.job import Job
from warplog.measure.results import Result, Tuned
from warplog.measure.task import CaseRun
from warplog.measure.tuning import builds, finalists, record
from warplog.measure.tuning.search import Finding, Search
from warplog.records import door
from warplog.records.requested.duel import Duel
from warplog.records.requested.tune import Tune, TunedCase

# In the order of the search: the times of the first five do not differ by what counts, and four of them are finalists.
TIMES = {"A1_B2": 100.0, "A1_B4": 100.2, "A2_B1": 100.4, "A2_B2": 100.6, "A3_B1": 100.8, "A4_B1": 104.0}
FIRST, SECOND, THIRD, FOURTH = list(TIMES)[:4]
SAME = found("SAME", 1.0001)
FASTER = found("FASTER", 0.99)
Ask = Callable[[str, str, str], Duel]  # leader, challenger, case


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder of a family with a search space, nothing of which is compiled."""
    host_tuning.make_place(tmp_path)
    monkeypatch.setattr(builds.Builds, "make", lambda *_: {})
    return tmp_path


def ended(place: Path, times: Mapping[str, float] = TIMES) -> Search:
    """Returns a search whose settings have these times in the look and in the final."""
    search = host_tuning.search(place)
    for setting in search.builds.space.settings():
        name = name_of(setting)
        if name not in times:
            search.findings[name] = Finding(setting)
            continue
        us = dict.fromkeys(("median_us", "q1_us", "q3_us", "hot_us"), times[name])
        case = TunedCase(case="64", **us, rel_spread=0.0, samples=7, final_us=None)
        result = Result(
            run=CaseRun(variant=name, case="look"), status="ok", reason="", found=Tuned(cases=(case,) * 2)
        )
        search.findings[name] = Finding(setting, made_up_records.build(), result, (result,) * 2)
    return search


def fight(ask: Ask) -> finalists.Fight:
    def between(a: Job, b: Job, case: str) -> Duel:
        names = [name_of({name: job.variant.parameters[name] for name in ("A", "B")}) for job in (a, b)]
        assert [job.build_folder.name for job in (a, b)] == names
        return ask(*names, case)

    return between


def decided(place: Path, ask: Ask) -> tuple[Tune, list[tuple[str, str]]]:
    """Returns the record, and who met whom."""
    search = ended(place)
    decision = finalists.decide(search, fight(ask))
    written = record.write(search, decision)
    assert door.read(search.job.record, Tune) == written
    assert (written.picked, written.finalists) == (FIRST, (FIRST, SECOND, THIRD, FOURTH))
    return written, [(duel.leader, duel.challenger) for duel in written.duels]


def winner(place: Path) -> dict[str, int]:
    text = (place / "kernels" / "scale" / "tuned" / "host" / "right.yaml").read_text()
    return yaml.safe_load(text)["parameters"]


def test_the_pick_of_the_search_wins_if_no_finalist_beats_it(place: Path) -> None:
    tune, met = decided(place, lambda *_: SAME)
    assert met == [(FIRST, other) for other in (SECOND, THIRD, FOURTH)]
    assert {duel.word for duel in tune.duels} == {"SAME"}
    assert (tune.ranking[0], tune.decided_by, tune.no_duel) == (FIRST, "duels", "")
    assert winner(place) == {"A": 1, "B": 2}


def test_a_finalist_that_beats_the_leader_wins_once_no_other_beats_it(place: Path) -> None:
    tune, met = decided(place, lambda leader, challenger, _: FASTER if challenger == THIRD else SAME)
    assert met == [(FIRST, SECOND), (FIRST, THIRD), (THIRD, SECOND), (THIRD, FOURTH)]
    beaten = tune.duels[1]
    assert (beaten.word, beaten.status) == ("FASTER", "ok")
    assert (beaten.ratio, beaten.low, beaten.high) == pytest.approx((0.99, 0.99 / 1.001, 0.99 * 1.001))
    assert tune.ranking[:2] == (THIRD, FIRST)
    assert winner(place) == {"A": 2, "B": 1}


@pytest.mark.parametrize(
    ("second", "word"),
    [
        (found("FASTER", 0.99), "FASTER"),
        (found("SLOWER", 1.02), "SLOWER"),
        (found("SLOWER", 1.0101), "AMBIGUOUS"),
    ],
)
def test_the_cases_of_the_score_decide_together(place: Path, second: Duel, word: str) -> None:
    tune, _ = decided(place, lambda _, challenger, case: second if case == "1000" else FASTER)
    duel = tune.duels[0]
    assert (duel.word, len(duel.cases)) == (word, 2)
    assert duel.ratio == pytest.approx((0.99 * second.judged[0].time.ratio) ** 0.5)


def test_a_duel_that_a_further_process_did_not_confirm_beats_nobody(place: Path) -> None:
    denied = found("AMBIGUOUS", 0.99, floor=0.0102)
    tune, _ = decided(place, lambda *_: denied)
    assert {duel.word for duel in tune.duels} == {"AMBIGUOUS"}
    assert tune.ranking[0] == FIRST


def test_without_a_verdict_on_a_finalist_the_pick_of_the_search_wins(place: Path) -> None:
    tune, met = decided(
        place, lambda _, challenger, case: failed("crashed", "B: SIGSEGV") if challenger == THIRD else FASTER
    )
    assert met == [(FIRST, SECOND), (SECOND, THIRD)]
    assert (tune.duels[-1].status, tune.duels[-1].reason, tune.duels[-1].word) == (
        "crashed",
        "B: SIGSEGV",
        None,
    )
    assert (tune.ranking[0], tune.decided_by, tune.no_duel) == (FIRST, "search", "no_verdict")
    assert winner(place) == {"A": 1, "B": 2}


def test_a_clear_winner_needs_no_duel(place: Path) -> None:
    search = ended(place, {"A1_B2": 100.0, "A4_B1": 104.0})
    decision = finalists.decide(search, fight(lambda *_: pytest.fail("a duel")))
    assert decision.no_duel == "one_finalist"
    assert record.write(search, decision).decided_by == "search"


def test_an_interrupted_search_repeats_no_finished_duel(place: Path) -> None:
    asked = []

    def ask(leader: str, challenger: str, case: str) -> Duel:
        asked.append((challenger, case))
        if len(asked) == 4:
            raise KeyboardInterrupt
        return SAME

    with pytest.raises(KeyboardInterrupt):
        decided(place, ask)
    tune, _ = decided(place, ask)
    every = [(challenger, case) for challenger in (SECOND, THIRD, FOURTH) for case in ("64", "1000")]
    assert asked == [*every[:4], *every[3:]]
    assert len(tune.duels) == 3
