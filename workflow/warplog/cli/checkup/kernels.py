"""Checks the families of the project, and the packages that their Python variants require."""

from collections.abc import Mapping
from pathlib import Path

from warplog.catalog import family as catalog
from warplog.catalog import languages
from warplog.catalog.family import Family
from warplog.cli.checkup.finding import Finding
from warplog.core.errors import WarplogError
from warplog.machine import packages
from warplog.records.config import configured


def load(project: Path) -> Mapping[str, Family]:
    """Returns the families of the project and of its `kernel_folders`, by name.

    Raises:
        WarplogError: the configuration or a family is not valid, or a folder is missing.
    """
    further = configured(project).kernel_folders
    return catalog.load([project / "kernels", *(project / folder for folder in further)])


def finding(project: Path, gpu_present: bool) -> Finding:
    """Reports how many families and variants there are, an invalid family, and missing packages with who needs them."""
    try:
        families = load(project)
    except WarplogError as error:
        return Finding("kernels", "fail", str(error), "`warplog docs extending` explains each key")
    variants = [
        (f"{family.name}/{v.name}", v.language) for family in families.values() for v in family.variants
    ]
    text = f"families: {len(families)}, variants: {len(variants)}"
    needed = {module: name for name, language in reversed(variants) for module in languages.MODULES[language]}
    if gpu_present:
        needed.pop("cupy", None)  # has a finding of its own
    absent = {module: name for module, name in needed.items() if not packages.version(module)}
    if not absent:
        return Finding("kernels", "ok", text)
    missing = ", ".join(f"{module} ({name} needs it)" for module, name in absent.items())
    install = f"pip install {' '.join(map(packages.distribution, absent))}"
    return Finding("kernels", "warn" if gpu_present else "info", f"{text}; not installed: {missing}", install)
