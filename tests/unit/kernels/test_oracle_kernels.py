"""What nvcc makes of the oracle's kernels: the instructions that make each answer known, and the address patterns."""

import ctypes
import re
import subprocess
from functools import cache

import pytest

from sass_builds import built
from shipped_families import FAMILIES, KERNELS
from warplog.machine import toolchain
from warplog.metrics import occupancy
from warplog.parsers import sass

ORACLE, HOPPER = FAMILIES["oracle"], FAMILIES["oracle_sm90"]
ARCHS = ("sm_75", "sm_86", "sm_90")
CAPABILITY = {"sm_75": (7, 5), "sm_86": (8, 6), "sm_90": (9, 0)}
KIND = {"ffma": "FFMA", "dfma": "DFMA", "hfma2": "HFMA2", "imad": "IMAD", "iadd3": "IADD3", "mma": "HMMA"}
READS = 15
# What the loop of a stall kernel is made of: opcodes with their number, and the most instructions beside them.
LOOPS = {
    "short_scoreboard": ({"LDS": 16}, 4),
    "mio_throttle": ({"STS": 16}, 4),
    "lg_throttle": ({"STG": 16}, 4),
    "tex_throttle": ({"TLD": 32}, 160),
    "membar": ({"STG": 1, "MEMBAR": 1}, 8),
    "math_pipe_throttle": ({"HMMA": 16}, 24),
    "wait": ({"FFMA": 64}, 4),
    "no_instruction": ({"FFMA": 16384}, 8),
    "imc_miss": ({"FADD": 1024}, 1030),
    "branch_resolving": ({"BRA": 13}, 12 * 8 + 8),
    "sleeping": ({"NANOSLEEP": 1}, 4),
    "not_selected": ({"FFMA": 32, "HFMA2": 32, "LOP3": 16, "IADD3": 16}, 8),
}


@pytest.fixture(scope="module")
def build_one(kept_builds):
    """build_one(family, arch): the folder and the kernels by their bare name (with template parameters)."""

    @cache
    def one(name, arch):
        family = FAMILIES[name]
        folder, record = built(family, family.variant("probes"), arch, kept_builds)
        assert record.status == "ok", record.reason
        return folder, {bare(k.kernel): k for k in record.kernels}

    return lambda family, arch: one(family.name, arch)


def bare(kernel):
    return re.search(r"(\w+(?:<[^>]*>)?)\(", kernel)[1].replace("(int)", "")


def count(kernel, prefix):
    return sass.matching(kernel.opcodes, prefix)


def loop(folder, mangled, opcode):
    """Opcodes, without modifiers, of the smallest loop of a kernel that holds `opcode`."""
    text = (folder / "kernel.sass").read_text().split(f"Function : {mangled}\n")[1].split("Function : ")[0]
    code = re.findall(
        r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?\w+\s+)?([A-Z]\w*)[^ ;]* ?([^;]*);", text, re.MULTILINE
    )
    lines = [(int(address, 16), opcode, rest) for address, opcode, rest in code]
    jumps = [
        (a, int(r.split()[-1], 16)) for a, o, r in lines if o == "BRA" and r.split()[-1].startswith("0x")
    ]
    loops = [[o for a, o, _ in lines if to <= a <= end and o != "NOP"] for end, to in jumps if to < end]
    return min((found for found in loops if opcode in found), key=len)


@pytest.mark.nvcc
@pytest.mark.parametrize("family", [ORACLE, HOPPER], ids=lambda f: f.name)
def test_compiles_without_a_warning_and_keeps_what_family_yaml_expects(build_one, family):
    for arch in ARCHS if family is ORACLE else ("sm_90",):
        folder, kernels = build_one(family, arch)
        assert "warning" not in (folder / "compile.log").read_text()
        for prefix in family.variant("probes").expects.sass:
            assert any(count(kernel, prefix) for kernel in kernels.values()), (arch, prefix)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", KIND)
