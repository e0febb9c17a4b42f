"""Answers to assertions about a made-up campaign: examples computed by hand, and what must not change an answer."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pytest

from host_family import YAML, make_family
from warplog.analysis.answers import Campaign, answer_all, ceilings, is_same_gpu
from warplog.analysis.quantities import Quantities
from warplog.catalog.family import Family, load_family
from warplog.core.columns import Row
from warplog.tables.conclusions import Answer, Ceiling, columns
from warplog.tables.files import as_frame

GPU = "NVIDIA H200"
SASS = {"LDG.E.128": 3, "REDG.E.ADD": 2, "FFMA": 9}
METRICS = {"dram_bytes": 400.0, "spill_store_bytes": 4.0, "spill_load_bytes": 4.0}


def campaign(us: Mapping[str, float], floor: float = 0.01, **unsupported: str) -> Campaign:
    """Returns a campaign of the family `scale` at the case 64: times by variant, and counters of `left` and `right`.

    `floor` is the smallest relative gap between two variants that counts.
    """
    row = {"family": "scale", "case": "64", "gpu": "h200", "gpu_name": GPU, "origin": "live", "campaign": "c"}
    times = [
        {**row, "variant": name, "status": "ok", "reason": "", "median_us": time, "gflops": 1e6 / time}
        | {
            "ratio_to_baseline": us["right"] / time,
            "baseline": "right",
            "sustained_us": 2 * time,
            "gbytes_per_s": 4.0,
        }
        for name, time in us.items()
    ]
    times += [
        {**row, "variant": name, "status": "unsupported", "reason": reason}
        for name, reason in unsupported.items()
    ]
    counted = [("64", "dram_bytes"), ("", "spill_store_bytes"), ("", "spill_load_bytes")]
    kernel = {**row, "kernel": "k", "launch": 0, "status": "ok", "reason": "", "unit": "byte"}
    metrics = [
        {**kernel, "variant": name, "case": case, "metric": metric, "value": METRICS[metric] * share}
        for name, share in (("right", 1.0), ("left", 0.5))
        for case, metric in counted
    ]
    opcodes = {**SASS, "instructions": 14}
    metrics += [
        {**kernel, "variant": "left", "case": "", "metric": f"sass_{name}", "value": count}
        for name, count in opcodes.items()
    ]
    deviation = math.log1p(floor) / (3.0902 * math.sqrt(2))  # so that two of them differ by the floor
    floors = [
        {"family": "scale", "variant": name, "case": "64", "regime": regime, "deviation": deviation}
        | {"freedom": math.inf, "groups": 0.0}
        for name in us
        for regime in ("rest", "sustained")
    ]
    measured = pd.DataFrame(times)
    numbers = Quantities(measured, pd.DataFrame(metrics), pd.DataFrame(floors))
    return Campaign(measured, numbers, {"sms": 132.0, "dram_gbytes_per_s_peak": math.nan})


@pytest.fixture
def family(tmp_path: Path) -> Callable[..., Family]:
    """Makes the family `scale`, in which a child `left` of `right` has these keys, with these claims."""
    path = make_family(tmp_path).file
    path.with_name("left.cu").write_text("// a stand-in\n")

    def load(keys: str, claims: str = "") -> Family:
        child = f"  - {{name: left, parent: right, idea: one, {keys}}}\n"
        path.write_text(f"{YAML}{child}" + (f"claims: [{claims}]\n" if claims else ""))
        return load_family(path)

    return load


def rows(made: Family, us: Mapping[str, float], **more: float) -> list[Row]:
    answers = answer_all({made.name: made}, campaign(us, **more))
    return list(as_frame(answers, columns(Answer), "answers").to_dict("records"))


@pytest.fixture
def only(family: Callable[..., Family]) -> Callable[..., Row]:
    def answered(says: str, right: float = 20.0, left: float = 10.0, **more: float) -> Row:
        (row,) = rows(family(f"predicts: [{says}]"), {"right": right, "left": left}, **more)
        return row

    return answered


def test_a_ceiling_has_its_value_interval_and_source(tmp_path: Path) -> None:
    """20 us less 10 us over 64 elements; the floor of 1 % of each time is that of their difference in quadrature."""
    path = make_family(tmp_path).file
    path.with_name("left.cu").write_text("// a stand-in\n")
    step = "{ceiling: step_us, about: a step, unit: us, measure: '(median_us(right) - median_us(left)) / N'}"
    odd = step.replace("step_us", "odd_us, high: 0.1")
    far = step.replace("step_us", "far_us").replace("(right)", '(right, "1000")')
    entries = f"ceilings: [{step}, {odd}, {far}]"
    path.write_text(f"{YAML}  - {{name: left, parent: right, idea: one}}\n{entries}\n")
    family = load_family(path)
    made = ceilings({"scale": family}, campaign({"right": 20.0, "left": 10.0}))
    step_row, odd_row, far_row = as_frame(made, columns(Ceiling), "ceilings").to_dict("records")
    assert (step_row["family"], step_row["variant"], step_row["case"]) == ("scale", "right, left", "64")
    assert (step_row["ceiling"], step_row["about"], step_row["unit"], step_row["word"]) == (
        "step_us",
        "a step",
        "us",
        "met",
    )
    assert step_row["value"] == pytest.approx(10 / 64)
    assert step_row["value_high"] - step_row["value"] == pytest.approx(
        step_row["value"] - step_row["value_low"]
    )
    assert 0.001 < step_row["value_high"] - step_row["value"] < 0.01
    assert (odd_row["word"], odd_row["high"]) == ("missed", 0.1)
    assert (far_row["word"], far_row["reason"], far_row["reason_of"]) == (
        "not_measurable",
        "not_measured",
        "right",
    )


def test_a_speedup_with_its_interval_by_hand(only: Callable[..., Row]) -> None:
    """20 us over 10 us; two times with a floor of 1 % are known to 1 %."""
    row = only("{quantity: speedup, low: 1.5, high: 1.9}")
    assert row["measured"] == 2.0
    assert row["measured_low"] == pytest.approx(2 / 1.01, rel=1e-5)
    assert row["measured_high"] == pytest.approx(2 * 1.01, rel=1e-5)
    assert (row["word"], row["unit"], row["against"], row["regime"]) == ("missed", "x", "right", "rest")
    assert row["off"] == pytest.approx(2 / 1.9 - 1)
    assert (row["kind"], row["case"], row["gpu_name"]) == ("predicts", "64", GPU)


@pytest.mark.parametrize(
    ("range_", "word"),
    [
        ("low: 1.97", "met"),
        ("low: 1.99", "within_noise"),
        ("low: 2.03", "missed"),
        ("high: 2.03", "met"),
        ("high: 1.99", "within_noise"),
        ("high: 1.97", "missed"),
        ("low: 1.97, high: 2.03", "met"),
        ("low: 1.999, high: 2.001", "within_noise"),
        ("low: 2.005, high: 2.01", "within_noise"),  # between the measured value and the end of its interval
    ],
)
def test_it_is_met_or_missed_only_if_all_of_the_interval_is(
    only: Callable[..., Row], range_: str, word: str
) -> None:
    assert only(f"{{quantity: speedup, {range_}}}")["word"] == word


@pytest.mark.parametrize(
    ("says", "measured", "unit"),
    [
        ("{quantity: saved_us, low: 9}", 10.0, "us"),
        ("{quantity: tflops, low: 90}", 100.0, "TFLOP/s"),
        ("{quantity: percent_of_baseline, low: 150}", 200.0, "%"),
        ("{quantity: speedup, regime: sustained, low: 1}", 2.0, "x"),
        ("{quantity: dram_bytes, high: 300}", 200.0, "byte"),
        ("{quantity: dram_bytes, against: right, high: 0.6}", 0.5, "x"),
        ("{quantity: spill_bytes, high: 4}", 4.0, "byte"),
    ],
)
def test_quantities_by_hand(only: Callable[..., Row], says: str, measured: float, unit: str) -> None:
    row = only(says)
    assert (row["measured"], row["unit"], row["word"], row["reason"]) == (measured, unit, "met", "")


def test_of_another_gpu_the_number_is_shown_and_not_judged(only: Callable[..., Row]) -> None:
    row = only("{quantity: speedup, low: 3, gpu: RTX A6000}")
    assert (row["word"], row["reason"], row["reason_of"]) == ("not_measurable", "other_gpu", "RTX A6000")
    assert (row["measured"], row["said_of"]) == (2.0, "RTX A6000")
    assert math.isnan(float(str(row["off"])))
    assert only("{quantity: speedup, low: 3, gpu: H200}")["word"] == "missed"


@pytest.mark.parametrize(
    ("said", "name", "same"),
    [
        ("H100", "NVIDIA H100 80GB HBM3", True),
        ("A100", "NVIDIA A100-SXM4-80GB", True),
        ("RTX A6000", "NVIDIA RTX A6000", True),
        ("RTX A6000", "NVIDIA RTX 6000 Ada Generation", False),
        ("H200", "NVIDIA H100 80GB HBM3", False),
        ("h200", "NVIDIA H200", True),
        ("an H100", "NVIDIA H100 80GB HBM3", True),
        ("an A6000", "NVIDIA H100 80GB HBM3", False),
    ],
)
def test_a_gpu_is_known_by_the_words_of_its_name(said: str, name: str, same: bool) -> None:
    assert is_same_gpu(said, name) == same


@pytest.mark.parametrize(
    ("says", "reason", "reason_of"),
    [
        ('{quantity: speedup, case: "1000", low: 1}', "not_measured", "right"),
        ("{quantity: ipc, low: 1}", "not_captured", "left"),
        ("{quantity: speedup, regime: hot, low: 1}", "no_time", "right"),
        ("{quantity: energy_j, low: 1}", "no_value", "left"),
    ],
)
def test_what_was_not_measured_has_a_reason(
    only: Callable[..., Row], says: str, reason: str, reason_of: str
) -> None:
    row = only(says)
    assert (row["word"], row["reason"], row["reason_of"]) == ("not_measurable", reason, reason_of)
    assert math.isnan(float(str(row["measured"])))


def test_a_peak_that_is_not_known_is_named(only: Callable[..., Row]) -> None:
    row = only("{quantity: percent_of_dram_peak, low: 80}")
    assert (row["reason"], row["reason_of"]) == ("no_peak", "dram_gbytes_per_s_peak")


def test_a_case_that_a_variant_does_not_support_has_its_status_as_reason(
    family: Callable[..., Family],
) -> None:
    made = family("predicts: [{quantity: speedup, low: 1}]")
    (row,) = answer_all({made.name: made}, campaign({"right": 20.0}, left="needs sm_90"))
    assert (row["reason"], row["reason_of"]) == ("unsupported", "left")


def test_variants_that_are_not_in_the_tables_have_no_answers(family: Callable[..., Family]) -> None:
    made = family("predicts: [{quantity: speedup, low: 1}], expects: {spills: 0}")
    assert rows(made, {"right": 20.0}) == []
    assert answer_all({}, campaign({"right": 20.0})) == []


def test_expectations_of_the_compiled_code(family: Callable[..., Family]) -> None:
    """REDG begins with RED, STG does not occur, and 2 bytes are stored and loaded where none may be."""
    made = family("expects: {sass: [LDG.E, RED, STG], spills: 0}")
    answers = rows(made, {"right": 20.0, "left": 10.0})
    assert [(row["quantity"], row["measured"], row["word"]) for row in answers] == [
        ("sass_LDG.E", 3.0, "met"),
        ("sass_RED", 2.0, "met"),
        ("sass_STG", 0.0, "missed"),
        ("spill_bytes", 4.0, "missed"),
    ]
    assert {(row["kind"], row["case"], row["regime"]) for row in answers} == {("expects", "", "")}


def test_a_claim_is_answered_with_its_range_and_the_variant_that_it_is_about(
    family: Callable[..., Family],
) -> None:
    said = "claim: It is so., source: somebody, measure: median_us(right) / median_us(left)"
    made = family(
        "draft: false",
        f'{{id: A, {said}, unit: x, confirmed_if: ">= 3"}}, {{id: B, {said}, about: an A6000, confirmed_if: "== 2"}},'
        f" {{id: C, {said}, about: an H200, not_judged: an opinion}},"
        f' {{id: D, {said}, about: an H200, confirmed_if: "== 2"}}',
    )
    answers = rows(made, {"right": 20.0, "left": 10.0}, floor=0.0)
    assert [(row["id"], row["word"], row["reason"]) for row in answers] == [
        ("A", "missed", ""),
        ("B", "not_measurable", "other_gpu"),
        ("C", "not_measurable", "not_judged"),
        ("D", "met", ""),
    ]
    assert {(row["kind"], row["variant"], row["source"], row["measured"]) for row in answers} == {
        ("claim", "left", "somebody", 2.0)
    }
    assert (answers[0]["low"], answers[0]["unit"]) == (3.0, "x")
    assert math.isnan(float(str(answers[0]["high"])))
    assert answers[0]["off"] == pytest.approx(2 / 3 - 1)


def test_a_claim_about_a_search_is_not_answered_by_default_parameters(family: Callable[..., Family]) -> None:
    """What its author predicts of the variant is."""
    claim = '{id: C1, claim: fast, source: me, measure: "median_us(right) / median_us(left)", confirmed_if: "> 1"}'
    made = family("predicts: [{quantity: speedup, low: 1}]", claim)
    searched = campaign({"right": 20.0, "left": 10.0})
    default = searched.measurements.assign(remarks="")
    default.loc[default["variant"] == "left", "remarks"] = '[{"code": "not_tuned", "gpu": "h200"}]'
    numbers = Quantities(default, searched.numbers._rows, None)
    answered = answer_all({made.name: made}, Campaign(default, numbers, searched.gpu))
    assert {row["kind"]: (row["word"], row["reason"], row["reason_of"]) for row in answered} == {
        "predicts": ("met", "", ""),
        "claim": ("not_measurable", "not_tuned", "left"),
    }


RANGES = ("low: 1.5", "low: 1.99", "low: 2.5", "low: 1.9, high: 2.1", "low: 1, high: 1.999")


@pytest.mark.parametrize("range_", RANGES)
@pytest.mark.parametrize("scale", [2.0, 0.1])
def test_if_all_times_scale_the_answers_about_speedups_stay(
    only: Callable[..., Row], range_: str, scale: float
) -> None:
    says = f"{{quantity: speedup, {range_}}}"
    before, after = only(says), only(says, right=20.0 * scale, left=10.0 * scale)
    assert after["word"] == before["word"]
    assert after["measured"] == pytest.approx(before["measured"])


@pytest.mark.parametrize(("low", "high"), [(1.5, 1.9), (1.99, 2.5), (2.5, 3.0), (1.9, 2.1)])
def test_the_inverse_said_of_swapped_sides_has_the_same_answer(
    only: Callable[..., Row], low: float, high: float
) -> None:
    row = only(f"{{quantity: speedup, low: {low}, high: {high}}}")
    swapped = only(f"{{quantity: speedup, low: {1 / high}, high: {1 / low}}}", right=10.0, left=20.0)
    assert swapped["word"] == row["word"]
    assert swapped["measured"] == pytest.approx(1 / float(str(row["measured"])))
    assert swapped["measured_low"] == pytest.approx(1 / float(str(row["measured_high"])))


def test_less_noise_never_turns_an_answer_into_its_opposite(only: Callable[..., Row]) -> None:
    for range_ in RANGES:
        says = f"{{quantity: speedup, {range_}}}"
        words = [str(only(says, floor=floor)["word"]) for floor in (0.3, 0.03, 0.003, 0.0)]
        decided = [word for word in words if word != "within_noise"]
        assert len(set(decided)) == 1, "once it is decided, it stays so"
        assert words == ["within_noise"] * (len(words) - len(decided)) + decided
