"""The subcommands `warplog ab`, `watch`, `gate` and `bisect`: versions of kernels take turns on the GPU."""

import argparse
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core.errors import WarplogError, say
from warplog.core.text import printable

if TYPE_CHECKING:
    from warplog.duel.making import Target
    from warplog.records.campaign import Gpu

REGRESSION, USAGE, NO_VERDICT = 1, 2, 3
NONE = 1  # of a bisection
_ABOUT = """\
Is B faster than A, now? Both are compiled and loaded in one process, checked, and launched in turns on the same arrays,
in at least three processes with other addresses, until the verdict is clear or --seconds are spent.

A and B are variants of one family: FAMILY/VARIANT, VARIANT if its name is that of one family only, or a source FILE. A
file that is the source of no variant takes the place of the other side's. COMMIT: in front names a commit, tag or
branch, nvcc:VERSION: in front of that the compiler; either may stand alone for the other side's variant, or for that of
--variant. A compiler is one of this machine if it has that version, else the wheels of PyPI are installed.

FASTER, SLOWER: the gap is larger than what the same code shows, with p = 0.002 for all looks at the data together.
SAME: the 95 % interval of the ratio lies within --margin. AMBIGUOUS: neither; the interval states what is not excluded.
Exit status 0: there is a verdict, whatever it is. 2: A, B or an option is wrong. 3: there is none, because there is no
GPU, or a side does not compile, is wrong or crashes, or its compiler is missing.
"""
_EXAMPLES = """\
examples:
  warplog ab HEAD:warptile warptile                the working tree against the last commit
  warplog ab main:sgemm/warptile mine.cu           a file in place of that variant
  warplog ab sgemm/warptile nvcc:13.3              the compiler of the project against another one
  warplog ab nvcc:13.0 nvcc:13.3 --variant sgemm/warptile
  warplog ab sgemm/vectorized sgemm/warptile --case 4096 --json
"""


_GATE = """\
Does a change make any kernel slower? Each variant whose machine code differs between BASE and HEAD duels with itself,
as in `warplog ab`. What does not differ is not measured, except for two unchanged variants, first and last: if one of
them moves, the machine did.

Exit status 0: no loss. 1: a confirmed regression: slower by more than --margin, in time and in cycles. 2: a name or an
option is wrong. 3: the change could not be judged: no GPU, a variant that differs has no clear verdict, or the machine
moved.
"""
_GATE_EXAMPLES = """\
examples:
  warplog gate main                                the working tree against main
  warplog gate main HEAD --markdown comment.md     for a pull request
  warplog gate v1.2 --family sgemm --case 1024 --case 4096
  warplog gate main --pack gate.tar.xz --arch sm_90    where git is; no GPU needed
  warplog gate --packed gate.tar.xz                    on a machine with a GPU
"""


_BISECT = """\
Which commit after GOOD up to BAD made a case of a variant slower? A binary search: each commit that is looked at duels
with GOOD, as in `warplog ab`, unless its machine code is that of one before. What does not build, is wrong or has no
clear verdict is stepped around. The commit that is found duels with the one before it before it is named. The working
tree is neither read nor changed.

Exit status 0: found. 1: there is none: BAD is not slower than GOOD by more than --margin. 2: a name or an option is
wrong. 3: no commit can be named.
"""
_BISECT_EXAMPLES = """\
examples:
  warplog bisect v1.2 main                             if only one variant differs
  warplog bisect v1.2 main --variant sgemm/warptile --case 4096
"""


_WATCH = """\
On every save of the variant's source, of a file that it includes, or of family.yaml: is it faster now? The variant is
compiled, checked, and launched in turns with its last good version and with its parent, in three processes that stay.
One line a save, with the times of the session; of several saves in quick succession, the last one. Ctrl-C ends it.

The verdict is that of `warplog ab` after three short looks, which no further process confirms: ask `warplog ab` before
you believe a small difference.

Exit status 130: it was interrupted. 2: the name or an option is wrong. 3: there is no GPU.
"""
_WATCH_EXAMPLES = """\
examples:
  warplog watch sgemm/warptile                     the headline case
  warplog watch sgemm/warptile --case 4096
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the subcommands to the parser."""
    _add_ab(commands)
    _add_watch(commands)
    _add_gate(commands)
    _add_bisect(commands)


