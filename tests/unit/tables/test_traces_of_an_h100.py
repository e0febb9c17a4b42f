"""Real traces of an H100 against Nsight Compute, instruction by instruction."""

import json
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from warplog.extract import accesses as extract
from warplog.parsers import access_trace
from warplog.parsers.instruction import parse
from warplog.parsers.line_table import Place
from warplog.parsers.ncu.report import NcuLaunch, NcuReport
from warplog.parsers.ncu.source import SourceInstruction
from warplog.records.requested.accesses import AccessCase
from warplog.tables.traced.accesses import rows

from made_up_accesses import accesses  # isort: skip

TRACES = Path(__file__).parents[2] / "data" / "traces" / "h100.tar.xz"
AGREE = {
    "bf16_gemm.mma_sync.256x128x64": {"equal": 72},
    "bf16_gemm.wgmma_tma.256x128x64": {"equal": 20},
    "dsmem.cluster_2.65537": {"equal": 1},
    "reduction.cooperative.65537": {"equal": 11, "ran_differently": 1},
    "reduction.interleaved.65537": {"equal": 54},
    "sgemm.cp_async_pipelined.128": {"equal": 219, "undercounted": 3},
    "sgemm.vectorized.128": {"equal": 55},
    "softmax.cluster.1x65536": {"equal": 14, "not_counted": 1},  # st.async to another block
    "softmax.triton.67x128": {"equal": 16},
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    with tarfile.open(TRACES) as archive:
        archive.extractall(folder, filter="data")
    return folder, json.loads((folder / "counts.json").read_text())


@pytest.fixture
def table(unpacked, monkeypatch):
    """Returns a function that gives the rows of the table `accesses` for a launch."""
    folder, counts = unpacked

    def made(name):
        kernels = access_trace.read(folder / name)
        code = {
            kernel.mangled: {int(at): Place(parse(text).opcode, "", 0) for at, (text, _) in counted.items()}
            for kernel, counted in zip(kernels, counts[name], strict=True)
        }
        found = extract.summarise(kernels, [], code, {}, {})
        launches = [
            NcuLaunch(0, "", "", (f"case:{name}",), {}, (9, 0), "", code=tuple(_counted(counted)))
            for counted in counts[name]
        ]
        monkeypatch.setattr(extract.sessions, "ncu", lambda path, variant: NcuReport("", tuple(launches)))
        instructions = extract.with_counters(found.instructions, Path("counts.ncu-rep"), "", name)
        case = AccessCase(
            case="", status="ok", reason="", max_error_over_tolerance=0.0,
            kernels=found.kernels, instructions=instructions, counted="ok",
        )  # fmt: skip
        return [row for of, row in rows(accesses(case)) if of == "accesses"]

    return made


def _counted(instructions):
    return [
        SourceInstruction(int(at), text, "", 0, counts, {}) for at, (text, counts) in instructions.items()
    ]


@pytest.mark.parametrize("name", AGREE)
def test_every_instruction_agrees_with_its_counters_or_says_why_not(name, table):
    assert Counter(row["agreement"] for row in table(name)) == AGREE[name]


def test_bank_conflicts_of_stores_are_found(table):
    """vectorized transposes a tile of A while it stores it: 2-way; its loads of B are 8 wavefronts, 4 of them ideal."""
    shared = [row for row in table("sgemm.vectorized.128") if row["space"] == "shared"]
    conflicts = {(row["opcode"], row["ways"]) for row in shared if row["wavefronts_excess"]}
    assert conflicts == {("STS", 2), ("LDS.128", 2)}


def test_atomics_to_the_same_word_take_turns(table):
    """Almost all of them go to one word; half of them, in another block's memory, are not counted."""
    (row,) = table("dsmem.cluster_2.65537")
    assert (row["kind"], row["lanes"], row["traced_wavefronts"], row["ways"]) == ("atomic", 65537, 32748, 32)
