"""What nvcc makes of the softmax and layernorm ladders: wide accesses, loads together, registers that leave room."""

import re

import pytest

from sass_builds import Kind, assert_as_expected, assert_serves, built, code, compilers, where
from shipped_families import FAMILIES
from warplog.parsers import sass

NAMES = ("softmax", "layernorm")
VARIANTS = [(name, v.name) for name in NAMES for v in FAMILIES[name].variants if v.language == "cuda"]
REGISTERS = [(name, variant) for name in NAMES for variant in ("registers", "warp_per_row", "cluster")]
# Blocks of a cluster send messages in the two last.
MESSAGES = [("softmax", "one_exponential"), ("layernorm", "one_exchange")]
ONE_READ = [*REGISTERS, *MESSAGES]
CLUSTERS = [*((name, "cluster") for name in NAMES), *MESSAGES]
REGISTERS_PER_SM = 65536
PACKS_OF_A_THREAD = 4  # of each row of one_exchange

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def builds(kept_builds):
    """Folder and record of a variant, compiled when it is asked for."""
    compilers()
    return lambda family, name: built(FAMILIES[family], FAMILIES[family].variant(name), "sm_90", kept_builds)


def kernels(builds, family, variant, word=""):
    """The variant's own kernels, with that word in their mangled names, and the instructions of each."""
    folder, record = builds(family, variant)
    found = [k for k in record["kernels"] if f"{family}_{variant}{word}" in k["mangled"]]
    assert found
    return [(kernel, code(folder, kernel["mangled"])) for kernel in found]


def rows_at_once(kernel):
    """How many rows a kernel of one_exchange handles at once; 1 for those of other variants."""
    found = re.search(r"one_exchange.*Li(\d)EEv", kernel["mangled"])
    return int(found[1]) if found else 1


@pytest.mark.parametrize(("family", "name"), VARIANTS)
def test_compiles_to_what_family_yaml_expects(builds, family, name):
    folder, record = builds(family, name)
    assert_as_expected(FAMILIES[family].variant(name), folder, record)
    own = [k["mangled"] for k in record["kernels"] if f"{family}_{name}" in k["mangled"]]
    assert {"bfloat16" in mangled for mangled in own} == {True, False}, "one for fp32, one for bf16"


@pytest.mark.parametrize(("family", "name"), VARIANTS)
def test_the_oldest_gpu_is_served_too(kept_builds, family, name):
    """32 of the 64 registers of a thread hold its part of the longest rows, which may spill 16 bytes."""
    compilers()
    variant = FAMILIES[family].variant(name)
    folder, record = built(FAMILIES[family], variant, "sm_75", kept_builds, Kind.RESOURCES)
    long = [k for k in record.get("kernels", []) if "Li8ELi1024E" in k["mangled"]]
    assert_serves("sm_75", variant, folder, {**record, "kernels": long}, spills=16)
    others = [k for k in record.get("kernels", []) if k not in long]
    assert_serves("sm_75", variant, folder, {**record, "kernels": others})


@pytest.mark.parametrize(("family", "name"), ONE_READ)
def test_rows_that_stay_in_registers_are_loaded_and_stored_once_in_16_bytes_and_all_loads_are_under_way(
    builds, family, name
):
    """gamma and beta of layernorm are one more load each per pack, whatever the number of rows.

    What is used is compared, added or multiplied: nothing of that stands between the loads of the rows.
    """
    for kernel, lines in kernels(builds, family, name):
        wide, rows = sass.matching(kernel["opcodes"], "STG.E.128"), rows_at_once(kernel)
        assert wide in (4, 8)
        assert sass.matching(kernel["opcodes"], "STG") == wide
        loads = where(lines, "LDG.E.128")
        shared = 2 * wide // rows if family == "layernorm" else 0
        assert len(loads) == sass.matching(kernel["opcodes"], "LDG") == wide + shared
        between = lines[loads[0] : loads[wide - 1]]
        used = r"\b(FADD|FFMA|FMUL|MUFU)\b" if rows > 1 else r"\b(FADD|FFMA|FMNMX|HMNMX2|MUFU)\b"
        assert not [text for text in between if re.search(used, text)], kernel["kernel"]


