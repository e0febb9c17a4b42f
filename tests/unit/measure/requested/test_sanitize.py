"""The stage sanitize with a fake driver and a fake compute-sanitizer around a launcher that actually runs."""

import subprocess
from dataclasses import replace

import pytest
from msgspec import structs

from host_family import DRIVER, compile_c, make_job, named
from one_variant import record_of, sanitize_variant
from warplog.catalog.contract import Measuring
from warplog.core.locks import PATIENCE_S
from warplog.machine.toolchain import Tool
from warplog.measure.stages import sanitize
from warplog.records.config import SanitizeSettings
from warplog.records.requested.sanitize import Sanitize

# Options come first, each with a value; then the worker's command. Like the real tool, it reports failed API calls of
# libraries unless an option turns that off.
TOOL = """#!/bin/sh
probed=1
while [ "${{1#--}}" != "$1" ]; do
    [ "$1" = --tool ] && tool=$2
    [ "$1 $2" = "--report-api-errors no" ] && probed=0
    shift 2
done
echo "========= COMPUTE-SANITIZER"
"$@"; status=$?
cat "{folder}/$tool.txt" 2>/dev/null || echo "========= ERROR SUMMARY: $probed errors"
exit $status
"""
RACE = """\
========= Error: Race reported between Write access at scale(float *)+0xb0 in scale.cu:28
=========     and Read access at scale(float *)+0xc0 in scale.cu:30 [32 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
RACE_LINE = "========= Error: Race reported between Write access at k(float *)+0xb0 in k.cu:8\\\\n"
TOOLS = SanitizeSettings().tools
COPY = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"


@pytest.fixture
def job_of(tmp_path, monkeypatch):
    """Returns a function that makes a job whose launcher is the C code `body`, with a fake driver."""
    source = tmp_path / "driver.c"
    source.write_text(DRIVER)
    compile_c(source, tmp_path / "libcuda.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))

    def make(body, folder=tmp_path, tools=TOOLS):
        job = make_job(folder, body)
        return replace(job, backend="cupy", settings=settings(tools=tuple(tools)))

    return make


@pytest.fixture
def tool(tmp_path):
    path = tmp_path / "compute-sanitizer"
    path.write_text(TOOL.format(folder=tmp_path))
    path.chmod(0o755)
    return Tool("compute-sanitizer", path, "2025.3.1", "")


def settings(**changes):
    return structs.replace(SanitizeSettings(largest_elements=300, timeout_s=20.0), **changes)


def check(record, tool):
    return next(c for c in record.checks if c.tool == tool)


def test_a_clean_variant_is_ok_with_every_tool(job_of, tool):
    job = job_of(COPY)
    record = sanitize_variant(job, tool)
    assert (record.status, record.tool_version) == ("ok", "2025.3.1")
    assert [c.tool for c in record.checks] == list(TOOLS)
    assert not job.scratch.exists()


def test_the_tool_waits_for_a_worker_as_long_as_that_waits_for_the_gpu(tool):
    words = sanitize.command(tool, "memcheck")
    assert float(words[words.index("--launch-timeout") + 1]) >= PATIENCE_S


def test_arrays_in_host_memory_stay_there_and_are_pinned_during_the_launch(job_of, tool):
    body = f"""
        char words[64];
        sprintf(words, "%p %zu 2", (void*)a->x, 4 * (size_t)a->N);
        if (!getenv("PINNED") || strcmp(words, getenv("PINNED"))) return 5;
        if (((unsigned char*)a->y)[0] != 0xFF) return 6;  // the poison of host memory, not the driver's 0x5a
        {COPY}"""
    job = job_of("", tools=["memcheck"])
    source = job.build_folder / "launcher.c"
    text = source.read_text().replace("{  return", f"{{ {body} return")
    source.write_text("#include <stdio.h>\n#include <string.h>\n" + text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", job.build_folder / "kernel.so", source], check=True)
    memory = {"x": "pinned", "y": "pageable"}
    record = sanitize_variant(replace(job, variant=structs.replace(job.variant, memory=memory)), tool)
    assert (record.status, record.reason) == ("ok", "")


def test_managed_arrays_are_allocations_of_their_own(job_of, tool):
    body = f"if (((unsigned char*)a->y)[0] != 0xA5) return 6;  // what the driver fills managed memory with\n{COPY}"
    job = job_of(body, tools=["memcheck"])
    record = sanitize_variant(
        replace(job, variant=structs.replace(job.variant, memory={"y": "managed"})), tool
    )
    assert (record.status, record.reason) == ("ok", "")
    assert sanitize_variant(job, tool).status != "ok", "device memory is not managed"


def test_large_cases_are_left_out(job_of, tool):
    record = sanitize_variant(job_of(COPY, tools=["memcheck"]), tool)
    assert record.cases == ("odd", "one")  # `even` has 256 inputs and 256 outputs


def test_a_family_may_allow_larger_cases(job_of, tool):
    job = job_of(COPY, tools=["memcheck"])
    larger = structs.replace(job.family, measuring=Measuring(sanitized_elements=512))
    record = sanitize_variant(replace(job, family=larger), tool)
    assert set(record.cases) == {"odd", "one", "even"}


def test_the_launcher_gets_arrays_of_exact_size_and_uninitialised_outputs(job_of, tool, tmp_path):
    seen = tmp_path / "seen"
    body = f"""
        FILE* f = fopen("{seen}", "a");
        fprintf(f, "%d %zu %zu %d\\n", a->N, malloc_usable_size((void*)a->x), malloc_usable_size(a->y),
                ((unsigned char*)a->y)[0]);
        fclose(f); {COPY}"""
    job = job_of(
        "", tools=["memcheck"]
    )  # to find its folder; a launcher with further headers replaces this one
    source = job.build_folder / "launcher.c"
    text = source.read_text().replace("{  return", f"{{ {body} return")
    source.write_text("#include <stdio.h>\n#include <malloc.h>\n" + text)
    library = job.build_folder / "kernel.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    sanitize_variant(job, tool)
    lines = set(seen.read_text().splitlines())
    for line in lines:
        count, size_x, size_y, first = map(int, line.split())
        assert 4 * count <= min(size_x, size_y)
        assert max(size_x, size_y) < 4 * count + 64  # rounded up by malloc, without guard bands
        assert first == 0x5A
    assert {line.split()[0] for line in lines} == {"127", "1"}


def test_a_finding_is_a_row_with_its_source_line(job_of, tool, tmp_path):
    (tmp_path / "racecheck.txt").write_text(RACE)
    record = sanitize_variant(job_of(COPY), tool)
    assert record.status == "finding"
    assert check(record, "memcheck").status == "ok"
    rows = sanitize.rows(record)
    race = next(row for row in rows if row["tool"] == "racecheck")
    assert (race["kind"], race["file"], race["line"], race["count"]) == ("race", "scale.cu", 28, 1)
    assert len(rows) == len(TOOLS)
    text = sanitize.summary(rows)
    assert "scale/right  racecheck" in text
    assert "scale.cu:28" in text
    assert text.endswith("over 1 variant: 3 ok, 1 finding")


def test_findings_take_precedence_over_the_crash_that_they_cause(job_of, tool, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_PRETEND_FAILURE", "1")
    (tmp_path / "memcheck.txt").write_text(
        "========= Invalid __global__ write of size 4 bytes\n"
        "=========     at scale(float *)+0x90 in scale.cu:5\n========= ERROR SUMMARY: 1 error\n"
    )
    record = sanitize_variant(job_of(COPY, tools=["memcheck"]), tool)
    assert check(record, "memcheck").status == "finding"
    assert "scale.cu:5" in check(record, "memcheck").reason
    (tmp_path / "synccheck.txt").write_text(
        "========= Target application returned an error\n========= ERROR SUMMARY: 1 error\n"
    )
    crashed = check(sanitize_variant(job_of(COPY, tools=["synccheck"]), tool), "synccheck")
    assert crashed.status == "crashed"
    assert "case odd" in crashed.reason
    assert "unspecified launch failure" in crashed.reason


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("========= Internal trouble\n", "error", "did not finish"),
        (
            "========= Error: Device not supported. Please refer to the documentation\n",
            "unsupported",
            "virtual",
        ),
        (
            "========= Confidential compute mode detected. compute-sanitizer will be disabled.\n"
            "========= ERROR SUMMARY: 0 errors\n",
            "unsupported",
            "virtual",
        ),
        ("========= ERROR SUMMARY: 7 errors\n", "finding", "7 errors"),
        (
            "========= Something new at k\n========= ERROR SUMMARY: 1 error\n",
            "finding",
            "the first: Something new at k",
        ),
    ],
)
def test_unclear_output_of_a_tool_is_never_ok(job_of, tool, tmp_path, text, status, words):
    (tmp_path / "initcheck.txt").write_text(text)
    entry = check(sanitize_variant(job_of(COPY, tools=["initcheck"]), tool), "initcheck")
    assert entry.status == status
    assert words in entry.reason


def test_a_kernel_that_hangs_is_a_timeout(job_of, tool):
    job = job_of("for (;;) sleep(1);")
    job = replace(job, settings=settings(timeout_s=0.5, tools=("memcheck",)))
    assert sanitize_variant(job, tool).status == "timeout"


def test_a_missing_tool_is_recorded_with_the_remedy(job_of):
    missing = Tool("compute-sanitizer", None, None, "install the CUDA toolkit")
    record = sanitize_variant(job_of(COPY), missing)
    assert record.status == "missing"
    assert "install the CUDA toolkit" in record.reason
    assert {row["status"] for row in sanitize.rows(record)} == {"missing"}


def test_a_tool_that_counted_errors_is_not_ok(job_of, tool):
    (clean,) = sanitize_variant(job_of(COPY, tools=["memcheck"]), tool).checks
    with pytest.raises(ValueError, match="in spite of errors"):
        structs.replace(clean, errors=2)


def test_summary_without_records_states_what_is_required():
    assert "requires a GPU" in sanitize.summary([])


COUNTED = 'FILE* f = fopen("{log}", "a"); fprintf(f, "{name} %d\\n", (int)getpid()); fclose(f); '


def family(job_of, folder, bodies, tools=TOOLS):
    """Returns jobs of several variants, whose launchers append their name and process to folder/launched."""
    jobs = []
    for name, body in bodies.items():
        place = folder / name
        place.mkdir(exist_ok=True)
        job = job_of(COUNTED.format(log=folder / "launched", name=name) + body, place, tools)
        job = named(job, *bodies)[list(bodies).index(name)]
        jobs.append(replace(job, record=folder / "records" / "scale.json"))
    return jobs


def launches(folder):
    """Returns the names and processes of launches since the last call."""
    log = folder / "launched"
    lines = log.read_text().split("\n")[:-1] if log.is_file() else []
    log.unlink(missing_ok=True)
    return {line.split()[0] for line in lines}, {line.split()[1] for line in lines}


def test_clean_variants_share_one_process_per_tool(job_of, tool, tmp_path):
    jobs = family(job_of, tmp_path, {"one": COPY, "two": COPY})
    sanitize.sanitize_family(jobs, tool)
    names, processes = launches(tmp_path)
    assert (names, len(processes)) == ({"one", "two"}, len(TOOLS))
    assert [record_of(job, Sanitize).status for job in jobs] == ["ok", "ok"]


def test_a_finding_is_attributed_to_its_variant(job_of, tool, tmp_path):
    # The fake racecheck prints the finding that a launcher has written.
    report = f'FILE* g = fopen("{tmp_path}/racecheck.txt", "w"); fputs("{RACE_LINE}", g); fclose(g); '
    clear = f'remove("{tmp_path}/racecheck.txt"); '
    jobs = family(job_of, tmp_path, {"good": clear + COPY, "racy": report + COPY}, ["racecheck"])
    sanitize.sanitize_family(jobs, tool)
    found = {job.variant.name: record_of(job, Sanitize) for job in jobs}
    assert {name: check(record, "racecheck").status for name, record in found.items()} == {
        "good": "ok",
        "racy": "finding",
    }


def test_a_crash_of_one_variant_leaves_the_others_clean(job_of, tool, tmp_path):
    jobs = family(job_of, tmp_path, {"good": COPY, "deadly": "abort();"}, ["memcheck", "synccheck"])
    sanitize.sanitize_family(jobs, tool)
    found = {job.variant.name: record_of(job, Sanitize).status for job in jobs}
    assert found == {"good": "ok", "deadly": "crashed"}
