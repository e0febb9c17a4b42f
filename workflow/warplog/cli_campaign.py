"""The commands that read campaigns: compare, explain, claims."""

import argparse
import sys
from pathlib import Path

_COMPARE = """\
Says of every variant and case whether B is FASTER, SLOWER or the SAME as A, from all samples of both: rank-sum
test (p < 0.002 after Holm's correction), interval of the ratio, least gap, and the same again in cycles.
AMBIGUOUS: nothing is shown, and why. REFUSED: GPU, driver, clocks or status differ. Counters are judged apart.
Exit status 1: a case is SLOWER, in time and in cycles, or nothing could be compared.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the commands to the parser of `warplog`."""
    _add_compare(commands)
    _add_readers(commands)


def project() -> Path:
    """The project's folder: the one we are in, or the nearest above it."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "Snakefile").is_file()), here)


def _add_compare(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    compare = commands.add_parser(
        "compare",
        help="say what became slower or faster",
        description=_COMPARE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = "results folder, or name of a recorded campaign"
    compare.add_argument("a", metavar="A", help=f"{where}: the reference")
    compare.add_argument("b", metavar="B", help=f"{where}: what is judged")
    compare.add_argument(
        "--again", action="append", default=[], metavar="A2",
        help="another run of A's code (repeatable): no gap counts that A shows against itself",
    )  # fmt: skip
    compare.add_argument(
        "--min-effect", type=_share, default=0.005, metavar="X", help="least gap that counts (default: 0.005)"
    )
    compare.add_argument("--gpu", default="", help="the GPU's slug, where a folder holds several")
    compare.add_argument("--json", action="store_true", help="write JSON")
    compare.set_defaults(command=_compare)


def _add_readers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    explain = commands.add_parser("explain", help="say why a variant is faster than its parent")
    explain.description = (
        "Writes Markdown: for each variant and its parent, what changed and how much of the cycles it accounts"
        " for; for each kernel, what bounds it. Only what the tables' counters support."
    )
    explain.set_defaults(command=_explain)
    claims = commands.add_parser("claims", help="say which published claims the numbers confirm")
    claims.description = (
        "Judges the claims of each family.yaml by the tables. A refuted claim is a finding, no failure."
    )
    claims.set_defaults(command=_claims)
    for reader in (explain, claims):
        reader.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="default: results/tables")
        reader.add_argument("--family", default="", help="default: every family in the tables")
        reader.add_argument("--gpu", default="", help="the GPU's slug, where the tables hold several")


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text}: a share from 0 to 1 is wanted, such as 0.005")
    return value


def _compare(options: argparse.Namespace) -> int:
    from warplog import comparison

    names = (options.a, options.b, *options.again)
    rows = comparison.run(names, project(), options.gpu, options.min_effect)
    if options.json:
        comparison.show_json(rows, sys.stdout)
    else:
        comparison.show(rows, sys.stdout)
    return comparison.exit_status(rows)


def _explain(options: argparse.Namespace) -> int:
    from warplog import explain, figure_data

    folder = options.folder or project() / "results" / "tables"
    for family in [options.family] if options.family else explain.families(folder):
        print(explain.markdown(figure_data.load(folder, family, options.gpu)))
    return 0


def _claims(options: argparse.Namespace) -> int:
    from warplog import catalog, claims
    from warplog.selection import choose_families

    families = catalog.load([project() / "kernels"])
    families = choose_families([options.family] if options.family else list(families), families)
    folder = options.folder or project() / "results" / "tables"
    claims.show(claims.judge_all(families, folder, options.gpu), sys.stdout)
    return 0
