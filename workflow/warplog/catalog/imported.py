"""The project's own modules that a Python source imports, found without importing anything.

The plan and the fingerprint of a source need them on machines without a GPU. What is found here contains at least what
Python reads: every import statement counts, wherever it stands, and a module counts that an installed one may hide.
"""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path


def imported(source: Path, folders: Sequence[Path]) -> list[Path]:
    """Returns the files in `folders` that `source` imports, directly or not, sorted.

    `import tiles` and `from .tiles import size` both look for tiles.py or tiles/__init__.py in `folders`; a relative
    import inside of a package looks in that package. The worker imports them in the same way.
    """
    modules: set[Path] = set()
    unread = [source]
    while unread:
        file = unread.pop()
        for module in _files(file, folders):
            if module != source and module not in modules:
                modules.add(module)
                unread.append(module)
    return sorted(modules)


def _files(file: Path, folders: Sequence[Path]) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # Python reports it when it imports the file
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules(alias.name.split("."), folders)
        elif isinstance(node, ast.ImportFrom):
            places = folders if node.level == 0 else _relative(file, node.level, folders)
            above = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from _modules([*above, alias.name], places)


def _relative(file: Path, level: int, folders: Sequence[Path]) -> Sequence[Path]:
    """Returns where a relative import looks: the package of the file; at the top level, all folders."""
    package = file.parent
    if level == 1 and package in folders:
        return folders
    return (package.parents[level - 2],) if 2 <= level <= len(package.parents) + 1 else (package,)


def _modules(names: Sequence[str], places: Sequence[Path]) -> Iterator[Path]:
    """Yields the files of the module and of the packages that contain it."""
    for place in places:
        for count in range(1, len(names) + 1):
            stem = place.joinpath(*names[:count])
            for path in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
                if path.is_file():
                    yield path