def test_straight_line_code_has_as_many_instructions_as_it_says(build_one, arch, kind):
    _, kernels = build_one(ORACLE, arch)
    short, long = (kernels[f"count_{kind}<{length}>"] for length in (128, 256))
    assert count(long, KIND[kind]) - count(short, KIND[kind]) == 128
    if kind == "iadd3":
        assert count(long, "LOP3") - count(short, "LOP3") == 128
    if kind != "mma":  # products on tensor cores may have a NOP between them
        step = 256 if kind == "iadd3" else 128
        assert long.sass_instructions - short.sass_instructions == step
    assert not count(long, "BRA"), "straight-line code runs every instruction once"


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS)
def test_nothing_beside_the_counted_instructions_is_a_flop(build_one, arch):
    _, kernels = build_one(ORACLE, arch)
    for kind, others in (("ffma", "FADD FMUL"), ("dfma", "DADD DMUL"), ("mma", "DMMA IMMA")):
        kernel = kernels[f"count_{kind}<256>"]
        assert count(kernel, KIND[kind]) == 256
        assert not any(count(kernel, other) for other in others.split())


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS)
def test_bank_kernels_make_sixteen_accesses_of_one_width(build_one, arch):
    _, kernels = build_one(ORACLE, arch)
    for name in ("bank_conflict", "bank_stride<2>", "bank_broadcast", "bank_vector"):
        width = ".128" if name == "bank_vector" else ""
        found = {op: n for op, n in kernels[name].opcodes.items() if op.startswith(("LDS", "STS"))}
        plain = {op.replace(".U", ""): n for op, n in found.items()}
        assert plain == {f"LDS{width}": READS, f"STS{width}": 1}, (name, found)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS)
def test_sector_kernels_load_and_store_as_often_as_the_pattern_has_steps(build_one, arch, patterns):
    _, kernels = build_one(ORACLE, arch)
    for sectors in (1, 2, 4, 8, 16, 32):
        kernel = kernels[f"touch_sectors<{sectors}>"]
        steps = patterns.steps(sectors)
        assert (count(kernel, "LDG"), count(kernel, "STG")) == (steps, steps)
        assert all(".64" not in op and ".128" not in op for op in kernel.opcodes if op[:3] in ("LDG", "STG"))


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS)
def test_each_occupancy_kernel_is_limited_by_its_resource_alone(build_one, arch):
    _, kernels = build_one(ORACLE, arch)
    wanted = {"blocks": 32, "warps": 768, "shared_memory": 128, "registers": 256}
    for resource, threads in wanted.items():
        kernel = kernels[f"limited_by_{resource}"]
        found = occupancy.theoretical(
            kernel.registers_per_thread, threads, kernel.static_shared_bytes, CAPABILITY[arch]
        )
        # Without shared memory, its limit is that of the block slots.
        assert [r for r in found.limiters if r != "shared_memory"] == [resource] or found.limiters == (
            resource,
        ), (resource, found)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS)
def test_one_of_the_twins_spills_and_the_other_does_not(build_one, arch):
    _, kernels = build_one(ORACLE, arch)
    spills, twin = kernels["forced_to_spill"], kernels["limited_by_registers"]
    assert spills.spill_store_bytes > 0
    assert spills.spill_load_bytes > 0
    assert count(spills, "LDL") > 0
    assert count(spills, "STL") > 0
    assert twin.spill_store_bytes + twin.spill_load_bytes == 0
    assert count(twin, "LDL") + count(twin, "STL") == 0


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("reason", LOOPS)
def test_the_loop_of_a_stall_kernel_holds_what_stalls_and_little_else(build_one, arch, reason):
    folder, kernels = build_one(ORACLE, arch)
    opcodes = loop(folder, kernels[f"stall_{reason}"].mangled, next(iter(LOOPS[reason][0])))
    wanted, others = LOOPS[reason]
    for opcode, number in wanted.items():
        assert opcodes.count(opcode) >= number, (opcode, opcodes.count(opcode))
    assert len(opcodes) - sum(wanted.values()) <= others, len(opcodes)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHS)