def _add_bisect(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    bisect = commands.add_parser(
        "bisect",
        help="find the first commit that made a kernel slower",
        description=_BISECT,
        epilog=_BISECT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bisect.add_argument("good", metavar="GOOD", help="commit, tag or branch, from which BAD descends")
    bisect.add_argument("bad", metavar="BAD", help="the same")
    bisect.add_argument(
        "--variant",
        metavar="FAMILY/VARIANT",
        help="default: the one whose sources differ, if there is only one",
    )
    bisect.add_argument("--case", help="timed case (default: the headline case of the family)")
    _add_precision(bisect)
    bisect.add_argument("--json", action="store_true", help="print the record as JSON")
    bisect.set_defaults(command="bisect")


def _add_watch(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    watch = commands.add_parser(
        "watch",
        help="report after every save whether a variant became faster",
        description=_WATCH,
        epilog=_WATCH_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    watch.add_argument("variant", metavar="FAMILY/VARIANT", help="of CUDA sources")
    _add_case(watch)
    _add_margin(watch)
    _add_kernels(watch)
    watch.set_defaults(command="watch")


def _add_gate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    gate = commands.add_parser(
        "gate",
        help="report whether a change of the sources makes any kernel slower",
        description=_GATE,
        epilog=_GATE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    gate.add_argument("base", metavar="BASE", nargs="?", default="", help="commit, tag or branch")
    gate.add_argument(
        "head", metavar="HEAD", nargs="?", default="", help="the same (default: the working tree)"
    )
    gate.add_argument("--family", action="append", default=[], help="default: all (repeatable)")
    gate.add_argument(
        "--case", action="append", default=[], help="default: the headline case of each family (repeatable)"
    )
    gate.add_argument(
        "--minutes", type=float, default=30.0, metavar="M", help="start no duel after (default: 30)"
    )
    _add_precision(gate)
    gate.add_argument(
        "--pack",
        type=Path,
        metavar="FILE",
        help="measure nothing; write sources and builds for a machine without the repository (.tar.xz)",
    )
    gate.add_argument("--arch", help="of its GPU, such as sm_90 (default: that of the GPU here)")
    gate.add_argument(
        "--packed",
        type=Path,
        metavar="FILE",
        help="measure such a pack in place of BASE and HEAD; the code in it runs here",
    )
    gate.add_argument("--json", action="store_true", help="print the record as JSON")
    gate.add_argument("--markdown", type=Path, metavar="FILE", help="write a comment for a pull request")
    gate.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    gate.set_defaults(command="gate")


def _add_case(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--case", default="", help="timed case (default: the headline case of the family)")


def _add_kernels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernels",
        action="append",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="a folder of families in addition to those of the project (repeatable)",
    )


def _add_margin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--margin",
        type=_share,
        default=0.005,
        metavar="X",
        help="largest relative gap between two times that are the same (default: 0.005)",
    )


def _add_precision(parser: argparse.ArgumentParser) -> None:
    _add_margin(parser)
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=9.0,
        metavar="S",
        help="of turns at rest of a duel, at most (default: 9); starting its processes takes about as long",
    )


def _add_ab(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    ab = commands.add_parser(
        "ab",
        help="report whether one version of a kernel is faster than another, within seconds",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ab.add_argument("a", metavar="A", help="what B is compared with")
    ab.add_argument("b", metavar="B", help="FASTER and SLOWER are said of it")
    ab.add_argument("--variant", metavar="FAMILY/VARIANT", default="", help="of a side that names none")
    _add_case(ab)
    _add_precision(ab)
    ab.add_argument(
        "--rest",
        action="store_true",
        help="no turns of 3 s back to back if a power limit acts, which take one or two minutes",
    )
    ab.add_argument(
        "--no-counters",
        action="store_true",
        help="do not ask Nsight Compute which counters changed if the times differ",
    )
    ab.add_argument("--seed", type=int, metavar="N", help="for inputs, addresses and the order of turns")
    _add_kernels(ab)
    ab.add_argument("--json", action="store_true", help="print the record as JSON")
    ab.set_defaults(command="ab")


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0 and below 1, such as 0.005")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 3600:
        raise argparse.ArgumentTypeError(f"{text}: expected a number of seconds above 0 and below 3600")
    return value


def run(options: argparse.Namespace, project: Path) -> int:
    """Runs the duel and prints its verdict; returns the exit status."""
    from warplog.duel import match, sides, words
    from warplog.records import door

    try:
        corners = sides.resolve(options.a, options.b, project, options.kernels, options.variant)
        case = options.case or corners[0].family.headline_case
        if why := sides.why_other_work(*corners, case):
            raise WarplogError(why)
    except WarplogError as error:
        say(f"error: {error}")
        return USAGE
    how = match.Options(
        case, options.seconds, options.margin, not options.rest, options.seed, not options.no_counters
    )
    try:
        duel = match.duel(corners, how, project)
    except WarplogError as error:
        say(f"error: {error}")
        return NO_VERDICT
    print(door.as_json(duel, indent=1) if options.json else "\n".join(words.lines(duel)))
    return 0 if duel.status == "ok" else NO_VERDICT


def run_watch(options: argparse.Namespace, project: Path) -> int:
    """Prints a line after every save, until it is interrupted; returns the exit status."""
    from warplog.duel import sides, words
    from warplog.duel.watch import watch

    try:
        corner, _ = sides.resolve(options.variant, options.variant, project, options.kernels)
        case = options.case or corner.family.headline_case
        if why := sides.why_other_work(corner, corner, case):
            raise WarplogError(why)
        if corner.commit or corner.toolkit or corner.variant.is_python:
            raise WarplogError(
                f"{options.variant}: no commit, compiler or Python variant can be watched; see `warplog ab`"
            )
    except WarplogError as error:
        say(f"error: {error}")
        return USAGE
    session = list[float]()
    try:
        for saved in watch(corner, case, options.margin, project):
            session.append(saved.us)
            print(words.saved_line(saved, session), flush=True)
    except WarplogError as error:
        say(f"error: {error}")
    return NO_VERDICT


def run_gate(options: argparse.Namespace, project: Path) -> int:
    """Runs the gate, prints and writes its verdict, and returns the exit status."""
    from warplog.core.files import write_bytes, write_text
    from warplog.duel.changes import gate as gates
    from warplog.duel.changes import gate_words, packing
    from warplog.records import door

    how = gates.GateOptions(tuple(options.case), options.minutes, options.seconds, options.margin)
    try:
        if bool(options.base) == bool(options.packed) or (
            options.packed and (options.pack or options.family)
        ):
            raise WarplogError("name BASE, or a pack alone (--packed FILE)")
        if options.packed:
            found = packing.unpacked(options.packed, project)
        else:
            found = gates.compared(options.base, options.head, project, options.family)
    except WarplogError as error:
        say(f"error: {error}")
        return USAGE
    try:
        if options.pack:
            data = packing.pack(found, tuple(options.family), _target(options.arch), project)
            write_bytes(options.pack, data)
            print(f"{options.pack}: {len(data)} bytes, SHA-256 {sha256(data).hexdigest()}")
            return 0
        gate = gates.gate(found, how, project)
    except WarplogError as error:
        say(f"error: {error}")
        return NO_VERDICT
    print(door.as_json(gate, indent=1) if options.json else "\n".join(gate_words.lines(gate)))
    for file, text in ((options.markdown, gate_words.markdown), (options.junit, gate_words.junit)):
        if file:
            write_text(file, text(gate))
    if gate.word == "loss":
        return REGRESSION
    return NO_VERDICT if gate.word in ("machine", "not enough data") else 0


def _target(arch: str | None) -> "Gpu | Target":
    """Returns the GPU to compile for: this architecture, or the GPU here.

    Raises:
        WarplogError: There is neither.
    """
    from warplog.duel.making import Target
    from warplog.machine import device

    if arch:
        return Target(arch)
    if gpu := device.detect():
        return gpu
    raise WarplogError(
        f"no GPU here: {device.why_not()}; name the architecture of the other machine with --arch"
    )


def run_bisect(options: argparse.Namespace, project: Path) -> int:
    """Searches the commit, prints it, and returns the exit status."""
    from warplog.duel import match, sides, sources, words
    from warplog.duel.changes import bisect as bisecting
    from warplog.records import door

    refs = options.good, options.bad
    try:
        commits = sources.commits_between(*refs, sources.repository_of(project))
        variant = options.variant or bisecting.only_variant(*refs, project)
        good = bisecting.corner_at(options.good, variant, project)
        case = options.case or good.family.headline_case
        if why := sides.why_other_work(good, good, case):
            raise WarplogError(why)
    except WarplogError as error:
        say(f"error: {error}")
        return USAGE
    how = match.Options(case, options.seconds, options.margin, sustained=False)
    try:
        found = bisecting.bisect(good, refs, commits, how, project)
    except WarplogError as error:
        say(f"error: {error}")
        return NO_VERDICT
    print(door.as_json(found, indent=1) if options.json else printable(words.bisected(found)))
    return {"found": 0, "none": NONE}.get(found.word, NO_VERDICT)
