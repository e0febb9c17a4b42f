"""The sentences of version 1 become codes with their values, in cases and in tables; an unknown one is not guessed."""

import json

import pandas as pd
import pytest

from warplog.migration import words


@pytest.mark.parametrize(
    ("reason", "codes"),
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
def test_a_sentence_is_a_code_with_its_values(reason: str, codes: list[dict[str, object]]) -> None:
    case = {"case": "1", "status": "ok", "reason": reason}
    assert words.of_case(case) == {"case": "1", "status": "ok", "reason": "", "remarks": codes}


def test_an_unknown_sentence_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^a cat sat on the board$"):
        words.of_case({"case": "1", "status": "ok", "reason": "only 4 samples; a cat sat on the board"})


def test_why_a_case_is_not_ok_stays_as_it_is() -> None:
    case = {"case": "1", "status": "crashed", "reason": "a cat sat on the board"}
    assert words.of_case(case) == case


def test_a_limit_of_the_variants_own_is_told_from_other_requirements() -> None:
    def limits(reason: str) -> object:
        return words.of_case({"case": "1", "status": "unsupported", "reason": reason}).get("own_limits")

    assert limits("needs M to be at most 8192 and N to be at most 16") == {"M": 8192, "N": 16}
    assert limits("needs N to be a multiple of 8 and M to be at most 8192") is None


def test_a_table_of_sentences_gets_columns_of_codes() -> None:
    rows = {
        "status": ["ok", "unsupported", "crashed", "ok"],
        "reason": ["with the host's part of each launch", "needs M to be at most 8192", "signal", None],
        "agreement": ["ok (ncu not compared: 2 kernels)", "", "", "disagree: rest 1 us, ncu 2 us"],
    }
    table = words.of_table(pd.DataFrame(rows), "measurements")
    assert list(table["remarks"]) == ['[{"code": "host_time"}]', "", "", ""]
    assert list(table["own_limits"]) == ["", json.dumps({"M": 8192}), "", ""]
    assert list(table["reason"]) == ["", *rows["reason"][1:3], ""]
    assert list(table["agreement"]) == ["ok", "", "", "disagree"]
    assert words.of_table(table, "measurements") is table


def test_the_cases_of_a_claim_are_those_of_its_evidence() -> None:
    claims = pd.DataFrame({
        "case": ["4096"] * 3,
        "evidence": ["median_us(naive, 8192) = 9 us; ipc(a) = 1; M = 2", 'sass(a, LDG) = 3 instructions', ""],
        "reason": ["", "about an A6000: its L2", "b was not measured"],
    })  # fmt: skip
    table = words.of_table(claims, "claims")
    assert list(table["cases"]) == ["8192, 4096", "4096", "4096"]
    assert list(table["about"]) == ["", "an A6000", ""]
