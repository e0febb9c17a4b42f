"""The subcommand `warplog init`: a folder warplog/ in somebody's repository, with one family to start from."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template

from warplog.core.errors import WarplogError
from warplog.core.paths import FOLDER, has_family

OPERATIONS = ("elementwise", "rows", "matmul")
_ABOUT = """\
Writes FOLDER/warplog/ with a configuration, a README and one family to start from: its contract, its reference and a
first kernel. Asks for what is not given if it runs on a terminal. No file is overwritten; in a folder that has
warplog/ already, a further family is added.
"""
_STARTERS = Path(__file__).with_name("starters")
# dtype: bytes of an element, its C++ type, the type of sums, the type of NumPy's arrays, the header.
_TYPES = {
    "float32": (4, "float", "float", "float32", "cuda_runtime.h"),
    "float64": (8, "double", "double", "float64", "cuda_runtime.h"),
    "float16": (2, "__half", "float", "float16", "cuda_fp16.h"),
    "bfloat16": (2, "__nv_bfloat16", "float", "float32", "cuda_bf16.h"),
}
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SHARED = {
    "README.md.in": "README.md",
    "config.yaml.in": "config/config.yaml",
    "gitignore.in": ".gitignore",
}


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the subcommand to the parser."""
    raw = argparse.RawDescriptionHelpFormatter
    init = commands.add_parser(
        "init",
        help="write a folder warplog/ for kernels of your own",
        description=_ABOUT,
        epilog="example:\n  warplog init --op rows --dtype float16 --name softmax",
        formatter_class=raw,
    )
    init.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="repository (default: this folder)",
    )
    init.add_argument("--name", default="", help="name of the family (default: the operation)")
    init.add_argument("--op", default="", help=f"{', '.join(OPERATIONS)} (default: elementwise)")
    init.add_argument("--dtype", default="", help=f"{', '.join(_TYPES)} (default: float32)")
    init.set_defaults(command="init")


def run(options: argparse.Namespace) -> int:
    """Writes the folder and names the files.

    Raises:
        WarplogError: FOLDER does not exist or is itself warplog/, a name, operation or dtype is invalid, or a file of
            the family exists.
    """
    if not options.folder.is_dir():
        raise WarplogError(f"{options.folder}: no such folder; create it, or correct FOLDER")
    if options.folder.resolve().name == FOLDER and has_family(options.folder):
        above = f"warplog init {options.folder / '..'} --name NAME"
        raise WarplogError(f"{options.folder.resolve()}: has families already; `{above}` adds one")
    operation = _one_of("--op", options.op or _asked("operation", OPERATIONS), OPERATIONS)
    dtype = _one_of("--dtype", options.dtype or _asked("dtype", tuple(_TYPES)), tuple(_TYPES))
    name = options.name or _asked("name of the family", (operation,))
    if not _NAME.fullmatch(name):
        raise WarplogError(f"--name {name!r}: expected small letters, digits and _, such as row_sum")
    for path in write(options.folder / FOLDER, name, operation, dtype):
        print(path)
    print(
        f"next: add kernels to {options.folder / FOLDER / 'kernels' / name}; then: warplog run {options.folder}"
    )
    return 0


def write(folder: Path, name: str, operation: str, dtype: str) -> list[Path]:
    """Writes the family, and what is missing of the files that all families share; returns the new files.

    Raises:
        WarplogError: a file of the family exists; nothing was written.
    """
    size, cpp, total, array, header = _TYPES[dtype]
    values = {"name": name, "dtype": dtype, "bytes": size, "type": cpp, "sum": total, "array": array}
    values["include"] = f"#include <{header}>\n"
    family = {
        path: folder / "kernels" / name / path.stem for path in sorted((_STARTERS / operation).iterdir())
    }
    for target in family.values():
        if target.exists():
            raise WarplogError(
                f"{target}: exists and is not overwritten; choose another --name, or remove it"
            )
    shared = {_STARTERS / source: folder / target for source, target in _SHARED.items()}
    wanted = {source: target for source, target in shared.items() if not target.exists()} | family
    for source, target in wanted.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x") as file:
            file.write(Template(source.read_text()).substitute(values))
    return list(wanted.values())


def _asked(question: str, choices: Sequence[str]) -> str:
    """Returns the answer on a terminal; the first choice for none, or without a terminal."""
    if not sys.stdin.isatty():
        return choices[0]
    listed = f" ({', '.join(choices)})" if len(choices) > 1 else ""
    return input(f"{question}{listed} [{choices[0]}]: ").strip() or choices[0]


def _one_of(option: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise WarplogError(f"{option} {value!r}: expected one of {', '.join(allowed)}")
    return value
