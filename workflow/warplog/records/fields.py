"""Types of single values in records, with their bounds; a `$comment` is how an error names what was expected."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

VERSION = 2  # of the format of all records
Status = Literal[
    "ok",
    "compile_error",
    "wrong",
    "finding",
    "crashed",
    "timeout",
    "out_of_memory",
    "skipped",
    "unsupported",
    "denied",
    "missing",
    "error",
]
Origin = Literal["live", "recorded"]
Tool = Literal["ncu", "nsys"]
Language = Literal["cuda", "triton", "cupy", "torch"]


def matching(pattern: str, expected: str) -> Meta:
    """Returns the rule that the whole of a text matches `pattern`; errors say `expected` in place of the pattern."""
    # `$` alone would let a line break follow.
    return Meta(pattern=rf"^{pattern}$(?!\n)", extra_json_schema={"$comment": expected})


UNIQUE = Meta(extra_json_schema={"uniqueItems": True})  # what JSON Schema says of `each_once`


def each_once(*lists: Sequence[object]) -> None:
    """Checks that no list names a value twice.

    Raises:
        ValueError: One does.
    """
    for values in lists:
        if twice := [value for value in values if values.count(value) > 1]:
            raise ValueError(f"{twice[0]!r} occurs twice")


Name = Annotated[
    str, matching("[a-z][a-z0-9_]{0,63}", "up to 64 small letters, digits and _, beginning with a letter")
]
Slug = Annotated[str, matching("[a-z0-9][a-z0-9-]{0,63}", "up to 64 small letters, digits and -")]
Arch = Annotated[str, matching("sm_[0-9]{2,3}", "an architecture such as sm_90")]
Text = Annotated[str, Meta(max_length=100_000)]
CaseName = Annotated[str, Meta(max_length=64)]
Sha256 = Annotated[str, matching("([0-9a-f]{64})?", "a SHA-256 in hexadecimal digits, or nothing")]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Versions = Mapping[str, str | None]


class Frozen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value of named fields that never changes; an unknown key is refused."""
