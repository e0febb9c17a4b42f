"""What the traces of well-known kernels show, and what counters add to it."""

from pathlib import Path

import pytest
from msgspec import structs

from made_up_accesses import ARRAYS, VARIANTS, A, C, Trace, made_up_accesses, traced
from made_up_records import valid
from warplog.core.errors import WarplogError
from warplog.extract import accesses as extract
from warplog.extract.accesses import ArrayPlace
from warplog.metrics.accesses import Does, What
from warplog.parsers import access_trace
from warplog.parsers.line_table import Place
from warplog.parsers.ncu.report import NcuLaunch, NcuReport
from warplog.parsers.ncu.source import SourceInstruction
from warplog.records.requested.accesses import MOST_INSTRUCTIONS, Counted

DATA = Path(__file__).parents[2] / "data" / "parsers"


def totals(case, space, kind, *names):
    own = [one for one in case.instructions if (one.space, one.kind) == (space, kind)]
    return tuple(sum(getattr(one, name) for one in own) for name in names)


def made(folder, family, variant):
    (case,) = valid(made_up_accesses(folder, family, variant)).cases
    return case


@pytest.mark.parametrize("variant", [variant for family, variant in VARIANTS if family == "transpose"])
def test_every_element_of_a_transposition_is_read_and_written_once(variant, tmp_path):
    case = made(tmp_path, "transpose", variant)
    assert totals(case, "global", "load", "bytes", "distinct_bytes") == (64 * 64 * 4, 64 * 64 * 4)
    assert totals(case, "global", "store", "bytes") == (64 * 64 * 4,)
    assert {one.array for one in case.instructions if one.kind == "load" and one.space == "global"} == {"in"}


@pytest.mark.parametrize(
    ("variant", "stored", "wavefronts", "ways"),
    [
        ("naive", 8, None, None),
        ("smem_conflict", 1, 128 * 32, 32),
        ("padded", 1, 128, 1),
        ("xor_swizzled", 1, 128, 1),
        ("vectorized", 1, 128, 1),
    ],
)
def test_transpositions_differ_in_sectors_of_stores_and_wavefronts_of_loads(
    variant, stored, wavefronts, ways, tmp_path
):
    case = made(tmp_path, "transpose", variant)
    sectors, ideal = totals(case, "global", "store", "sectors", "sectors_ideal")
    assert (sectors, ideal) == (512 * stored, 512)
    reads = [one for one in case.instructions if one.space == "shared" and one.kind == "load"]
    if wavefronts is not None:
        assert sum(one.wavefronts for one in reads) == wavefronts
        assert {one.ways for one in reads} == {ways}


def test_sectors_of_a_product_are_those_that_an_h100_counted(tmp_path):
    """Loads: 16,384 requests, 270,336 sectors; stores: 4,096 sectors."""
    naive, coalesced = (made(tmp_path, "sgemm", name) for name in ("naive", "gmem_coalesced"))
    assert totals(naive, "global", "load", "requests", "sectors") == (16_384, 270_336)
    assert totals(naive, "global", "store", "sectors") == (4096,)
    assert totals(coalesced, "global", "load", "requests", "sectors") == (16_384, 40_960)


def test_lines_are_those_of_the_source(tmp_path):
    (store,) = [one for one in made(tmp_path, "sgemm", "naive").instructions if one.kind == "store"]
    assert (store.file, store.opcode) == ("naive.cu", "STG.E")
    assert store.text.startswith("*c = ")


def test_an_example_is_relative_to_its_array(tmp_path):
    case = made(tmp_path, "transpose", "naive")
    load, store = case.instructions[:2]
    assert load.example.addresses == tuple(range(0, 128, 4))
    assert store.example.addresses == tuple(range(0, 32 * 256, 256))


def test_an_example_outside_of_all_arrays_is_relative_to_a_cache_line(tmp_path):
    kernel = Trace("k", (1, 1), (32, 1))
    kernel.request(0, 0, 16, What.GLOBAL, Does.READ, 4, [A + 1000, -1, A + 132])
    (found,) = traced(tmp_path, [kernel], []).instructions
    assert (found.array, found.opcode, found.file, found.line) == ("", "", "", 0)
    assert found.example.addresses[:3] == (1000 - 128, -1, 4)


