"""The sentences of the recorded campaigns are read as codes, in records and in tables."""

import json
from pathlib import Path

import pandas as pd
import pytest

from warplog.core.records import FamilyRecord
from warplog.core.remarks import old_words
from warplog.records import door
from warplog.records.remarks import TimeRemark

RECORDED = Path(__file__).parents[3] / "results" / "recorded"


def of_ok(reason: str) -> dict[str, object]:
    case = {"case": "1", "status": "ok", "reason": reason}
    return dict(old_words.of_record({"stage": "time", "cases": [case]})["cases"][0])


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("only 1 samples", [{"code": "few_samples", "samples": 1}]),
        (
            "only 4 samples; 12 of 112 launches discarded: clock below 1960 MHz",
            [
                {"code": "few_samples", "samples": 4},
                {"code": "discarded", "dropped": 12, "taken": 112, "below_mhz": 1960},
            ],
        ),
        ("tuned on h200 with 3 of 80 settings measured", [
            {"code": "partly_tuned", "gpu": "h200", "seen": 3, "settings": 80}
        ]),
    ],
)  # fmt: skip
def test_a_sentence_is_a_code_with_its_values(reason: str, found: list[dict[str, object]]) -> None:
    assert of_ok(reason) == {"case": "1", "status": "ok", "reason": "", "remarks": found}


def test_an_unknown_sentence_stays_the_reason() -> None:
    case = of_ok("only 4 samples; a cat sat on the board")
    assert (case["reason"], case["remarks"]) == (
        "a cat sat on the board",
        [{"code": "few_samples", "samples": 4}],
    )


def test_a_limit_of_the_variants_own_is_told_from_other_requirements() -> None:
    def limits(reason: str) -> object:
        case = {"case": "1", "status": "unsupported", "reason": reason}
        return old_words.of_record({"stage": "time", "cases": [case]})["cases"][0].get("own_limits")

    assert limits("needs M to be at most 8192 and N to be at most 16") == {"M": 8192, "N": 16}
    assert limits("needs N to be a multiple of 8 and M to be at most 8192") is None


@pytest.mark.parametrize("campaign", ["h200", "h100"])
def test_no_sentence_is_left_on_a_time_of_the_recorded_campaigns(campaign: str) -> None:
    for path in (RECORDED / campaign / "time").glob("*/*.json"):
        for record in FamilyRecord.read(path).variants.values():
            for case in record["cases"]:
                assert case["status"] != "ok" or case["reason"] == "", (path, case["reason"])
                assert door.decode(case.get("remarks", []), tuple[TimeRemark, ...], "") is not None


def test_a_table_of_sentences_gets_columns_of_codes() -> None:
    rows = {
        "status": ["ok", "unsupported", "crashed", "ok"],
        "reason": ["with the host's part of each launch", "needs M to be at most 8192", "signal", ""],
        "agreement": ["ok (ncu not compared: 2 kernels)", "", "", "disagree: rest 1 us, ncu 2 us"],
    }
    found = old_words.of_table(pd.DataFrame(rows), "measurements")
    assert list(found["remarks"]) == ['[{"code": "host_time"}]', "", "", ""]
    assert list(found["own_limits"]) == ["", json.dumps({"M": 8192}), "", ""]
    assert list(found["reason"]) == ["", *rows["reason"][1:]]
    assert list(found["agreement"]) == ["ok", "", "", "disagree"]
    assert old_words.of_table(found, "measurements").equals(found)


def test_the_cases_of_a_claim_are_those_of_its_evidence() -> None:
    claims = pd.DataFrame({
        "case": ["4096"] * 3,
        "evidence": ["median_us(naive, 8192) = 9 us; ipc(a) = 1; M = 2", 'sass(a, LDG) = 3 instructions', ""],
        "reason": ["", "about an A6000: its L2", "b was not measured"],
    })  # fmt: skip
    found = old_words.of_table(claims, "claims")
    assert list(found["cases"]) == ["8192, 4096", "4096", "4096"]
    assert list(found["about"]) == ["", "an A6000", ""]
