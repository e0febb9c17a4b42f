"""What nvcc makes of the softmax and layernorm ladders: wide accesses, loads together, registers that leave room."""

import re
from functools import cache

import pytest

from sass_builds import Kind, built, check, compilers
from shipped_families import FAMILIES
from warplog.parsers import sass

NAMES = ("softmax", "layernorm")
VARIANTS = [
    (name, variant.name)
    for name in NAMES
    for variant in FAMILIES[name].variants
    if variant.language == "cuda"
]
ONE_READ = [
    *((name, variant) for name in NAMES for variant in ("registers", "warp_per_row", "cluster")),
    ("softmax", "one_exponential"),
]
CLUSTERS = [
    *((name, "cluster") for name in NAMES),
    ("softmax", "one_exponential"),
    ("layernorm", "one_exchange"),
]
REGISTERS_PER_SM = 65536

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def builds(kept_builds):
    """Folder and record of a variant, compiled when it is asked for."""
    compilers()
    return cache(
        lambda family, name: built(FAMILIES[family], FAMILIES[family].variant(name), "sm_90", kept_builds)
    )


def body(builds, family, variant, kernel):
    """The instructions of the kernel with that word in its mangled name."""
    text = (builds(family, variant)[0] / "kernel.sass").read_text()
    (found,) = [part for part in text.split("Function : ")[1:] if kernel in part.split("\n", 1)[0]]
    return re.findall(r"^\s+/\*[0-9a-f]{4,5}\*/\s+(.*?)\s*;", found, re.MULTILINE)


def kernels(builds, family, variant, word):
    found = [k for k in builds(family, variant)[1].kernels if word in k.mangled]
    assert found
    return found


@pytest.mark.parametrize(("family", "name"), VARIANTS)
def test_compiles_without_a_warning_and_keeps_what_family_yaml_expects(builds, family, name):
    check(FAMILIES[family].variant(name), *builds(family, name))


@pytest.mark.parametrize(("family", "name"), VARIANTS)
def test_the_oldest_gpu_is_served_too(kept_builds, family, name):
    compilers()
    variant = FAMILIES[family].variant(name)
    folder, record = built(FAMILIES[family], variant, "sm_75", kept_builds, Kind.RESOURCES)
    if (family, name) in CLUSTERS:
        assert (record.status, "needs sm_90" in record.reason) == ("unsupported", True)
        return
    assert record.status == "ok", record.reason
    assert "warning" not in (folder / "compile.log").read_text()
    for kernel in record.kernels:
        longest_rows = (
            "Li8ELi1024E" in kernel.mangled
        )  # 32 of the 64 registers of a thread hold its part of the row
        assert kernel.spill_store_bytes <= (16 if longest_rows else 0), kernel.kernel


@pytest.mark.parametrize(("family", "name"), VARIANTS)
def test_each_variant_has_a_kernel_for_fp32_and_one_for_bf16(builds, family, name):
    own = [k.mangled for k in kernels(builds, family, name, f"{family}_{name}")]
    assert any("bfloat16" in mangled for mangled in own)
    assert any("bfloat16" not in mangled for mangled in own)


@pytest.mark.parametrize(("family", "name"), ONE_READ)
def test_a_row_that_stays_in_registers_is_loaded_and_stored_once_in_16_bytes(builds, family, name):
    """gamma and beta of layernorm are one more load each per pack."""
    arrays = {"softmax": 1, "layernorm": 3}[family]
    for kernel in kernels(builds, family, name, f"{family}_{name}"):
        wide = sass.matching(kernel.opcodes, "STG.E.128")
        assert wide in (4, 8)
        assert sass.matching(kernel.opcodes, "STG") == wide
        assert (
            sass.matching(kernel.opcodes, "LDG.E.128")
            == sass.matching(kernel.opcodes, "LDG")
            == arrays * wide
        )


@pytest.mark.parametrize(("family", "name"), ONE_READ)
def test_all_loads_of_a_row_are_under_way_before_the_first_is_used(builds, family, name):
    """What is used is compared, added or multiplied: nothing of that stands between the loads."""
    for kernel in kernels(builds, family, name, f"{family}_{name}"):
        lines = body(builds, family, name, kernel.mangled)
        loads = [i for i, text in enumerate(lines) if "LDG.E.128" in text]
        last = loads[sass.matching(kernel.opcodes, "STG.E.128") - 1]
        between = [
            text for text in lines[loads[0] : last] if re.search(r"\b(FADD|FFMA|FMNMX|HMNMX2|MUFU)\b", text)
        ]
        assert between == [], kernel.kernel


@pytest.mark.parametrize("family", NAMES)
def test_blocks_for_rows_of_up_to_32_kib_leave_room_for_1536_threads_per_sm(builds, family):
    for kernel in kernels(builds, family, "registers", "Li4ELi512E"):
        assert kernel.registers_per_thread * 1536 <= REGISTERS_PER_SM


@pytest.mark.parametrize("family", NAMES)
def test_packs_of_bf16_stay_packed_between_their_uses(builds, family):
    """Unpacked they would take 64 registers more per eight packs."""
    for kernel in kernels(builds, family, "warp_per_row", "bfloat16Li32ELi8E"):
        assert kernel.registers_per_thread <= 64


