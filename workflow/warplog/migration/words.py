"""The sentences of version 1: remarks on times, limits of variants, verdicts of profilers, subjects of claims."""

import json
import re
from collections.abc import Iterator, Mapping
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


def of_case(case: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a timed case, or the status and reason of a row, with codes instead of sentences.

    Raises:
        ValueError: A sentence on a case that is ok is none of version 1; the text is that sentence.
    """
    reason = str(case["reason"])
    if case["status"] == "unsupported" and (match := _OWN_LIMITS.fullmatch(reason)):
        limits = (limit.split(" to be at most ") for limit in match[1].split(" and "))
        return {**case, "own_limits": {name: int(most) for name, most in limits}}
    if case["status"] != "ok" or not reason:
        return dict(case)
    return {**case, "reason": "", "remarks": [_remark(part) for part in dict.fromkeys(reason.split("; "))]}


def of_table(table: "pd.DataFrame", name: str) -> "pd.DataFrame":
    """Returns a table with the columns of codes that it lacks; the table itself if it lacks none.

    Raises:
        ValueError: A sentence is none of version 1; the text is that sentence.
    """
    if name in _REMARKED and "remarks" not in table:
        reasons = table["reason"].fillna("") if "reason" in table else [""] * len(table)
        cases = [of_case({"status": s, "reason": r}) for s, r in zip(table["status"], reasons, strict=True)]
        table = table.assign(
            reason=[case["reason"] for case in cases], remarks=[_cell(case.get("remarks")) for case in cases]
        )
        if name == "measurements":
            table = table.assign(own_limits=[_cell(case.get("own_limits")) for case in cases])
    if name == "measurements" and "agreement" in table and "agreement_notes" not in table:
        words = table["agreement"].fillna("").astype(str)
        table = table.assign(agreement=words.str.extract("^(ok|disagree)")[0].fillna(""), agreement_notes="")
    if name == "claims" and "about" not in table:
        about = [_ABOUT.match(str(reason)) for reason in table["reason"]]
        table = table.assign(about=[match[1] if match else "" for match in about], cases=list(_cases(table)))
    return table


def _remark(sentence: str) -> dict[str, Any]:
    for pattern, code in _SENTENCES.items():
        if match := re.fullmatch(pattern, sentence):
            values = {key: text if key == "gpu" else int(text) for key, text in match.groupdict().items()}
            return {"code": code, **values}
    raise ValueError(sentence)


def _cell(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""


def _cases(claims: "pd.DataFrame") -> Iterator[str]:
    for evidence, own in zip(claims["evidence"], claims["case"], strict=True):
        named = dict.fromkeys(case or str(own) for case in _TERM.findall(str(evidence)))
        yield ", ".join(named) or str(own)