def test_blocks_of_a_product_read_the_same_rows(tmp_path):
    """Each of four blocks reads 32 rows of A and 32 columns of B; the first two share what they read of one."""
    (kernel,) = made(tmp_path, "sgemm", "smem_tiled").kernels
    assert kernel.reuse is not None
    block = 2 * 32 * 64 * 4
    assert (kernel.reuse.block_bytes, kernel.reuse.wave_blocks) == (block, 2)
    assert (kernel.reuse.wave_bytes, kernel.reuse.wave_bytes_of_blocks) == (block * 3 // 2, 2 * block)


def test_owners_are_the_threads_of_the_first_tile(tmp_path):
    naive, coalesced = (made(tmp_path, "sgemm", name).owners for name in ("naive", "gmem_coalesced"))
    assert (naive.array, naive.rows, naive.columns, len(naive.tiles)) == ("C", 64, 64, 4)
    assert [(tile.rows, tile.columns) for tile in naive.tiles[:2]] == [
        ((0, 32), (0, 32)),
        ((32, 64), (0, 32)),
    ]
    assert [(tile.rows, tile.columns) for tile in coalesced.tiles[:2]] == [
        ((0, 32), (0, 32)),
        ((0, 32), (32, 64)),
    ]
    assert naive.threads[:3] == ((0, 1), (32, 1), (64, 1)), "lanes are rows"
    assert coalesced.threads[:3] == ((0, 1), (1, 1), (2, 1)), "lanes are columns"


def test_owners_with_several_elements_are_runs(tmp_path):
    owners = made(tmp_path, "transpose", "vectorized").owners
    assert owners.threads[:2] == ((0, 4), (1, 4))
    assert sum(elements for _, elements in owners.threads) == 64 * 64


def test_only_outputs_of_two_dimensions_have_owners(tmp_path):
    kernel = VARIANTS["transpose", "naive"](lambda *_: 1)
    flat = [ArrayPlace("out", C, (4096,), 4, is_output=True)]
    read_only = [ArrayPlace("out", C, (64, 64), 4, is_output=False)]
    assert traced(tmp_path, [kernel], flat).owners is traced(tmp_path, [kernel], read_only).owners is None


def test_instructions_that_cannot_be_traced_are_listed_by_opcode(tmp_path):
    kernel = VARIANTS["transpose", "naive"](lambda *_: 1)
    end = 16 * len(kernel.code)
    for offset, opcode in enumerate(["UTMALDG.2D", "UTMALDG.2D", "UTMASTG.2D", "LDG.E", "FFMA"]):
        kernel.code[end + 16 * offset] = Place(opcode, "", 0)
    (found,) = traced(tmp_path, [kernel], ARRAYS["transpose"]).kernels
    assert found.untraced == (("UTMALDG.2D", 2), ("UTMASTG.2D", 1)), "LDG.E could be traced, but did not run"
    kernel.request(0, 0, end, What.BULK_GLOBAL, Does.READ, 1, [A])
    (found,) = traced(tmp_path, [kernel], ARRAYS["transpose"]).kernels
    assert found.untraced == (("UTMALDG.2D", 1), ("UTMASTG.2D", 1)), "one has an entry after all"


def test_kernels_of_a_launch_have_their_own_instructions(tmp_path):
    both = [VARIANTS["transpose", name](lambda *_: 1) for name in ("naive", "padded")]
    found = traced(tmp_path, both, ARRAYS["transpose"])
    assert [kernel.kernel for kernel in found.kernels] == ["transpose_naive", "transpose_padded"]
    assert {one.launch for one in found.instructions} == {0, 1}
    assert [one.opcode for one in found.instructions if one.launch == 1][1] == "STS"


def test_too_many_instructions_are_refused(tmp_path):
    kernel = Trace("k", (1, 1), (32, 1))
    for number in range(MOST_INSTRUCTIONS + 1):
        kernel.request(0, 0, 16 * number, What.GLOBAL, Does.READ, 4, [A])
    with pytest.raises(WarplogError, match=f"more than {MOST_INSTRUCTIONS} instructions access memory"):
        traced(tmp_path, [kernel], [])


def test_code_and_lines_come_from_the_cubin(tmp_path):
    """The code that Triton compiled of a scaling: eight loads by 128 threads."""
    kernel = Trace("scale", (1, 1), (128, 1))
    kernel.request(0, 0, 0x140, What.GLOBAL, Does.READ, 4, [A + 4 * lane for lane in range(32)])
    trace, source = tmp_path / "trace", tmp_path / "k.py"
    trace.write_bytes(kernel.content())
    source.write_text("\n" * 6 + "    x = tl.load(a + i)\n")
    cubin = DATA / "triton_scale.cubin"
    kernels = access_trace.read(trace)
    (found,) = extract.read(kernels, [], [cubin], [source], {}).instructions
    assert (found.opcode, found.file, found.line, found.text) == ("LDG.E", "k.py", 7, "x = tl.load(a + i)")
    (unknown,) = extract.read(kernels, [], [], [source], {}).instructions
    assert (unknown.opcode, unknown.file, unknown.line, unknown.text) == ("", "", 0, "")


@pytest.mark.parametrize("kept", [20, 1000, -100])
def test_a_cubin_that_is_truncated_is_refused(kept, tmp_path):
    kernel = Trace("scale", (1, 1), (32, 1))
    (tmp_path / "trace").write_bytes(kernel.content())
    cubin = tmp_path / "a.cubin"
    cubin.write_bytes((DATA / "triton_scale.cubin").read_bytes()[:kept])
    with pytest.raises(WarplogError, match=r"a\.cubin(: is damaged| is an invalid ELF file)"):
        extract.read(access_trace.read(tmp_path / "trace"), [], [cubin], [], {})


LOAD, STORE = "LDG.E.CONSTANT R1, desc[UR4][R2.64]", "STG.E desc[UR4][R2.64], R1"


@pytest.fixture
def counted(monkeypatch):
    """Returns a function that sets the instructions of a variant's launches in the report."""

    def report(*launches):
        made = tuple(
            NcuLaunch(n, "k", "k", ("case:64",), {}, (9, 0), "", code=tuple(code))
            for n, code in enumerate(launches)
        )
        monkeypatch.setattr(extract.sessions, "ncu", lambda path, variant: NcuReport("", made))

    return report


def instruction(offset, text, **counts):
    return SourceInstruction(offset, text, "", 0, counts, {})


def test_counters_are_added_by_place_and_memory(tmp_path, counted):
    case = made(tmp_path, "transpose", "smem_conflict")
    plain = [structs.replace(one, ncu=None) for one in case.instructions[:2]]
    both = {
        "instructions": 32.0,
        "global_sectors": 128.0,
        "shared_wavefronts": 7.0,
        "shared_wavefronts_ideal": 5.0,
    }
    counted([instruction(0, LOAD, **both), instruction(16, "@P0 STS [R1], R2", **both)])
    load, store = extract.with_counters(plain, Path("a.ncu-rep"), "smem_conflict", "64")
    assert load.ncu == Counted(requests=32, sectors=128)
    assert store.ncu == Counted(requests=32, wavefronts=7, wavefronts_ideal=5)


def test_an_instruction_that_was_not_counted_has_no_counters(tmp_path, counted):
    case = made(tmp_path, "transpose", "naive")
    counted([])
    assert extract.with_counters(case.instructions[:1], Path("a.ncu-rep"), "naive", "64")[0].ncu is None


def test_a_report_of_other_code_is_refused(tmp_path, counted):
    case = made(tmp_path, "transpose", "naive")
    counted([instruction(0, STORE)])
    with pytest.raises(
        WarplogError, match=r"a\.ncu-rep: kernel 0 has STG\.E at 0x0, the trace LDG\.E\.CONSTANT"
    ):
        extract.with_counters(case.instructions, Path("a.ncu-rep"), "naive", "64")


def test_a_report_with_fewer_kernels_is_refused(tmp_path, counted):
    counted()
    with pytest.raises(WarplogError, match=r"a\.ncu-rep: has 0 of at least 1 kernels"):
        extract.with_counters(
            made(tmp_path, "transpose", "naive").instructions, Path("a.ncu-rep"), "naive", "64"
        )