@pytest.mark.parametrize(("family", "name"), CLUSTERS)
def test_blocks_of_a_cluster_tell_each_other_without_a_fence(builds, family, name):
    """A fence of the GPU waits for earlier stores to global memory, and a barrier of the cluster empties L1."""
    senders = 0
    for kernel in kernels(builds, family, name, f"{family}_{name}"):
        lines = body(builds, family, name, kernel.mangled)
        sends = [i for i, text in enumerate(lines) if "STAS.128" in text]
        assert not [text for text in lines if "MEMBAR" in text and "GPU" in text]
        assert sum("UCGABAR_WAIT" in text for text in lines) == 1
        if sends:  # the kernel of rows that a block handles alone sends nothing
            senders += 1
            assert len(sends) == 1
            assert max(i for i, text in enumerate(lines) if "CCTL" in text) < sends[0]
    assert senders >= 2


def test_one_exponential_has_at_most_half_of_the_exponentials_of_cluster(builds):
    """One per element, and a few per thread that rescale sums, instead of two per element and in each reduction."""
    for element, elements in (("If", 4 * 4), ("I13__nv_bfloat16", 4 * 8)):
        (parent,) = kernels(builds, "softmax", "cluster", f"softmax_cluster{element}")
        for kernel in kernels(builds, "softmax", "one_exponential", f"softmax_one_exponential{element}"):
            exponentials = sass.matching(kernel.opcodes, "MUFU.EX2")
            assert elements <= exponentials <= elements + 4
            assert 2 * exponentials <= sass.matching(parent.opcodes, "MUFU.EX2")


def test_exponentials_of_bf16_leave_room_for_1280_threads_per_sm(builds):
    for kernel in kernels(builds, "softmax", "one_exponential", "bfloat16Li256E"):
        assert kernel.registers_per_thread * 1280 <= REGISTERS_PER_SM


PACKS_OF_A_THREAD = 4  # of each row


def one_exchange(builds, word=""):
    """Its kernels, and how many rows each handles at once."""
    found = kernels(builds, "layernorm", "one_exchange", f"layernorm_one_exchange{word}")
    return [(kernel, int(re.search(r"Li(\d)EEv", kernel.mangled)[1])) for kernel in found]


def test_one_exchange_loads_gamma_and_beta_once_for_two_rows(builds):
    handled = set()
    for kernel, rows in one_exchange(builds):
        handled.add(rows)
        assert sass.matching(kernel.opcodes, "STG") == sass.matching(kernel.opcodes, "STG.E.128")
        assert sass.matching(kernel.opcodes, "STG.E.128") == rows * PACKS_OF_A_THREAD
        assert sass.matching(kernel.opcodes, "LDG.E.128") == (rows + 2) * PACKS_OF_A_THREAD
        assert sass.matching(kernel.opcodes, "LDG") == (rows + 2) * PACKS_OF_A_THREAD
    assert handled == {1, 2}


def test_one_exchange_has_all_loads_of_its_rows_under_way_before_the_first_is_used(builds):
    for kernel, rows in one_exchange(builds):
        lines = body(builds, "layernorm", "one_exchange", kernel.mangled)
        loads = [i for i, text in enumerate(lines) if "LDG.E.128" in text][: rows * PACKS_OF_A_THREAD]
        between = [text for text in lines[loads[0] : loads[-1]] if re.search(r"\b(FADD|FFMA|FMUL)\b", text)]
        assert between == [], kernel.kernel


def test_one_exchange_of_two_rows_requests_gamma_and_beta_before_it_waits_for_other_blocks(builds):
    waiting = 0
    for kernel, rows in one_exchange(builds):
        lines = body(builds, "layernorm", "one_exchange", kernel.mangled)
        waits = [i for i, text in enumerate(lines) if "TRYWAIT" in text]
        if rows == 2 and waits:
            waiting += 1
            loads = [i for i, text in enumerate(lines) if "LDG.E.128" in text]
            assert loads[rows * PACKS_OF_A_THREAD + 1] < waits[0]
    assert waiting == 2


def test_one_exchange_leaves_room_for_1024_threads_per_sm(builds):
    for kernel, _ in one_exchange(builds):
        assert kernel.registers_per_thread * 1024 <= REGISTERS_PER_SM


def test_one_exchange_of_two_rows_has_at_most_three_quarters_of_the_work_of_cluster(builds):
    """Instructions per pack of bf16."""
    (parent,) = kernels(builds, "layernorm", "cluster", "layernorm_clusterI13__nv_bfloat16")
    for kernel, rows in one_exchange(builds, "I13__nv_bfloat16"):
        if rows == 2:
            mine = sum(kernel.opcodes.values()) / (rows * PACKS_OF_A_THREAD)
            assert mine <= 0.75 * sum(parent.opcodes.values()) / PACKS_OF_A_THREAD


@pytest.mark.parametrize(
    ("family", "name"), [("softmax", "one_exponential"), ("layernorm", "one_exchange")], ids=lambda text: text
)
def test_a_cluster_that_waits_for_messages_keeps_l1_and_takes_no_barrier_of_its_block(builds, family, name):
    """The one barrier is that of launches without clusters, which stands in for the cluster's at the start."""
    for kernel in kernels(builds, family, name, f"{family}_{name}"):
        lines = body(builds, family, name, kernel.mangled)
        sent = [i for i, text in enumerate(lines) if "STAS" in text]
        if sent:
            assert not [
                text for text in lines[sent[0] :] if re.search(r"\b(BAR|MEMBAR|FENCE|CCTL|UCGABAR)", text)
            ]


def test_rows_of_naive_are_read_element_by_element(builds):
    for name in NAMES:
        for kernel in builds(name, "naive")[1].kernels:
            assert sass.matching(kernel.opcodes, "LDG.E.128") == 0
