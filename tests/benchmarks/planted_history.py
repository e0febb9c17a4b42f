"""Makes a small repository in which one commit makes a reduction slower: for `warplog gate`, `bisect` and `watch`.

    python tests/benchmarks/planted_history.py DIR --guilty 5
    cd DIR; python -m warplog bisect good main --variant reduction/two_stage

Every commit changes the machine code of reduction/two_stage: an instruction compares with another constant. The guilty
one also lets the second launch, of one block, wait: by default for about 1 % of the time at 64 Mi elements on an H100.
A broken one does not compile; the next one does.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow"))

import yaml

KERNELS = Path(__file__).parents[2] / "kernels"
SOURCE = Path("kernels", "reduction", "two_stage.cu")
VARIANTS = ("grid_stride", "two_stage", "cg_block")  # the second is planted, the others are controls
COMMITS = 16
_SUMMED = "    if (threadIdx.x == 0) sums[blockIdx.x] = sum;\n"


def source(number: int, cycles: int = 0, broken: bool = False) -> str:
    """Returns the source of a commit, whose second launch waits for so many cycles of the SM clock."""
    text = (KERNELS.parent / SOURCE).read_text()
    changed = f"    if (n < -{number}) sums[0] = {number}.0f;  // never\n"
    if cycles:
        changed += "    const long long start = clock64();\n"
        changed += f"    while (gridDim.x == 1 && clock64() - start < {cycles});\n"
    if broken:
        changed += '#error "broken"\n'
    if text.count(_SUMMED) != 1:
        raise SystemExit(f"{SOURCE}: the line to plant at is gone")
    return text.replace(_SUMMED, changed + _SUMMED)


def make(folder: Path, guilty: int, broken: int, cycles: int) -> None:
    """Makes the repository: the tag `good`, and COMMITS commits after it on the branch `main`."""
    family = folder / SOURCE.parent
    shutil.copytree(KERNELS / "include", folder / "kernels" / "include")
    shutil.copytree(KERNELS / "reduction", family)
    contract = yaml.safe_load((family / "family.yaml").read_text())
    entries = [one for one in contract["variants"] if one["name"] in VARIANTS]
    kept = [{k: v for k, v in one.items() if k not in ("cause", "predicts")} for one in entries]
    contract |= {"variants": [dict(one, parent=None) for one in kept], "baseline": VARIANTS[0], "claims": []}
    (family / "family.yaml").write_text(yaml.safe_dump(contract, sort_keys=False, width=120))
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text("results/\n.snakemake/\n")
    for number in range(COMMITS + 1):
        slow = cycles if number >= guilty else 0
        (folder / SOURCE).write_text(source(number, slow, number == broken))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"change {number}" + (" (guilty)" if number == guilty else ""))
        if number == 0:
            git(folder, "tag", "good")


def git(folder: Path, *arguments: str) -> None:
    """Runs git in a folder, as nobody in particular."""
    who = ("-c", "user.name=planted", "-c", "user.email=planted@example.com", "-c", "core.autocrlf=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="new")
    parser.add_argument("--guilty", type=int, default=5, help=f"1 to {COMMITS}; more for none (default: 5)")
    parser.add_argument(
        "--broken", type=int, default=-1, help="a commit that does not compile (default: none)"
    )
    parser.add_argument(
        "--cycles", type=int, default=1900, help="that the second launch waits (default: 1900)"
    )
    options = parser.parse_args()
    make(options.folder, options.guilty, options.broken, options.cycles)


if __name__ == "__main__":
    main()
