"""The Python packages that warplog imports: those of the reader, and those of the extra `workflow`."""

import importlib.util
from collections.abc import Mapping

from warplog.cli.checkup.finding import Finding

# Name on PyPI -> name of the module, as in pyproject.toml.
READER: Mapping[str, str] = {
    "jinja2": "jinja2",
    "jsonschema-rs": "jsonschema_rs",
    "markupsafe": "markupsafe",
    "msgspec": "msgspec",
    "ncu-report": "ncu_report",
    "numpy": "numpy",
    "nvidia-ml-py": "pynvml",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "pyyaml": "yaml",
    "rich": "rich",
    "scipy": "scipy",
    "simpleeval": "simpleeval",
}
WORKFLOW: Mapping[str, str] = {
    "altair": "altair",
    "matplotlib": "matplotlib",
    "mlflow": "mlflow",
    "pillow": "PIL",
    "pygments": "pygments",
    "seaborn": "seaborn",
    "snakemake": "snakemake",
    "vl-convert-python": "vl_convert",
}
_READER_COMMAND, _WORKFLOW_COMMAND = "pip install warplog", 'pip install "warplog[workflow]"'


def finding() -> Finding:
    """Returns which packages are missing: a campaign requires all of them, reading reports only the reader's."""
    reader, workflow = _absent(READER), _absent(WORKFLOW)
    if not reader and "snakemake" in workflow:
        text = f"the reader alone is installed; {_WORKFLOW_COMMAND} to run campaigns"
        return Finding("packages", "info", text)
    if absent := [*reader, *workflow]:
        command = _WORKFLOW_COMMAND if workflow else _READER_COMMAND
        remedy = f"{command} (in a checkout: uv sync --inexact)"
        return Finding("packages", "fail", f"missing: {', '.join(absent)}", remedy)
    return Finding("packages", "ok", f"all {len(READER) + len(WORKFLOW)} are installed")


def missing(module: str) -> str:
    """Returns the error text for a module that cannot be imported: its package, and the command that installs it."""
    module = module.partition(".")[0]
    names = {imported: name for packages in (READER, WORKFLOW) for name, imported in packages.items()}
    text = f"the Python package {names.get(module, module)} is not installed"
    if module in WORKFLOW.values():
        text += f"; it belongs to the extra workflow: {_WORKFLOW_COMMAND}"
    else:
        text += f": {_READER_COMMAND}"
    return f"{text} (in a checkout: `uv run warplog`)"


def _absent(packages: Mapping[str, str]) -> list[str]:
    return [name for name, module in packages.items() if importlib.util.find_spec(module) is None]
