from pathlib import Path

import pytest

from warplog.core.errors import WarplogError
from warplog.parsers import ptxas

DATA = Path(__file__).parents[2] / "data" / "parsers"


def kernels(name):
    return {(k.mangled, k.arch): k for k in ptxas.parse((DATA / name).read_text())}


def test_every_kernel_of_a_log_is_found_once_per_architecture():
    found = ptxas.parse((DATA / "ptxas_two_archs.log").read_text())
    assert len(found) == 12
    assert [k.arch for k in found] == ["sm_80"] * 6 + ["sm_90"] * 6
    assert "_Z4polyPKffi" not in {k.mangled for k in found}  # a function that is called, not a kernel


def test_spills_stack_registers_and_shared_memory_belong_to_their_kernel():
    found = kernels("ptxas_sm90.log")
    crowded = found["crowded", "sm_90"]
    assert (crowded.stack_bytes, crowded.spill_store_bytes, crowded.spill_load_bytes) == (824, 1116, 1144)
    assert (crowded.registers_per_thread, crowded.barriers, crowded.static_shared_bytes) == (32, 0, 0)
    scale = found["_Z5scaleILi128EdEvPT0_S0_", "sm_90"]
    assert (scale.registers_per_thread, scale.static_shared_bytes, scale.barriers) == (12, 1024, 1)
    assert (scale.stack_bytes, scale.spill_store_bytes, scale.spill_load_bytes) == (0, 0, 0)


def test_constant_memory_is_unknown_where_ptxas_prints_none():
    found = kernels("ptxas_two_archs.log")
    assert found["empty", "sm_80"].constant_bytes == 352
    assert found["empty", "sm_90"].constant_bytes is None


def test_several_constant_banks_add_up():
    log = (
        "ptxas info    : Compiling entry function 'k' for 'sm_75'\n"
        "ptxas info    : Function properties for k\n"
        "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 20 registers, used 2 barriers, 4096+16 bytes smem, 360 bytes cmem[0],"
        " 8 bytes cmem[2]\n"
    )
    (kernel,) = ptxas.parse(log)
    assert (kernel.constant_bytes, kernel.static_shared_bytes, kernel.barriers) == (368, 4096, 2)
    assert (kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes) == (8, 4, 12)


def test_a_called_function_does_not_lend_its_stack_to_the_kernel():
    log = (
        "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
        "ptxas info    : Function properties for k\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Function properties for called\n"
        "    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 20 registers, used 0 barriers, 16 bytes cumulative stack size\n"
    )
    (kernel,) = ptxas.parse(log)
    assert (kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes) == (0, 0, 0)


def test_names_are_readable_where_a_demangler_is_installed():
    if ptxas.shutil.which("c++filt") is None:
        pytest.skip("no c++filt")
    names = {k.mangled: k.kernel for k in ptxas.parse((DATA / "ptxas_sm90.log").read_text())}
    assert names["_ZN4demo6hornerEPfPKfi"] == "demo::horner(float*, float const*, int)"
    assert names["crowded"] == "crowded"


def test_names_stay_mangled_without_a_demangler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    names = {k.mangled: k.kernel for k in ptxas.parse((DATA / "ptxas_sm90.log").read_text())}
    assert names["_ZN4demo6hornerEPfPKfi"] == "_ZN4demo6hornerEPfPKfi"


def test_other_lines_do_not_matter():
    log = (DATA / "ptxas_sm90.log").read_text()
    noisy = "\n".join(
        f"{line}\nkernel.cu(3): warning #177-D: variable was declared" for line in log.splitlines()
    )
    assert ptxas.parse(noisy) == ptxas.parse(log)


@pytest.mark.parametrize("log", ["", "nvcc fatal : no input", "ptxas info    : Used 3 registers"])
def test_a_log_without_kernels_has_none(log):
    assert ptxas.parse(log) == ()


def test_a_kernel_whose_assembly_failed_is_not_reported():
    log = "ptxas info    : Compiling entry function 'k' for 'sm_90'\nptxas error   : 'k' uses too much\n"
    assert ptxas.parse(log) == ()


LOG = (DATA / "ptxas_sm90.log").read_text()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("824 bytes stack frame", "824 byt3s stack frame", "the stack frame of kernel crowded is missing"),
        ("1116 bytes spill", "1116 bytes spi11", "line [0-9]+ is damaged, or of a newer ptxas"),
        ("properties for crowded", "pr0perties for crowded", "the stack frame of kernel crowded is missing"),
        ("1024 bytes smem", "1024 bytes snem", "is damaged, or of a newer ptxas"),
        ("used 1 barriers, 1024", "uzed 1 barriers, 1024", "is damaged, or of a newer ptxas"),
        ("Used 32 registers", "Used " + "9" * 5000 + " registers", "is damaged"),
        (
            "entry function 'crowded'",
            "entry function 'crouded'",
            "the stack frame of kernel crouded is missing",
        ),
        ("entry function 'crowded' for 'sm_90'", "entry function 'crowded' for 'sm_'", "is damaged"),
        ("ptxas info    : Compiling entry function 'wide' for 'sm_90'\n", "", "a kernel has no name"),
        ("ptxas info    : Compiling entry function 'wide'", "ptxas", "line [0-9]+ is damaged"),
    ],
)
def test_a_damaged_line_about_a_kernel_is_refused_and_no_zero(old, new, words):
    with pytest.raises(WarplogError, match=words):
        ptxas.check_whole(LOG.replace(old, new))
