"""Duels on the GPU: nothing is found where nothing is, a planted change is, and no side flatters or hinders the other.

`-s` shows what each duel found.
"""

import shutil
from pathlib import Path

import pytest
from gpu_jobs import build_variant, gpu_job

from made_up_duels import write_steps
from warplog.catalog.family import load_family
from warplog.core.errors import WarplogError
from warplog.duel import match, open_steps, sides, words
from warplog.duel.match import Options
from warplog.machine import toolchain
from warplog.records import door
from warplog.records.requested.duel import Duel, Judged
from warplog.records.requested.step_duels import StepDuels

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / "tests" / "benchmarks" / "duels"
SAME_CODE = ("SAME", "AMBIGUOUS")

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a project without families of its own, which keeps the builds of this module."""
    toolchain.ensure("cuda")
    toolchain.ensure("gpu")
    place = tmp_path_factory.mktemp("duel")
    shutil.copytree(PROJECT / "kernels", place / "kernels")
    return place


def duel(project: Path, a: str, b: str, case: str, sustained: bool = False, counters: bool = False) -> Duel:
    corners = sides.resolve(a, b, project, [FOLDER])
    found = match.duel(corners, Options(case, 4.5, 0.005, sustained, counters=counters), project)
    print("\n".join(words.lines(found)))
    for judged in found.judged:
        for window in judged.windows:
            logs = 100 * window.time.log_ratio, 100 * window.time.error
            print(
                f"    {judged.regime}: {window.blocks} blocks, {logs[0]:+.4f} % with an error of {logs[1]:.4f} %"
            )
    assert found.status == "ok", found.reason
    return found


def at_rest(found: Duel) -> Judged:
    return found.judged[0]


@pytest.mark.parametrize("family", ["planted_chain", "planted_copy"])
@pytest.mark.parametrize("case", ["3us", "10us", "100us", "1ms"])
def test_the_same_code_is_the_same(project: Path, family: str, case: str) -> None:
    judged = at_rest(duel(project, f"{family}/base", f"{family}/base", case))
    assert judged.time.word in SAME_CODE
    assert judged.time.low <= 1 <= judged.time.high
    assert judged.cycles is not None
    assert judged.cycles.word in SAME_CODE
    if case in ("100us", "1ms"):
        assert judged.time.word == "SAME"


@pytest.mark.parametrize("case", ["10us", "100us", "1ms"])
def test_one_percent_more_steps_are_slower_in_time_and_in_cycles(project: Path, case: str) -> None:
    judged = at_rest(duel(project, "planted_chain/base", "planted_chain/plus_1", case))
    assert judged.time.word == "SLOWER"
    # Of a short launch, what is planted is known less well, since it is relative to steps.
    assert judged.time.ratio == pytest.approx(1.01, abs=0.006 if case == "10us" else 0.003)
    assert judged.cycles is not None
    assert judged.cycles.ratio == pytest.approx(judged.time.ratio, abs=0.003)
    swapped = at_rest(duel(project, "planted_chain/plus_1", "planted_chain/base", case))
    assert swapped.time.word == "FASTER"
    assert swapped.time.ratio * judged.time.ratio == pytest.approx(1, abs=0.002)


def test_a_quarter_of_a_percent_is_found_from_100_us_on(project: Path) -> None:
    judged = at_rest(duel(project, "planted_chain/base", "planted_chain/plus_0_25", "100us"))
    assert judged.time.word == "SLOWER"
    assert judged.time.ratio == pytest.approx(1.0025, abs=0.001)


def test_persisting_lines_neither_flatter_nor_hinder_the_other_side(project: Path) -> None:
    """`plain` takes as long against `persisting`, which leaves lines and limits behind, as against itself."""
    alone = at_rest(duel(project, "read_twice/plain", "read_twice/plain_again", "3000"))
    beside = at_rest(duel(project, "read_twice/plain", "read_twice/persisting", "3000"))
    assert alone.time.word in SAME_CODE
    assert beside.a_us == pytest.approx(alone.a_us, rel=0.02)


def test_the_clock_of_events_has_steps_and_turns_are_blocked(project: Path) -> None:
    judged = at_rest(duel(project, "planted_copy/base", "planted_copy/base", "3us"))
    for window in judged.windows:
        assert 0 < window.step_us < 2
        assert window.not_blocked == 0
        assert window.a_mhz > 500
        assert window.blocks > 100
    assert len({window.addresses for window in judged.windows}) == len(judged.windows)


def test_the_counters_of_both_sides_say_that_more_instructions_ran(project: Path) -> None:
    ncu = toolchain.find("ncu")
    if ncu.path is None:
        pytest.skip(f"no ncu: {ncu.remedy}")
    found = duel(project, "planted_chain/base", "planted_chain/twice", "100us", counters=True)
    if found.no_counters:
        pytest.skip(found.no_counters)
    (instructions,) = [one for one in found.counters if one.name == "instructions_executed"]
    assert instructions.b / instructions.a == pytest.approx(2, rel=0.1)


def test_two_compilers_of_one_source_duel_in_one_process(project: Path) -> None:
    try:
        toolchain.compiler("13.3", project / sides.CACHE / "toolkits")
    except WarplogError as error:
        pytest.skip(str(error))
    found = duel(project, "planted_chain/base", "nvcc:13.3", "100us")
    assert found.b.nvcc.startswith("13.3.")
    assert found.differs == (() if found.a.nvcc == found.b.nvcc else ("compiler",))
    assert not found.apart
    assert at_rest(found).time.ratio == pytest.approx(1, abs=0.1)


def test_a_kernel_at_the_power_limit_also_duels_sustained(project: Path) -> None:
    found = duel(project, "bf16_gemm/cublas", "bf16_gemm/cublas", "8192", sustained=True)
    if len(found.judged) == 1:
        pytest.skip("no limit acts on this board")
    assert [judged.regime for judged in found.judged] == ["rest", "sustained"]
    assert {judged.time.word for judged in found.judged} <= set(SAME_CODE)
    assert found.judged[1].a_us > found.judged[0].a_us


@pytest.mark.parametrize("variant", ["triton", "torch"])
def test_a_python_variant_duels_in_one_process(project: Path, variant: str) -> None:
    pytest.importorskip(variant)
    found = duel(project, f"softmax/{variant}", "softmax/vectorized", "4096x4096")
    assert not found.apart
    assert at_rest(found).time.word in ("FASTER", "SLOWER", *SAME_CODE)


def test_a_step_that_the_times_leave_open_is_decided_from_the_builds_of_the_campaign(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    family, jobs = load_family(FOLDER / "planted_chain" / "family.yaml"), []
    for name in ("base", "plus_1"):
        build_variant(family, name, tmp_path / name)
        jobs.append(gpu_job(family, name, tmp_path / name, tmp_path / "record.json", None))
    step = {"family": family.name, "variant": "plus_1", "parent": "base", "case": "100us", "word": "SAME"}
    write_steps(tmp_path, step)
    open_steps.duel_steps(jobs, tmp_path)
    (row,) = open_steps.rows([door.read(tmp_path / "record.json", StepDuels)])
    print(row)
    assert (row.variant, row.against, row.word) == ("plus_1", "base", "SLOWER")
    assert row.gain_pct == pytest.approx(-1, abs=0.3)
    assert row.low_pct < row.gain_pct < row.high_pct < 0
