"""Recorded campaigns of a GPU that nobody measured: copies of a recorded campaign under another GPU's name."""

import json
import shutil
from pathlib import Path
from typing import Any

from warplog.core.verification import digests


def record_as(source: Path, place: Path, gpu: str, name: str, sms: int, families: list[str]) -> Path:
    """Copies the records of `families` to `place`, as if a GPU with the slug `gpu` and so many SMs had made them.

    The times and counters are those of the source; the campaign is named made-up-<gpu>.
    """
    (record,) = (source / "campaign").glob("*.json")
    own = json.loads(record.read_text())

    def moved(path: Path) -> Path:
        return place / Path(
            *(gpu if part == own["gpu"] else part for part in path.relative_to(source).parts[:-1]),
            path.name.replace(f"{own['gpu']}.json", f"{gpu}.json"),
        )

    for path in sorted(source.rglob("*.json")):
        stage = path.relative_to(source).parts[0]
        if path.name == digests.MANIFEST or stage in ("tables", "tune", "aa", "sanitize"):
            continue
        if stage != "campaign" and not any(
            family in path.parts or path.name.startswith(f"{family}.") for family in families
        ):
            continue
        target = moved(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(_renamed(json.loads(path.read_text()), own, gpu, name)))
        for beside in ("kernel.sass",) if stage == "build" else ():
            if path.with_name(beside).is_file():
                shutil.copy(path.with_name(beside), target.parent)
    about = {**_renamed(own, own, gpu, name), "campaign": f"made-up-{gpu}"}
    about["device"] = {**about["device"], "slug": gpu, "name": name, "sms": sms}
    moved(record).write_text(json.dumps(about))
    digests.write_manifest(place, about)
    return place


def _renamed(value: Any, own: dict[str, Any], gpu: str, name: str) -> Any:
    """Returns JSON data with the GPU's slug and name replaced."""
    if isinstance(value, dict):
        return {key: _renamed(one, own, gpu, name) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, own, gpu, name) for one in value]
    return {own["gpu"]: gpu, own["gpu_name"]: name}.get(value, value) if isinstance(value, str) else value
