"""What nvcc makes of `memory`, `ilp` and `pipes`: chains without other instructions, and loads in flight."""

import re
from collections import Counter

import pytest
from loops.sass_loops import opcodes_of_loops

from sass_builds import Kind, builder, check
from shipped_families import FAMILIES

pytestmark = pytest.mark.nvcc
UNROLLED = 16
CHAIN = {  # the load of a hop, and the instructions per hop
    "chase": ("LDG.E.CONSTANT", 2),
    "chase_pointers": ("LDG.E.64.CONSTANT", 1),
    "chase_shared": ("LDS", 1),
    "chase_dsmem": ("LD.E.64", 1),
}


@pytest.fixture(scope="module")
def builds(kept_builds):
    """Folder and record of each variant, by family."""
    return {
        name: builder(FAMILIES[name], kept_builds)("sm_90", Kind.KERNELS)
        for name in ("memory", "ilp", "pipes")
    }


def instructions(builds, family, variant):
    text = (builds[family][variant][0] / "kernel.sass").read_text()
    return re.findall(r"^\s+/\*[0-9a-f]{4,5}\*/\s+(.*?)\s*;", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("family", "name"), [(f, v.name) for f in ("memory", "ilp", "pipes") for v in FAMILIES[f].variants]
)
def test_compiles_without_a_warning_and_keeps_what_family_yaml_expects(builds, family, name):
    check(FAMILIES[family].variant(name), *builds[family][name])


@pytest.mark.parametrize("name", CHAIN)
def test_each_load_of_a_chain_waits_for_the_one_before_and_for_nothing_else(builds, name):
    """Follows the registers: from the address of a load back to the result of the load before."""
    load, per_hop = CHAIN[name]
    made, longest = {}, 0  # the length of the chain that ends in a register
    for text in instructions(builds, "memory", name):
        found = re.match(r"(\S+) (R\d+)(?:\.reuse)?, (?:desc\[\w+\])?\[?(R\d+)", text)
        if not found:
            continue
        opcode, target, source = found.groups()
        length = made.get(source, 0)
        if (opcode == load and re.search(r"\[R\d+(\.64)?\]$", text)) or (
            opcode == "IMAD.WIDE" and name == "chase"
        ):
            made[target] = length + 1
        else:
            made.pop(target, None)
        longest = max(longest, made.get(target, 0))
    assert longest >= UNROLLED * per_hop


@pytest.mark.parametrize(("name", "load", "flight"), [
    ("stream", "LDG.E.128", 1), ("stream_4", "LDG.E.128", 4), ("stream_shared", "LDS.128", 4),
])  # fmt: skip
def test_as_many_loads_are_in_flight_as_the_variant_says(builds, name, load, flight):
    texts = [text for text in instructions(builds, "memory", name) if re.search(rf"{load}|IADD3|BRA", text)]
    runs = re.findall("L+", "".join("L" if load in text else "-" for text in texts))
    assert max(map(len, runs)) == flight


@pytest.mark.parametrize("variant", FAMILIES["ilp"].variants, ids=lambda v: v.name)
def test_a_pass_has_256_multiply_adds_in_as_many_chains_as_the_variant_says(builds, variant):
    texts = instructions(builds, "ilp", variant.name)
    chain, length = {}, {}  # by register: which chain its value belongs to, and how many steps that has
    for text in texts:
        if found := re.match(r"FFMA (R\d+), (R\d+)", text):
            target, source = found.groups()
            chain[target] = chain.get(source, source)
            length[chain[target]] = length.get(chain[target], 0) + 1
    chains = variant.parameters["CHAINS"]
    assert sorted(length.values()) == [256 // chains] * chains
    first = next(i for i, text in enumerate(texts) if text.startswith("FFMA"))
    last = max(i for i, text in enumerate(texts) if text.startswith("FFMA"))
    assert last - first - 255 <= 4, "hardly anything between them"


def loops(builds, family, variant):
    text = (builds[family][variant][0] / "kernel.sass").read_text()
    return [Counter(opcode.split(".")[0] for opcode in loop.split()) for loop in opcodes_of_loops(text)]


def test_loads_of_words_are_back_to_back_and_leave_issue_slots_free(builds):
    (loop,) = [loop for loop in loops(builds, "memory", "stream_shared_words") if loop["LDS"]]
    assert loop["LDS"] == 16
    assert sum(loop.values()) < 3 * loop["LDS"]  # an SM issues four for each load


def test_half_of_the_mixed_instructions_are_of_another_pipe(builds):
    (loop,) = [loop for loop in loops(builds, "pipes", "mixed") if loop["FFMA"]]
    assert (loop["FFMA"], loop["LOP3"], loop["SHF"]) == (256, 128, 128)
    assert sum(loop.values()) <= 512 + 4


def test_products_on_tensor_cores_follow_each_other_and_one_group_stays_in_flight(builds):
    (loop,) = [loop for loop in loops(builds, "pipes", "tensor") if loop["HGMMA"]]
    assert loop["HGMMA"] == 8
    assert any("DEPBAR.LE gsb0, 0x1" in text for text in instructions(builds, "pipes", "tensor"))
