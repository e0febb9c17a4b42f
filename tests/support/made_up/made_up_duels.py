"""A made-up duel, what it says if its verdict is another one, and a table of steps that duels may decide."""

from math import nan
from pathlib import Path

from msgspec import structs

import made_up_records
from warplog.records.requested.duel import Duel, Estimate, Judged, Ratio, Side, Window
from warplog.tables import conclusions
from warplog.tables.conclusions import Step
from warplog.tables.files import write_parquet

SIDE = Side(
    name="warptile", family="sgemm", variant="warptile", commit="", source_sha256="", library_sha256="a" * 64
)
WINDOW = Window(
    process=1,
    seed=1,
    addresses=(),
    seconds=0.75,
    blocks=800,
    time=Estimate(log_ratio=0.005, error=1e-4),
    cycles=None,
    a_us=100.0,
    b_us=100.5,
    a_mhz=None,
    b_mhz=None,
    step_us=0.032,
)
TIME = Ratio(word="SLOWER", reason="", ratio=1.005, low=1.004, high=1.006, floor=0.001, p=1e-6)
JUDGED = Judged(
    regime="rest",
    time=TIME,
    cycles=None,
    a_us=100.0,
    b_us=100.5,
    looks=1,
    most_looks=3,
    resolution=4e-6,
    windows=(WINDOW,) * 4,
)
DUEL = Duel(
    case="2048",
    a=structs.replace(SIDE, name="HEAD:warptile", registers=(("k", 96),), sass=400),
    b=structs.replace(SIDE, library_sha256="b" * 64, registers=(("k", 104),), sass=420),
    differs=("sources",),
    margin=0.005,
    apart="",
    same_arrays=True,
    seconds=9.0,
    judged=(JUDGED,),
    provenance=made_up_records.provenance(),
)


def found(word: str, ratio: float, in_cycles: str = "", floor: float = 0.001) -> Duel:
    """Returns the duel if its verdict is another one, in cycles too."""
    time = structs.replace(TIME, word=word, ratio=ratio, low=ratio / (1 + floor), high=ratio * (1 + floor))
    cycles = structs.replace(time, word=in_cycles or word)
    return structs.replace(DUEL, judged=(structs.replace(JUDGED, time=time, cycles=cycles),))


def failed(status: str, reason: str) -> Duel:
    """Returns the duel if a side cannot be measured."""
    return structs.replace(DUEL, status=status, reason=reason, judged=())


def write_steps(folder: Path, *steps: dict[str, str]) -> None:
    """Writes the table `steps` with these columns; the others are empty."""
    columns = conclusions.columns(Step)
    empty = {"str": "", "float": nan, "int": -1, "bool": False}
    blank = {name: empty[column.kind] for name, column in columns.items()}
    write_parquet([{**blank, **step} for step in steps], columns, folder / Step.TABLE)
