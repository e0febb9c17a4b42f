"""Predictions in family.yaml: what they refer to if a key is left out, and the errors for those that are not valid."""

from collections.abc import Callable
from pathlib import Path

import pytest

from host_family import YAML, make_family
from shipped_families import FAMILIES
from warplog.catalog.assertions import Assertion, predicted
from warplog.catalog.claims import Range, Term
from warplog.catalog.contract import FamilyFile
from warplog.catalog.family import Family, load_family
from warplog.core.columns import MEASUREMENTS
from warplog.core.errors import WarplogError
from warplog.metrics import METRICS
from warplog.records import door


@pytest.fixture
def family(tmp_path: Path) -> Callable[..., Family]:
    """Makes a family in which `right` has these predictions, and its child `left` those."""
    path = make_family(tmp_path).file
    path.with_name("left.cu").write_text("// a stand-in\n")

    def load(right: str = "", left: str = "") -> Family:
        entries = [
            f"  - {{name: {name}, parent: {parent}, idea: one{f', predicts: [{says}]' if says else ''}}}"
            for name, parent, says in (("right", "null", right), ("left", "right", left))
        ]
        path.write_text(YAML.split("  - {name: right")[0] + "\n".join(entries) + "\n")
        return load_family(path)

    return load


def of_left(family: Family) -> list[Assertion]:
    return list(predicted(family.variant("left"), family.name, family.headline_case, "here"))


def test_a_speedup_is_over_the_parent_at_the_headline_case_at_rest_on_any_gpu(
    family: Callable[..., Family],
) -> None:
    (assertion,) = of_left(family(left="{quantity: speedup, low: 2}"))
    assert (assertion.against, assertion.case, assertion.regime, assertion.said_of, assertion.unit) == (
        "right",
        "64",
        "rest",
        "",
        "x",
    )
    assert assertion.allowed == Range(low=2.0)
    assert assertion.formula
    assert list(assertion.formula.terms.values()) == [
        Term("median_us", "scale", "right", "64"),
        Term("median_us", "scale", "left", "64"),
    ]


def test_each_case_and_each_variant_that_is_named_is_an_assertion_of_its_own(
    family: Callable[..., Family],
) -> None:
    made = family(right='{quantity: speedup, against: [left], case: ["64", "1000"], high: 1}')
    assertions = list(predicted(made.variant("right"), made.name, made.headline_case, "here"))
    assert [(assertion.against, assertion.case) for assertion in assertions] == [
        ("left", "64"),
        ("left", "1000"),
    ]


def test_another_quantity_is_compared_only_if_a_variant_is_named(family: Callable[..., Family]) -> None:
    alone, ratio = of_left(
        family(left="{quantity: dram_bytes, high: 9}, {quantity: dram_bytes, against: right, high: 0.5}")
    )
    assert (alone.against, alone.unit, alone.regime) == ("", "", "")
    assert (ratio.against, ratio.unit, ratio.regime) == ("right", "x", "")
    assert alone.formula
    assert ratio.formula
    assert [term.variant for term in alone.formula.terms.values()] == ["left"]
    assert [term.variant for term in ratio.formula.terms.values()] == ["left", "right"]


@pytest.mark.parametrize(
    ("quantity", "regime", "column"),
    [
        ("speedup", "hot", "hot_us"),
        ("speedup", "sustained", "sustained_us"),
        ("tflops", "sustained", "sustained_gflops"),
        ("percent_of_baseline", "sustained", "sustained_ratio_to_baseline"),
        ("power_w", "sustained", "sustained_power_w"),
    ],
)
def test_a_regime_selects_the_column(
    family: Callable[..., Family], quantity: str, regime: str, column: str
) -> None:
    (assertion,) = of_left(family(left=f"{{quantity: {quantity}, regime: {regime}, low: 1}}"))
    assert assertion.formula
    assert {term.quantity for term in assertion.formula.terms.values()} == {column}
    assert assertion.regime == regime


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("{quantity: speedups, low: 1}", "unknown quantity 'speedups'; did you mean 'speedup'"),
        ("{quantity: status, low: 1}", "unknown quantity 'status'"),
        ("{quantity: sass, low: 1}", "unknown quantity 'sass'"),
        ("{quantity: speedup, against: rigth, low: 1}", "no variant 'rigth'; did you mean 'right'"),
        ('{quantity: speedup, case: "65", low: 1}', "no timed case '65'; known: 1000, 64"),
        ("{quantity: speedup, case: odd, low: 1}", "no timed case 'odd'"),
        ("{quantity: speedup, case: 64, low: 1}", "expected text or a list, got 64"),
        ("{quantity: speedup}", "required key 'low'"),
        ("{quantity: speedup, low: 2, high: 1}", "low: 2 is larger than high: 1; swap them"),
        ("{quantity: speedup, low: 1, gpus: H100}", "unknown key 'gpus'; did you mean 'gpu'"),
        ("{quantity: speedup, low: 1, regime: cold}", "'cold' is not one of"),
        ("{quantity: dram_bytes, regime: hot, low: 1}", "not known in the regime 'hot'; remove `regime`"),
        ('{quantity: speedup, case: ["64", "64"], low: 1}', "left.predicts.0.case"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(
    family: Callable[..., Family], says: str, words: str
) -> None:
    with pytest.raises(WarplogError) as error:
        family(left=says)
    assert words in str(error.value)
    assert "family.yaml" in str(error.value)
    assert "left" in str(error.value)


def test_a_variant_without_a_parent_names_what_its_speedup_is_over(family: Callable[..., Family]) -> None:
    with pytest.raises(WarplogError, match="'right': predicts: speedup: requires `against`"):
        family(right="{quantity: speedup, low: 1}")
    assert family(right="{quantity: speedup, against: left, low: 1}")


def test_the_schema_explains_each_key_of_a_prediction() -> None:
    keys = door.schema_of(FamilyFile)["$defs"]["Prediction"]["properties"]
    assert set(keys) == {"quantity", "against", "case", "regime", "low", "high", "gpu"}
    assert all(key["description"] for key in keys.values())


OURS = [family for family in FAMILIES.values() if any(variant.predicts for variant in family.variants)]


@pytest.mark.parametrize("family", OURS, ids=lambda family: family.name)
def test_every_prediction_of_ours_can_be_answered_one_day(family: Family) -> None:
    """Both variants support its case, and its counters are captured there."""
    for variant in family.variants:
        for assertion in predicted(variant, family.name, family.headline_case, variant.name):
            assert assertion.formula
            for term in assertion.formula.terms.values():
                assert family.variant(term.variant).requires.why_not_case(family.cases[term.case]) == ""
                metric = METRICS.get(term.quantity.removeprefix("total_"))
                if term.quantity not in MEASUREMENTS and metric and metric.counters:
                    assert term.case in family.profile_cases, f"{variant.name}: {term.quantity}"


def test_no_two_assertions_of_a_family_have_the_same_row() -> None:
    for family in OURS:
        keys = [
            (
                assertion.variant,
                assertion.quantity,
                assertion.against,
                assertion.case,
                assertion.regime,
                assertion.said_of,
            )
            for variant in family.variants
            for assertion in predicted(variant, family.name, family.headline_case, variant.name)
        ]
        assert len(set(keys)) == len(keys), family.name