def test_a_chain_of_loads_has_each_address_from_the_value_before(build_one, arch):
    folder, kernels = build_one(ORACLE, arch)
    opcodes = loop(folder, kernels["stall_long_scoreboard"].mangled, "LDG")
    assert opcodes.count("LDG") == 1
    assert "FSETP" in opcodes or "FSET" in opcodes


@pytest.mark.nvcc
def test_long_code_does_not_fit_the_instruction_caches(build_one):
    _, kernels = build_one(ORACLE, "sm_90")
    assert 16 * kernels["stall_no_instruction"].sass_instructions > 256 * 1024


@pytest.mark.nvcc
def test_hopper_waits_for_products_and_uses_every_barrier(build_one):
    folder, kernels = build_one(HOPPER, "sm_90")
    for name, products in (("count_wgmma", 1), ("stall_gmma", 8)):
        opcodes = loop(folder, kernels[name].mangled, "HGMMA")
        assert opcodes.count("HGMMA") == products
        assert opcodes.count("WARPGROUP") == 2  # arrive and wait
    assert kernels["limited_by_barriers"].barriers == 16


@pytest.fixture(scope="module")
def patterns(tmp_path_factory):
    """patterns.cuh compiled for the host."""
    compiler = toolchain.host_compiler()
    if not compiler.ok:
        pytest.skip(compiler.remedy)
    folder = tmp_path_factory.mktemp("patterns")
    names = {"conflicting_word": 2, "steps": 1, "sector_word": 3}
    exported = "\n".join(
        f'extern "C" int {name}({", ".join(f"int a{i}" for i in range(n))})'
        f" {{ return patterns::{name}({', '.join(f'a{i}' for i in range(n))}); }}"
        for name, n in names.items()
    )
    source = folder / "patterns.cpp"
    source.write_text(f'#define __host__\n#define __device__\n#include "patterns.cuh"\n{exported}\n')
    library = folder / "patterns.so"
    command = [str(compiler.path), "-std=c++17", "-shared", "-fPIC", "-w", f"-I{KERNELS / 'oracle'}"]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def passes(words):
    """Passes through shared memory that a warp's words need: the most different ones in one of the 32 banks."""
    banks = [{w for w in words if w % 32 == bank} for bank in range(32)]
    return max(map(len, banks))


@pytest.mark.parametrize("ways", range(1, 33))
def test_conflict_pattern_has_exactly_that_many_ways(patterns, ways):
    words = [patterns.conflicting_word(lane, ways) for lane in range(32)]
    assert passes(words) == ways
    assert len(set(words)) == 32, "every lane has a word of its own"
    assert 0 <= min(words) <= max(words) < 32 * 32


def test_known_patterns_without_a_table():
    assert passes([2 * lane for lane in range(32)]) == 2
    assert passes([0] * 32) == 1


@pytest.mark.parametrize("sectors", [1, 2, 4, 8, 16, 32])
def test_sector_pattern_touches_exactly_that_many_and_leaves_no_word_out(patterns, sectors):
    touched = []
    for step in range(patterns.steps(sectors)):
        words = [patterns.sector_word(lane, step, sectors) for lane in range(32)]
        assert len({w // 8 for w in words}) == sectors
        touched += words
    assert set(touched) == set(range(8 * sectors))


def test_a_warp_that_starts_one_word_late_touches_five_sectors():
    for first in (0, 32, 262144 - 32):
        words = [(first + lane + 1) % 262144 for lane in range(32)]
        assert len({w // 8 for w in words}) == 5


def test_probe_numbers_are_those_of_the_source():
    for family in (ORACLE, HOPPER):
        source = family.variant("probes").file.read_text()
        enumerators = re.search(r"enum Probe \{(.*?)\}", source, re.DOTALL)[1]
        numbers = {int(n) for n in re.findall(r"= (\d+)", enumerators)}
        cases = [*family.cases.values(), *family.check_cases.values()]
        assert {int(case.values["probe"]) for case in cases} == numbers


def test_every_captured_case_has_a_probe_and_every_probe_a_captured_case():
    for family in (ORACLE, HOPPER):
        probed = {c for p in family.probes for c in (*p.cases, p.minus) if c}
        assert probed == set(family.profile_cases)
