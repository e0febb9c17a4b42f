"""The workflow's scripts as modules: they lie in no package, and the tests call their functions."""

import importlib.util
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"


def script(name: str) -> ModuleType:
    """The module of workflow/scripts/<name>.py, such as "publish/log_mlflow", made anew."""
    path = SCRIPTS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