@pytest.mark.parametrize(
    ("family", "name", "word", "threads"),
    [
        *((family, "registers", r"Li4ELi512E", 1536) for family in NAMES),  # rows of up to 32 KiB
        *((family, "warp_per_row", r"bfloat16Li32ELi8E", 1024) for family in NAMES),  # packs stay packed
        ("softmax", "one_exponential", r"bfloat16Li256E", 1280),
        ("layernorm", "one_exchange", "", 1024),
    ],
)
def test_registers_leave_room_for_so_many_threads_per_sm(builds, family, name, word, threads):
    found = [
        k for k in builds(family, name)[1]["kernels"] if f"{name}" in k["mangled"] and word in k["mangled"]
    ]
    assert found
    assert max(kernel["registers_per_thread"] for kernel in found) * threads <= REGISTERS_PER_SM


@pytest.mark.parametrize(("family", "name"), CLUSTERS)
def test_blocks_of_a_cluster_tell_each_other_without_a_fence(builds, family, name):
    """A fence of the GPU waits for earlier stores to global memory, and a barrier of the cluster empties L1."""
    senders = 0
    for _, lines in kernels(builds, family, name):
        sends = where(lines, "STAS.128")
        assert not where(lines, "MEMBAR", "GPU")
        assert len(where(lines, "UCGABAR_WAIT")) == 1
        if sends:  # the kernel of rows that a block handles alone sends nothing
            senders += 1
            assert len(sends) == 1
            assert max(where(lines, "CCTL")) < sends[0]
    assert senders >= 2


@pytest.mark.parametrize(("family", "name"), MESSAGES)
def test_a_cluster_that_waits_for_messages_keeps_l1_and_takes_no_barrier_of_its_block(builds, family, name):
    """The one barrier is that of launches without clusters, which stands in for the cluster's at the start."""
    for _, lines in kernels(builds, family, name):
        after = lines[where(lines, "STAS")[0] :] if where(lines, "STAS") else []
        assert not [text for text in after if re.search(r"\b(BAR|MEMBAR|FENCE|CCTL|UCGABAR)", text)]


def test_one_exponential_has_at_most_half_of_the_exponentials_of_cluster(builds):
    """One per element, and a few per thread that rescale sums, instead of two per element and in each reduction."""
    for element, elements in (("If", 4 * 4), ("I13__nv_bfloat16", 4 * 8)):
        ((parent, _),) = kernels(builds, "softmax", "cluster", element)
        for kernel, _ in kernels(builds, "softmax", "one_exponential", element):
            exponentials = sass.matching(kernel["opcodes"], "MUFU.EX2")
            assert elements <= exponentials <= elements + 4
            assert 2 * exponentials <= sass.matching(parent["opcodes"], "MUFU.EX2")


def test_one_exchange_of_two_rows_requests_gamma_and_beta_before_it_waits_for_other_blocks(builds):
    waiting = 0
    for kernel, lines in kernels(builds, "layernorm", "one_exchange"):
        waits = where(lines, "TRYWAIT")
        if rows_at_once(kernel) == 2 and waits:
            waiting += 1
            assert where(lines, "LDG.E.128")[2 * PACKS_OF_A_THREAD + 1] < waits[0]
    assert waiting == 2


def test_one_exchange_of_two_rows_has_at_most_three_quarters_of_the_work_of_cluster(builds):
    """Instructions per pack of bf16."""
    ((parent, _),) = kernels(builds, "layernorm", "cluster", "I13__nv_bfloat16")
    for kernel, _ in kernels(builds, "layernorm", "one_exchange", "I13__nv_bfloat16"):
        if rows_at_once(kernel) == 2:
            assert sum(kernel["opcodes"].values()) / 2 <= 0.75 * sum(parent["opcodes"].values())
