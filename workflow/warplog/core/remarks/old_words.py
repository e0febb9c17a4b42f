"""Reads the sentences in records and tables that were written before these held codes.

The two recorded campaigns hold such sentences; once they are migrated, this module goes.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_SENTENCES = {
    r"only (?P<samples>\d+) samples?": "few_samples",
    r"(?P<samples>\d+) samples in the \S+ s allowed": "few_samples",
    r"(?P<dropped>\d+) of (?P<taken>\d+) launches discarded: (set SM )?clock below (?P<below_mhz>\d+) MHz": "discarded",
    r"clock held at (?P<mhz>\d+) MHz in spite of pauses": "held_clock",
    r"(?P<samples>\d+) samples? not blocked: the launcher synchronises": "not_blocked",
    r"with the host's part of each launch": "host_time",
    r"hot times without a CUDA graph": "no_graph",
    r"recorded for an earlier source": "earlier_source",
    r"no ratio: the baseline was measured on another board": "other_board",
    r"default parameters: not tuned on (?P<gpu>\S+)": "not_tuned",
    r"tuned on (?P<gpu>\S+) with (?P<seen>\d+) of (?P<settings>\d+) settings measured": "partly_tuned",
    r"parameters from a search on (?P<gpu>\S+) with an earlier version of this source": "tuned_for_earlier",
}
_OWN_LIMITS = re.compile(r"needs (\w+ to be at most \d+(?: and \w+ to be at most \d+)*)")
# A term in the evidence of a claim, `median_us(naive, 8192) = 3.5 us`; the second argument of `sass` is an opcode.
_TERM = re.compile(r"\b(?!sass\()\w+\([\w.]+(?:, ([^)]*))?\) = ")
_ABOUT = re.compile(r"about ([^:;]+)")
_REMARKED = {"measurements", "variants", "published", "launches"}


def of_record(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a variant; if it is of stage `time`, with codes instead of sentences in its cases."""
    if record["stage"] != "time":
        return record
    return {**record, "cases": [_of_case(one) for one in record["cases"]]}


def of_table(table: "pd.DataFrame", name: str) -> "pd.DataFrame":
    """Returns a table with the columns of codes that it lacks."""
    if name in _REMARKED and "remarks" not in table:
        pairs = list(zip(table["status"], table["reason"], strict=True)) if "reason" in table else []
        told = {pair: _of_case({"status": pair[0], "reason": pair[1]}) for pair in dict.fromkeys(pairs)}
        table = table.assign(
            reason=[told[pair]["reason"] for pair in pairs] if pairs else "",
            remarks=[_cell(told[pair].get("remarks", ())) for pair in pairs] if pairs else "",
        )
        if name == "measurements":
            limits = [told[pair].get("own_limits") for pair in pairs]
            table = table.assign(
                own_limits=[json.dumps(one) if one else "" for one in limits] if pairs else ""
            )
    if name == "measurements" and "agreement" in table and "agreement_notes" not in table:
        words = table["agreement"].fillna("").astype(str)
        table = table.assign(agreement=words.str.extract("^(ok|disagree)")[0].fillna(""), agreement_notes="")
    if name == "claims" and "about" not in table:
        about = [_ABOUT.match(str(reason)) for reason in table["reason"]]
        table = table.assign(about=[found[1] if found else "" for found in about])
        if {"evidence", "case"} <= set(table):
            table = table.assign(cases=list(_cases(table)))
    return table


def _of_case(case: dict[str, Any]) -> dict[str, Any]:
    if case["status"] == "unsupported" and (found := _OWN_LIMITS.fullmatch(str(case["reason"]))):
        limits = (one.split(" to be at most ") for one in found[1].split(" and "))
        return {**case, "own_limits": {name: int(most) for name, most in limits}}
    if case["status"] != "ok" or not case["reason"] or case["reason"] != case["reason"]:
        return case
    told = {sentence: _remark(sentence) for sentence in str(case["reason"]).split("; ")}
    known = [remark for remark in told.values() if remark]
    rest = "; ".join(sentence for sentence, remark in told.items() if not remark)
    return {**case, "reason": rest, **({"remarks": known} if known else {})}


def _cell(remarks: Sequence[dict[str, Any]]) -> str:
    return json.dumps(remarks, ensure_ascii=False) if remarks else ""


def _remark(sentence: str) -> dict[str, Any] | None:
    for pattern, code in _SENTENCES.items():
        if found := re.fullmatch(pattern, sentence):
            values = {key: text if key == "gpu" else int(text) for key, text in found.groupdict().items()}
            return {"code": code, **values}
    return None


def _cases(claims: "pd.DataFrame") -> Iterator[str]:
    for evidence, own in zip(claims["evidence"], claims["case"], strict=True):
        named = dict.fromkeys(case or str(own) for case in _TERM.findall(str(evidence)))
        yield ", ".join(named) or str(own)
