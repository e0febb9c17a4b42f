"""What a gate says of a change, from the duels of its variants and of its controls."""

import subprocess
from pathlib import Path

import pytest
from msgspec import structs

from host_family import REFERENCE, YAML
from made_up_duels import failed, found
from warplog.core.errors import WarplogError
from warplog.duel.changes import gate as gates
from warplog.duel.changes import gate_words
from warplog.duel.changes.gate import GateOptions, compared, gate
from warplog.machine import device
from warplog.records.requested.duel import Counter, Duel

VARIANTS = """
  - {name: second, idea: another source, compile: {flags: [-DOLD]}}
  - {name: third, idea: one that stays}
  - {name: draft, idea: not yet, draft: true}
"""


SAME, SLOWER, FASTER = found("SAME", 1.001), found("SLOWER", 1.02), found("FASTER", 0.98)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a repository in which a source, the options of another one and a draft differ from its commit."""
    folder = tmp_path / "kernels" / "scale"
    folder.mkdir(parents=True)
    (folder / "family.yaml").write_text(YAML.rstrip() + VARIANTS)
    (folder / "reference.py").write_text(REFERENCE)
    for name in ("right", "second", "third", "draft"):
        (folder / f"{name}.cu").write_text(f"// {name}\n")
    git = ("git", "-C", tmp_path, "-c", "user.name=T", "-c", "user.email=t@example.com")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run([*git, *words], check=True, capture_output=True)
    text = (folder / "family.yaml").read_text().replace("-DOLD", "-DNEW")
    (folder / "family.yaml").write_text(text + "  - {name: fourth, file: third.cu, idea: a new one}\n")
    for name in ("right", "draft"):
        (folder / f"{name}.cu").write_text("// changed\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(device, "boards", lambda: ["board"])
    monkeypatch.setattr(gates, "_same_code", lambda *_: False)
    return tmp_path


def judged(project: Path, duels: dict[str, Duel], options: GateOptions | None = None) -> gates.Gate:
    """Returns the verdict if the variants' duels end so, and those of all others with SAME."""
    fight = lambda corners, *_: duels.get(corners[1].variant.name, SAME)  # noqa: E731
    return gate(compared("HEAD", "", project), options or GateOptions(), project, fight)


def test_what_differs_duels_with_itself_and_what_does_not_is_the_control(project: Path) -> None:
    said = judged(project, {})
    assert [(one.variant, one.control, one.differs) for one in said.cases] == [
        ("third", True, ()),
        ("right", False, ("sources",)),
        ("second", False, ("options",)),
    ]
    assert (said.word, said.unchanged, said.added) == ("same", 1, ("scale/fourth",))


@pytest.mark.parametrize(
    ("duels", "word"),
    [
        ({"right": SLOWER, "second": FASTER}, "loss"),
        ({"right": FASTER}, "gain"),
        ({"right": SLOWER, "third": SLOWER}, "machine"),
        ({"right": found("SLOWER", 1.02, "SAME")}, "not enough data"),  # only the clock was lower
        ({"right": found("SLOWER", 1.004)}, "same"),  # certain, and within the margin
        ({"right": found("AMBIGUOUS", 1.004)}, "not enough data"),
        ({"right": failed("wrong", "B: y")}, "not enough data"),
    ],
)
def test_the_verdict_on_a_change_is_that_of_its_worst_case(
    project: Path, duels: dict[str, Duel], word: str
) -> None:
    assert judged(project, duels).word == word


def test_when_the_minutes_are_over_no_further_duel_starts(project: Path) -> None:
    said = judged(project, {"right": SLOWER}, GateOptions(minutes=0.0))
    assert {one.word for one in said.cases} == {"not measured"}
    assert said.word == "not enough data"


def test_a_case_that_means_something_else_at_the_base_is_not_measured(project: Path) -> None:
    file = project / "kernels" / "scale" / "family.yaml"
    file.write_text(file.read_text().replace('"64": {N: 64}', '"64": {N: 65}'))
    said = judged(project, {})
    assert {one.word for one in said.cases if not one.control} == {"not measured"}
    assert all("case 64 of scale differ" in one.reason for one in said.cases)


def test_a_variant_that_supports_none_of_the_named_cases_is_listed(project: Path) -> None:
    said = judged(project, {}, GateOptions(cases=("1000", "7")))
    assert {(one.variant, one.case) for one in said.cases if not one.control} == {
        ("right", "1000"),
        ("second", "1000"),
    }
    said = judged(project, {}, GateOptions(cases=("7",)))
    assert {one.word for one in said.cases if not one.control} == {"not measured"}
    assert said.word == "not enough data"


def test_a_family_that_is_not_there_is_an_error(project: Path) -> None:
    with pytest.raises(WarplogError, match="did you mean 'scale'"):
        compared("HEAD", "", project, ["scales"])
    with pytest.raises(WarplogError, match="is no commit"):
        compared("v9", "", project)


def test_words_of_a_gate_name_method_control_and_reason(project: Path) -> None:
    said = judged(project, {"second": SLOWER, "third": found("AMBIGUOUS", 1.0)})
    text, comment, junit = (
        "\n".join(gate_words.lines(said)),
        gate_words.markdown(said),
        gate_words.junit(said),
    )
    assert text.startswith("LOSS  the working tree against HEAD: a confirmed regression")
    for words in (text, comment):
        assert "method changed: options of the compiler" in words
        assert "control; the interval exceeds the margin" in words
        assert "+2.00 %" in words
        assert "only at the head: scale/fourth" in words
    assert junit.count("<failure") == 1
    assert junit.count("<skipped") == 1


def test_words_of_a_gate_name_the_counters_of_what_became_slower_or_faster(project: Path) -> None:
    counters = (
        Counter(name="instructions_executed", a=900.0, b=3600.0, kernel="add(float *)", number=2),
        Counter(name="l2_bytes", a=0.0, b=2e6),
    )
    duels = {
        "right": structs.replace(SLOWER, counters=counters),
        "second": structs.replace(FASTER, no_counters="ncu was not found"),
    }
    comment = gate_words.markdown(judged(project, duels))
    assert "instructions_executed of kernel 2, add +300.00 %, l2_bytes 0 to 2e+06" in comment
    assert "no counters: ncu was not found" in comment
    (control,) = [line for line in comment.splitlines() if "| control" in line]
    assert "counter" not in control
    assert "no counter differs" in gate_words.junit(judged(project, {"right": SLOWER}))
