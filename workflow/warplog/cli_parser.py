"""The command line of `warplog`: its commands, their options and help."""

import argparse
from pathlib import Path

from warplog import __version__

FORMATS = ("csv", "json", "parquet")

_ABOUT = """\
Is my CUDA kernel right, how fast is it really, and why?

The campaign itself is a Snakemake workflow: run `uv run snakemake` in the project's folder.
This command looks after what surrounds it.
"""
_EXAMPLES = """\
examples:
  warplog doctor                        what this machine can do, what it lacks, and the remedy
  warplog doctor --json                 the same, for programs
  warplog extract run.ncu-rep           metrics of an Nsight Compute report, as CSV
  warplog extract *.ncu-rep *.sqlite -o all.parquet
                                        many reports, Nsight Systems too, as one table
  warplog record h200                   keep this campaign for machines without a GPU
  warplog compare h200 results          is this campaign slower than the recorded one? status 1 if so
  warplog compare parents results       is every variant faster than the one it improves on?
  warplog explain --family sgemm        why each variant beats its parent, from the counters
  warplog claims --family sgemm         what the numbers say of what was published
"""
_COMPARE = """\
Says of every variant and case whether B is FASTER, SLOWER or the SAME as A, from all samples of both: rank-sum
test (p < 0.002 after Holm's correction), interval of the ratio, least gap, and the same again in cycles.
The least gap is what the same code shows from process to process, by the A/A rounds of A, B or results/; 1.3 % where
there are none, 0.5 % at least.
AMBIGUOUS: nothing is shown, and why. REFUSED: GPU, driver, clocks or status differ. Counters are judged apart.
Exit status 1: a case is SLOWER, in time and in cycles, or nothing could be compared.
"""
_EXTRACT = """\
Reads reports, made by warplog or not: Nsight Compute's .ncu-rep, its CSV (raw and details pages) and its text,
Nsight Systems' SQLite exports, .nsys-rep (where nsys is installed) and `nsys stats`, logs of `nvcc -Xptxas -v`,
and SASS dumps of cuobjdump. Writes one row for each metric and kernel launch:
source, tool, tool_version, gpu, cc, kernel, launch, metric, value, unit, status, reason.
A metric that a report lacks has no value, and the reason beside it. Neither a GPU nor ncu or nsys is needed.
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser; what it parses has the command's name in `command`."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("warplog", description=_ABOUT, epilog=_EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"warplog {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    _add_doctor(commands)
    extract = commands.add_parser(
        "extract", help="turn profiler reports into a table", description=_EXTRACT, formatter_class=raw
    )
    extract.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a report, see above")
    extract.add_argument("--format", choices=FORMATS, help="default: as OUT ends, else csv")
    extract.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="write there, not to standard output"
    )
    extract.set_defaults(command="extract", parser=extract)

    _add_record(commands)
    _add_compare(commands)
    _add_readers(commands)
    _add_best_of(commands)
    return parser


def _add_record(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    record = commands.add_parser("record", help="keep the live campaign in results/recorded/")
    record.description = (
        "Copies the records and tables of the finished live campaign, without the large files, so that a"
        " machine without a GPU can work from them. Commit the folder."
    )
    record.add_argument("name", help="name of the recorded campaign, for instance the GPU's: h200")
    record.add_argument(
        "--report",
        action="append",
        default=[],
        metavar="VARIANT",
        help="keep the ncu session that holds it too (repeatable)",
    )
    record.set_defaults(command="record")


def _add_doctor(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    doctor = commands.add_parser("doctor", help="say what this machine can do and what it lacks")
    doctor.description = (
        "Looks at GPU, driver, tools and settings. Changes nothing. Exit status 1: it cannot work, or --oracle"
        " found a wrong number."
    )
    doctor.add_argument("--json", action="store_true", help="write JSON")
    doctor.add_argument(
        "--oracle",
        action="store_true",
        help="run the kernels whose true answers are known (`snakemake oracle`)",
    )
    doctor.add_argument("--project", type=Path, help="the project's folder (default: the one we are in)")
    doctor.set_defaults(command="doctor")


def _add_compare(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    compare = commands.add_parser(
        "compare",
        help="say what became slower or faster",
        description=_COMPARE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = "results folder, name of a recorded campaign, or mlflow:<campaign or run id>"
    compare.add_argument("a", metavar="A", help=f"{where}; or parents: the parent of each variant, in B")
    compare.add_argument("b", metavar="B", help=f"{where}: what is judged")
    compare.add_argument(
        "--again", action="append", default=[], metavar="A2",
        help="another run of A's sources (repeatable): a further process for A, and for the least gap",
    )  # fmt: skip
    compare.add_argument(
        "--kernels", action="append", default=[], type=Path, metavar="FOLDER",
        help="for parents: a folder of families beside kernels/ (repeatable)",
    )  # fmt: skip
    compare.add_argument(
        "--min-effect", type=_share, default=0.005, metavar="X", help="least gap that counts (default: 0.005)"
    )
    compare.add_argument("--gpu", default="", help="the GPU's slug, where a folder holds several")
    compare.add_argument("--json", action="store_true", help="write JSON")
    compare.set_defaults(command="compare")


def _add_readers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    explain = commands.add_parser("explain", help="say why a variant is faster than its parent")
    explain.description = (
        "Writes Markdown: for each variant and its parent, what changed and how much of the cycles it accounts"
        " for; for each kernel, what bounds it. Only what the tables' counters support."
    )
    explain.set_defaults(command="explain")
    claims = commands.add_parser("claims", help="say which published claims the numbers confirm")
    claims.description = (
        "Judges each family's claims by the tables. A refuted claim is a finding, no failure."
    )
    claims.set_defaults(command="claims")
    published = commands.add_parser("published", help="set a campaign beside what others printed")
    published.description = (
        "Writes Markdown: each variant's speed, its share of the baseline at every timed size, and the figures"
        " under `published` in family.yaml."
    )
    published.add_argument(
        "--into",
        type=Path,
        metavar="FILE",
        help="put it between the lines <!-- warplog published --> and <!-- end --> of FILE",
    )
    published.set_defaults(command="published")
    for reader in (explain, claims, published):
        reader.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="default: results/tables")
        reader.add_argument("--family", default="", help="default: every family in the tables")
        reader.add_argument("--gpu", default="", help="the GPU's slug, where the tables hold several")


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text}: a share from 0 to 1 is wanted, such as 0.005")
    return value


def _add_best_of(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    best_of = commands.add_parser("best-of", help="write the table that the variant best_of dispatches by")
    best_of.description = (
        "Writes kernels/FAMILY/best_of.cuh from a campaign's tables: the fastest variant of each case."
    )
    best_of.add_argument("family", metavar="FAMILY")
    best_of.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="folder of tables (default: results/tables)"
    )
    best_of.add_argument("--gpu", default="", help="the GPU's slug, where the tables hold several")
    best_of.set_defaults(command="best-of")
