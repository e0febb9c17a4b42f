"""Carries records of version 1 to version 2: one record, or the file of a build, a search, a campaign or a family."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_of
from warplog.migration.words import of_case
from warplog.records import door
from warplog.records.family_file import FamilyRecord
from warplog.records.fields import VERSION
from warplog.records.stages import KINDS, RECORDED, folder_of

_KINDS: Mapping[str, type] = {folder_of(kind): kind for kind in KINDS}
_BOARD = (
    *("sm_mhz", "sm_mhz_min", "sm_mhz_max", "power_w", "power_w_max", "power_kind"),
    *("temperature_c", "throttle_reasons", "state_samples"),
)


def migrated(data: Any, where: str) -> Any:
    """Returns the JSON of one record in the present format; what is not of version 1 stays as it is.

    Args:
        where: prefix of the error, usually the file.

    Raises:
        WarplogError: A remark is not known to this release, or the record does not fit.
    """
    if not isinstance(data, dict) or data.get("schema") != VERSION - 1:
        return data
    if data.get("stage") not in _KINDS:
        raise WarplogError(f"{where}: stage is {data.get('stage')!r}, which no record of version 1 has")
    record = {**data, "schema": VERSION}
    if data["stage"] == "campaign":
        record.setdefault("id", sha256_of(data)[:16])  # by which its runs in a tracking store are known
    if data["stage"] == "time":
        try:
            record["cases"] = [_timed(case, where) for case in data["cases"]]
        except (KeyError, TypeError, AttributeError):
            raise WarplogError(f"{where}: its cases are not those of a record of version 1") from None
    return door.plain(door.decode(record, _KINDS[data["stage"]], where))


def migrated_file(data: Any, path: Path) -> str:
    """Returns the text of a file of records of version 1 in the present format.

    Raises:
        WarplogError: As for `migrated`.
    """
    if not isinstance(variants := data.get("variants"), dict):
        return door.as_json(migrated(data, str(path)), indent=1) + "\n"
    kind = next(
        (stage.record for stage in RECORDED if stage.of_family and stage.folder == data["stage"]), None
    )
    if kind is None or not variants:
        raise WarplogError(f"{path}: holds no records of version 1; delete it")
    records = FamilyRecord(path, kind, {})
    for name, record in variants.items():
        where = f"{path}: variants.{name}"
        records.variants[name] = door.decode(migrated(record, where), kind, where)
    return records.text()


def _timed(case: Mapping[str, Any], where: str) -> dict[str, Any]:
    try:
        timed = of_case(case)
    except ValueError as error:
        unknown = f"the remark {str(error)!r} is not known to this release"
        raise WarplogError(
            f"{where}: case {case['case']}: {unknown}; delete the entry and measure it again"
        ) from None
    if timed["status"] == "ok":
        timed["board"] = {key: timed.pop(key) for key in _BOARD if key in timed}
        timed |= {f"no_{name}": "not_recorded" for name in ("hot", "sustained") if name not in timed}
    return timed
