"""Types of single values in records, with their bounds; a `$comment` is how an error names what was expected."""

from collections.abc import Mapping
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

Name = Annotated[
    str,
    Meta(
        pattern="^[a-z][a-z0-9_]{0,63}$",
        extra_json_schema={"$comment": "up to 64 small letters, digits and _, beginning with a letter"},
    ),
]
Slug = Annotated[
    str,
    Meta(
        pattern="^[a-z0-9][a-z0-9-]{0,63}$",
        extra_json_schema={"$comment": "up to 64 small letters, digits and -"},
    ),
]
Arch = Annotated[
    str, Meta(pattern="^sm_[0-9]{2,3}$", extra_json_schema={"$comment": "an architecture such as sm_90"})
]
Text = Annotated[str, Meta(max_length=100_000)]
CaseName = Annotated[str, Meta(max_length=64)]
Sha256 = Annotated[
    str,
    Meta(
        pattern="^([0-9a-f]{64})?$",
        extra_json_schema={"$comment": "a SHA-256 in hexadecimal digits, or nothing"},
    ),
]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Versions = Mapping[str, str | None]


class Frozen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value of named fields that never changes; an unknown key is refused."""
