"""The tables of traced accesses, from records with made-up traces."""

import pytest
from msgspec import structs

from made_up_accesses import accesses, made_up_accesses, untraced
from warplog.records.measured import Absent
from warplog.records.requested.accesses import AccessCase, Counted
from warplog.tables.files import as_frame
from warplog.tables.traced.accesses import TABLES, agreement, rows, summary


def tables(*records):
    """Returns the rows of each table as `write_accesses` writes them."""
    found = {name: [] for name in TABLES}
    for record in records:
        for table, row in rows(record):
            found[table].append({"family": record.family, "variant": record.variant, **row})
    return {name: as_frame(found[name], columns, name) for name, columns in TABLES.items()}


def test_a_row_has_what_was_traced_beside_what_was_counted(tmp_path):
    found = tables(made_up_accesses(tmp_path, "transpose", "smem_conflict"))["accesses"]
    read = found[(found["space"] == "shared") & (found["kind"] == "load")]
    assert len(read) == 4
    assert set(read["traced_wavefronts"]) == set(read["ncu_wavefronts"]) == {1024}
    assert (read["wavefronts_excess"] == 1024 - 32).all()
    assert (read["ways"] == 32).all()
    assert (read["agreement"] == "equal").all()
    assert read["traced_sectors"].isna().all()
    assert set(read["text"].str.contains("tile")) == {True}


def test_use_of_sectors_is_that_of_distinct_bytes(tmp_path):
    found = tables(made_up_accesses(tmp_path, "transpose", "naive"))["accesses"]
    stores, loads = (found[found["kind"] == kind].iloc[0] for kind in ("store", "load"))
    assert (stores["sectors_per_request"], stores["bytes_per_sector"]) == (32, 4)
    assert (loads["sectors_per_request"], loads["bytes_per_sector"]) == (4, 32)


def test_a_kernel_has_its_reuse(tmp_path):
    (kernel,) = tables(made_up_accesses(tmp_path, "sgemm", "smem_tiled"))["traced_kernels"].to_dict("records")
    assert (kernel["blocks"], kernel["traced_blocks"], kernel["threads"], kernel["lost"]) == (4, 4, 1024, 0)
    assert kernel["wave_bytes"] < kernel["wave_bytes_of_blocks"]


def test_counters_that_were_denied_leave_the_traced_values(tmp_path):
    found = tables(made_up_accesses(tmp_path, "transpose", "naive", counted=False))["accesses"]
    assert set(found["agreement"]) == {"not_counted"}
    assert set(found["counted"]) == {"denied"}
    assert found["ncu_sectors"].isna().all()
    assert found["traced_sectors"].notna().all()


def test_a_variant_that_was_not_traced_is_a_row_with_its_reason():
    (row,) = tables(untraced("sgemm", "cublas"))["accesses"].to_dict("records")
    assert (row["status"], row["reason"], row["opcode"]) == ("unsupported", "its kernel is a library's", "")
    assert list(rows(Absent(status="missing", reason="not in the campaign"))) == []
    assert [row["status"] for _, row in rows(Absent(status="error", reason="damaged"))] == ["error"]
    assert [row["status"] for _, row in rows(accesses(status="missing", reason="no GPU"))] == ["missing"]


@pytest.fixture
def example(tmp_path):
    """Returns a load of shared memory that was counted, and its kernel."""
    (case,) = made_up_accesses(tmp_path, "transpose", "padded").cases
    return next(one for one in case.instructions if one.space == "shared"), case.kernels[0]


def test_agreement_is_exact(example):
    one, kernel = example
    more = structs.replace(one, ncu=structs.replace(one.ncu, wavefronts=one.wavefronts + 1))
    other_ideal = structs.replace(
        one, ncu=structs.replace(one.ncu, wavefronts_ideal=one.wavefronts_ideal - 1)
    )
    assert [agreement(which, kernel) for which in (one, more, other_ideal)] == ["equal", "differs", "differs"]


def test_what_cannot_be_compared_has_a_code(example):
    one, kernel = example
    assert agreement(structs.replace(one, ncu=Counted(requests=3)), kernel) == "not_counted"
    assert agreement(structs.replace(one, wavefronts=None, wavefronts_ideal=None), kernel) == "not_traced"
    assert agreement(one, structs.replace(kernel, traced_blocks=1)) == "partly_traced"
    assert agreement(one, structs.replace(kernel, lost=5)) == "partly_traced"


def test_a_loop_that_waits_ran_differently(example):
    one, kernel = example
    waited = structs.replace(one, ncu=Counted(requests=99, lanes=99 * 32, wavefronts=99, wavefronts_ideal=99))
    assert agreement(waited, kernel) == "ran_differently"
    assert (
        agreement(structs.replace(waited, ncu=structs.replace(waited.ncu, lanes=one.lanes)), kernel)
        == "differs"
    )


def test_fewer_wavefronts_of_an_asynchronous_copy_have_a_code(example):
    one, kernel = example
    fewer = structs.replace(one, wavefronts=one.wavefronts + 3)
    more = structs.replace(one, ncu=structs.replace(one.ncu, wavefronts=one.wavefronts + 3))
    assert [agreement(which, kernel) for which in (fewer, more)] == ["differs", "differs"]
    copies = [structs.replace(which, kind="async_copy") for which in (fewer, more)]
    assert [agreement(which, kernel) for which in copies] == ["undercounted", "differs"]


def test_the_summary_names_what_differs_and_what_was_not_traced(tmp_path):
    record = made_up_accesses(tmp_path, "transpose", "padded")
    (case,) = record.cases
    load = structs.replace(case.instructions[0], ncu=Counted(requests=32, sectors=129))
    changed = structs.replace(case, instructions=(load, *case.instructions[1:]))
    larger = AccessCase(case="4096", status="timeout", reason="60 s")
    found = [
        {"family": one.family, "variant": one.variant, **row}
        for one in (structs.replace(record, cases=(larger, changed)), untraced("sgemm", "cublas"))
        for table, row in rows(one)
        if table == "accesses"
    ]
    assert summary(found).splitlines() == [
        "transpose/padded  timeout  60 s",
        "sgemm/cublas  unsupported  its kernel is a library's",
        "transpose/padded  LDG.E.CONSTANT padded.cu:23  sectors: traced 128, counted 129",
        "accesses: 1 of 2 variants traced; instructions: 15 equal, 1 differs",
    ]
    assert summary([]).startswith("accesses: no records")
