"""Causes of the steps of a ladder, and pairs of variants that differ in a known one."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from host_family import YAML, make_family
from shipped_families import FAMILIES
from warplog.catalog.contract import Case, Mechanism
from warplog.catalog.family import Family, Variant, load_family
from warplog.core.errors import WarplogError
from warplog.plan.selection import choose_families

PAIRS = [
    (family, family.variant(variant.parent), variant)
    for family in FAMILIES.values()
    for variant in family.variants
    if variant.planted and variant.parent
]
IDS = [f"{family.name}/{child.name}" for family, _, child in PAIRS]
LEAST_GAIN = 0.3  # of the parent's time


@pytest.fixture
def family(tmp_path: Path) -> Callable[[str], Family]:
    """Makes a family whose second variant has these further keys."""
    path = make_family(tmp_path).file
    path.with_name("left.cu").write_text("// a stand-in\n")

    def load(keys: str) -> Family:
        entries = ["{name: right, parent: null, idea: one}", f"{{name: left, idea: two, {keys}}}"]
        path.write_text(YAML.split("  - {name: right")[0] + "".join(f"  - {entry}\n" for entry in entries))
        return load_family(path)

    return load


@pytest.mark.parametrize(
    ("cause", "causes"),
    [
        ("bank_conflicts", ("bank_conflicts",)),
        ("[dram_bytes, launches]", ("dram_bytes", "launches")),
        ("none", ("none",)),
    ],
)
def test_a_step_has_one_cause_or_two_in_their_order(
    family: Callable[[str], Family], cause: str, causes: tuple[str, ...]
) -> None:
    made = family(f"parent: right, cause: {cause}")
    assert made.variant("left").causes == causes
    assert made.variant("right").causes == ()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("parent: right, cause: magic", "cause"),
        ("parent: right, cause: [spills, tail, fences]", "cause"),
        ("parent: right, cause: [spills, spills]", "cause: "),
        ("parent: right, cause: [none, spills]", "excludes another one"),
        ("parent: null, cause: spills", "'parent' is missing"),
        ("parent: right, planted: judged", "'cause' is missing"),
        ("parent: right, cause: spills, planted: both", "planted"),
        ("parent: right, cause: spills, decoy: tail", "requires the cause 'none'"),
        ("parent: right, decoy: tail", "requires the cause 'none'"),
    ],
)
def test_other_causes_are_refused(family: Callable[[str], Family], keys: str, message: str) -> None:
    with pytest.raises(WarplogError, match=message):
        family(keys)


def test_a_family_with_planted_pairs_runs_only_if_it_is_named(family: Callable[[str], Family]) -> None:
    plain, planted = (
        family("parent: right, cause: tail"),
        family("parent: right, cause: tail, planted: judged"),
    )
    for made, chosen in ((plain, [plain.name]), (planted, [])):
        assert list(choose_families("all", {made.name: made})) == chosen
        assert list(choose_families(made.name, {made.name: made})) == [made.name]
    assert "causes" not in choose_families("all", FAMILIES)


def test_each_step_of_the_shipped_ladders_states_its_cause() -> None:
    without = [
        f"{family.name}/{variant.name}"
        for family in FAMILIES.values()
        for variant in family.variants
        if variant.parent and not variant.causes
    ]
    assert without == []


def cases_of(family: Family, variant: Variant) -> list[Case]:
    return [case for case in family.cases.values() if not variant.requires.why_not_case(case)]


@pytest.mark.parametrize(("family", "parent", "child"), PAIRS, ids=IDS)
def test_a_planted_pair_is_one_source_with_one_other_setting_at_three_sizes(
    family: Family, parent: Variant, child: Variant
) -> None:
    assert child.file == parent.file
    assert child.parameters.keys() == parent.parameters.keys()
    assert sum(child.parameters[name] != value for name, value in parent.parameters.items()) == 1
    cases = cases_of(family, child)
    assert cases == cases_of(family, parent)
    assert len(cases) == 3
    assert {case.name for case in cases} <= set(family.profile_cases)
    sizes = [family.value(family.work.size, case) for case in cases]
    assert all(larger >= 2 * smaller for smaller, larger in pairwise(sizes))


@pytest.mark.parametrize(("family", "parent", "child"), PAIRS, ids=IDS)
def test_its_gain_is_predicted_at_all_of_them_and_is_none_for_a_look_alike(
    family: Family, parent: Variant, child: Variant
) -> None:
    (gain,) = [p for p in child.predicts if p.quantity == "speedup" and not p.variants]
    assert list(gain.cases) == [case.name for case in cases_of(family, child)]
    assert gain.low
    assert gain.high
    if child.decoy:
        assert gain.low < 1 < gain.high
    else:
        assert len(child.causes) == 1
        assert gain.low >= 1 / (1 - LEAST_GAIN) - 0.01


def test_constants_are_fitted_to_every_planted_mechanism_and_a_model_is_judged_by_every_one() -> None:
    planted = {
        half: {child.cause for _, _, child in PAIRS if child.planted == half and not child.decoy}
        for half in ("fitted", "judged")
    }
    assert planted["fitted"] == planted["judged"]
    assert len(planted["judged"]) == 19
    assert sum(not child.decoy for _, _, child in PAIRS) >= 18
    look_alikes = {child.decoy: child.planted for _, _, child in PAIRS if child.decoy}
    assert look_alikes == dict.fromkeys(("bank_conflicts", "occupancy", "instructions", "l2_bytes"), "judged")


def test_the_documentation_lists_every_mechanism_and_no_other() -> None:
    text = (Path(__file__).parents[3] / "workflow" / "docs" / "extending.md").read_text()
    table = text.split("### Causes")[1].split("|---|---|\n")[1].split("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(get_args(Mechanism))
