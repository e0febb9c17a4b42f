"""A column of a table, and those that many tables share."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column; `kind` is str, int, float or bool; `unit` is '' for names and ratios."""

    kind: str
    unit: str
    meaning: str


KEY: Mapping[str, Column] = {
    "family": Column("str", "", "family of kernels"),
    "variant": Column("str", "", "variant of the family"),
    "case": Column("str", "", "problem; empty where the value holds for all of them"),
}
ORIGIN: Mapping[str, Column] = {
    "gpu": Column("str", "", "slug of the GPU"),
    "gpu_name": Column("str", "", "the GPU's name as the driver gives it"),
    "origin": Column(
        "str", "", "live: measured by this installation; recorded: taken from a recorded campaign"
    ),
    "campaign": Column("str", "", "name of the campaign"),
}
STATUS: Mapping[str, Column] = {
    "status": Column("str", "", "ok, or what went wrong (compile_error, wrong, crashed, timeout, …)"),
    "reason": Column("str", "", "why the status is not ok; a remark where it is"),
}
