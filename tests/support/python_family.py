"""The family of host_family with variants that are Python modules, which get NumPy arrays from the backend `numpy`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from host_family import REFERENCE, YAML, make_job
from warplog.catalog.family import Family, load_family
from warplog.core.records import write_json
from warplog.measure.job import Job

RIGHT = """
def launch(arrays, scalars, stream):
    arrays["y"][:] = arrays["x"] * scalars["factor"]
"""


def make_family(
    folder: Path, modules: Mapping[str, str], options: str = "", language: str = "cupy"
) -> Family:
    """Writes the family to `folder`/scale with one variant per module, and loads it; `options` are further keys."""
    place = folder / "scale"
    place.mkdir(parents=True, exist_ok=True)
    (place / "reference.py").write_text(REFERENCE)
    for name, text in modules.items():
        (place / f"{name}.py").write_text(text)
    entries = (f"  - {{name: {name}, idea: an idea, language: {language}{options}}}\n" for name in modules)
    head = YAML[: YAML.index("  - {name: right")]
    (place / "family.yaml").write_text(head + "".join(entries))
    return load_family(place / "family.yaml")


def make_python_job(folder: Path, module: str, options: str = "", **settings: Any) -> Job:
    """Returns a job whose launcher is the module; its build record is that of a successful build."""
    job = make_job(folder, "")  # for the rest of a job
    family = make_family(folder / "kernels", {"right": module}, options)
    variant = family.variants[0]
    job = replace(job, family=family, variant=variant, settings={**job.settings, **settings})
    library = {"source_sha256": variant.fingerprint(), "library_sha256": "a" * 64, "language": "cupy"}
    write_json(job.build_folder / "record.json", {**job.build, **library}, "record")
    return replace(job)  # without the cached build record
