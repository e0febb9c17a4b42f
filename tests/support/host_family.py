"""A family whose 'kernels' are C functions for the host, to test check and supervisor without a GPU."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from warplog.catalog.family import Family, load_family
from warplog.core.hashing import sha256_file
from warplog.measure.job import Job
from warplog.records import door
from warplog.records.build import Build
from warplog.records.campaign import Gpu
from warplog.records.config import CheckSettings

T = TypeVar("T")
_PRETENDED = Path(__file__).parents[1] / "workflow" / "pretended_gpu.py"
YAML = """
family: scale
title: scaling
summary: y = factor * x + beta * y
arguments:
  - {name: x, kind: input, dtype: float32, shape: [N]}
  - {name: y, kind: output, dtype: float32, shape: [N]}
  - {name: N, kind: scalar, dtype: int32}
  - {name: factor, kind: scalar, dtype: float32}
tolerance: {dtype: float32, reduction_length: 1, factor: 2}
work: {flops: N, bytes: 8*N, size: N, size_label: elements}
defaults: {factor: 3.0}
cases: {"64": {N: 64}, "1000": {N: 1000}}
check_cases: {odd: {N: 127}, one: {N: 1}, even: {N: 256}}
profile_cases: ["64"]
headline_case: "64"
baseline: right
variants:
  - {name: right, idea: as it should be}
"""
REFERENCE = """
def make_inputs(xp, rng, case):
    return {"x": rng.random(int(case["N"])).astype(xp.float32)}

def reference(xp, inputs, case):
    expected = inputs["x"].astype(xp.float64) * case["factor"]
    return {"y": (expected, xp.abs(expected))}
"""
HEADER = (
    "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <signal.h>\n#include <math.h>\n"
)
STRUCT = "struct A { const float* x; float* y; int N; float factor; };\n"


def pretend(place: Path, more: str = "") -> None:
    """Gives programs with `place`/site on PYTHONPATH a GPU of the host; `more` is code that runs after that.

    `place`/temporary is for their temporary files.
    """
    for name in ("site", "temporary"):
        (place / name).mkdir(parents=True)
    (place / "site" / "sitecustomize.py").write_text(_PRETENDED.read_text() + more)


def pretended_path(place: Path) -> str:
    """Returns PYTHONPATH for programs with that GPU: the checkout's package, `place`/site, and this folder."""
    here = Path(__file__).parent
    return ":".join(map(str, (here.parents[1] / "workflow", place / "site", here)))


def compile_c(source: Path, library: Path, *options: str) -> None:
    """Compiles a C source to a library; the same source is compiled once per process."""
    library.unlink(missing_ok=True)  # a process may have loaded it
    library.write_bytes(_library(source.read_text(), *options))


@cache
def _library(text: str, *options: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "library.so"
        command = ["cc", "-O1", "-shared", "-fPIC", *options, "-o", library, "-x", "c", "-", "-lm"]
        subprocess.run(command, input=text, text=True, check=True)
        return library.read_bytes()


def make_family(folder: Path) -> Family:
    """Writes the family to `folder`/scale and loads it."""
    place = folder / "scale"
    place.mkdir(parents=True, exist_ok=True)
    (place / "family.yaml").write_text(YAML)
    (place / "reference.py").write_text(REFERENCE)
    (place / "right.cu").write_text("// a stand-in; the tests compile C\n")
    return load_family(place / "family.yaml")


def named(job: Job[T], *names: str) -> list[Job[T]]:
    """Returns one job per name: variants of one family, which share its record file."""
    right = job.family.variants[0]
    family = structs.replace(job.family, variants=tuple(structs.replace(right, name=name) for name in names))
    return [replace(job, family=family, variant=variant) for variant in family.variants]


def make_job(folder: Path, body: str, timeout_s: float = 20.0) -> Job[CheckSettings]:
    """Returns a job whose launcher executes the C statements `body`, with the arguments in `a` (struct A)."""
    family = make_family(folder / "kernels")
    build = folder / "build"
    build.mkdir(exist_ok=True)
    source = build / "launcher.c"
    source.write_text(
        f"{HEADER}{STRUCT}int warplog_launch(const struct A* a, void* stream) {{ {body} return 0; }}\n"
    )
    library = build / "kernel.so"
    compile_c(source, library)
    record = Build(
        family="scale",
        variant="right",
        status="ok",
        reason="",
        origin="live",
        arch="sm_90",
        source_sha256="",
        library_sha256=sha256_file(library),
        parameters={},
        command=(),
        seconds=0.0,
        tools={},
    )
    door.write(build / "record.json", record)
    gpu = Gpu(
        slug="none",
        name="no GPU",
        uuid=f"host of {os.getpid()}",
        compute_capability=(9, 0),
        arch="sm_90",
        sms=0,
        memory_bytes=0,
        driver="",
        cuda_driver="",
        max_sm_mhz=0,
        power_limit_w=None,
        pci_bus_id="",
    )
    return Job(
        family=family,
        variant=family.variants[0],
        gpu=gpu,
        build_folder=build,
        record=folder / "check" / "none" / "scale.json",
        scratch=folder / "work",
        settings=CheckSettings(rounds=2, timeout_s=timeout_s),
        tools={},
        commit="",
        content_sha256="",
        backend="numpy",
    )


TIMER = """
#include <stdlib.h>
#include <time.h>
typedef int (*Launcher)(const void*, void*);
struct Sample { float event_us; float sm_mhz; float set_mhz; int blocked; float host_us; };
static int code;
static float once(Launcher launch, const void* arguments) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (launch) code = launch(arguments, 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (b.tv_sec - a.tv_sec) * 1e6f + (b.tv_nsec - a.tv_nsec) * 1e-3f;
}
const char* warplog_timer_error(int code) { return "host"; }
int warplog_timer_create(void** handle) { *handle = 0; return 0; }
int warplog_timer_destroy(void* handle) { return 0; }
int warplog_timer_warm_up(void* h, Launcher launch, const void* arguments, int least, float ms, int* count,
                          float* first, float* fastest) {
    *first = *fastest = once(launch, arguments);
    *count = 1;
    return 0;
}
int warplog_timer_probe(void* h, float* mhz) { *mhz = 1000.0f; return 0; }
int warplog_timer_cold(void* h, Launcher launch, const void* arguments, int count, struct Sample* out, int block,
                       float pause_us) {
    for (int i = 0; i < count; ++i) {
        const float us = once(launch, arguments);
        out[i] = (struct Sample){us, 1000.0f, 1000.0f, 1, us};
    }
    return 0;
}
static Launcher prepared;
static const void* with;
int warplog_timer_prepare(void* h, Launcher launch, const void* arguments, int launches, int capture) {
    prepared = launch;
    with = arguments;
    return 0;
}
int warplog_timer_run(void* h, int batches, float pause_us, float* out, float* mhz) {
    for (int i = 0; i < batches; ++i) out[i] = once(prepared, with);
    *mhz = LIMITED && ((const int*)with)[4] == LIMITED ? 500.0f : 1000.0f;
    return 0;
}
int warplog_timer_release(void* h) { return 0; }
struct Pair { Launcher launch[2]; const void* with[2]; };
struct Turn { float event_us; float sm_mhz; int blocked; };
int warplog_timer_pair(void* h, Launcher a, const void* with_a, Launcher b, const void* with_b, struct Pair** out,
                       int* which) {
    *out = calloc(1, sizeof(struct Pair));
    **out = (struct Pair){{a, b}, {with_a, with_b}};
    return 0;
}
int warplog_timer_part(struct Pair* pair) { free(pair); return 0; }
int warplog_timer_enter(struct Pair* pair, int which) { return 0; }
int warplog_timer_leave(struct Pair* pair, int which) { return 0; }
int warplog_timer_turns(struct Pair* pair, const unsigned char* order, const unsigned* delays, int count, int block,
                        float pause_us, struct Turn* out, int* which) {
    for (int i = 0; i < count; ++i) {
        *which = order[i];
        out[i] = (struct Turn){once(pair->launch[*which], pair->with[*which]), 1000.0f, block};
        if (code) return code;
    }
    return 0;
}
"""


def make_timer(folder: Path, limited: int = 0) -> Path:
    """Compiles a timing core that times host functions with the host's clock and reports 1000 MHz.

    After back-to-back launches of the case with N = `limited`, it reports 500 MHz.
    """
    source, library = folder / "timer.c", folder / "timer.so"
    source.write_text(TIMER)
    compile_c(source, library, f"-DLIMITED={limited}")
    return library


# What the stand-in for the tracer says that it traced: every lane of these blocks reads 4 bytes, once.
KERNEL, GRID, THREADS = "_Z4madev", 8, 32
TRACER = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef struct __attribute__((packed)) {
    char magic[8]; uint32_t name, padding; uint64_t start, code;
    uint32_t grid[3], block[3], first, blocks; uint64_t used, kept;
} Head;
typedef struct { uint64_t address; uint32_t block, offset, active; uint16_t thread; uint8_t size, what; } Access;
static char path[4096], why[100];
static uint32_t blocks, fitting;
static unsigned long long capacity;
const char* warplog_unready(void) { return ""; }
void warplog_begin(const char* to, uint32_t first, uint32_t count, unsigned long long entries) {
    strcpy(path, to), blocks = count < GRID ? count : GRID, capacity = entries;
}
const char* warplog_end(void) {
    const uint64_t used = THREADS * blocks, kept = used < capacity ? used : capacity / THREADS * THREADS;
    fitting = used > kept ? capacity / THREADS : 0;
    Head head = {"WLTRACE1", strlen(KERNEL), 0, 4096, 64, {GRID, 1, 1}, {THREADS, 1, 1}, 0, blocks, used, kept};
    memcpy(head.magic, "WLTRACE1", 8);
    FILE* file = fopen(path, "wb");
    fwrite(&head, sizeof head, 1, file);
    fwrite(KERNEL, strlen(KERNEL), 1, file);
    for (uint64_t i = 0; i < kept; ++i) {  /* every lane reads 4 bytes, STRIDE bytes after those of the lane before */
        Access access = {(1ull << 40) + STRIDE * i, i / THREADS, 16, 0xffffffff, i % THREADS, 4, 1 | 1 << 4};
        fwrite(&access, sizeof access, 1, file);
    }
    fclose(file);
    return WHY;
}
uint32_t warplog_fitting(void) { return fitting; }
"""


def make_tracer(library: Path, stride: int = 4, why: str = "") -> Path:
    """Compiles a tracer of accesses that says the same of every launch; `why` is the reason why it traces nothing."""
    values = {"KERNEL": f'"{KERNEL}"', "GRID": GRID, "THREADS": THREADS, "STRIDE": stride, "WHY": f'"{why}"'}
    source = library.with_suffix(".c")
    source.write_text("".join(f"#define {name} {value}\n" for name, value in values.items()) + TRACER)
    compile_c(source, library)
    return library


# A fake CUDA driver: device memory is host memory.
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long Ptr;
int cuInit(unsigned f) { return 0; }
int cuDeviceGet(int* d, int i) { *d = 0; return 0; }
int cuDevicePrimaryCtxRetain(void** c, int d) { *c = (void*)1; return 0; }
int cuCtxSetCurrent(void* c) { return 0; }
int cuCtxSynchronize(void) { return getenv("CUDA_PRETEND_FAILURE") ? 719 : 0; }
int cuGetErrorString(int code, const char** text) { *text = "unspecified launch failure"; return 0; }
int cuMemAlloc_v2(Ptr* p, size_t n) { *p = (Ptr)malloc(n); memset((void*)*p, 0x5a, n); return 0; }
int cuMemAllocManaged(Ptr* p, size_t n, unsigned attach) {
    *p = (Ptr)malloc(n);
    memset((void*)*p, 0xa5, n);
    return attach == 1 ? 0 : 1;
}
int cuMemcpyHtoD_v2(Ptr p, const void* from, size_t n) { memcpy((void*)p, from, n); return 0; }
int cuMemFree_v2(Ptr p) { free((void*)p); return 0; }
int cuMemHostRegister_v2(void* p, size_t n, unsigned flags) {
    char words[64];
    sprintf(words, "%p %zu %u", p, n, flags);
    return setenv("PINNED", words, 1);
}
int cuMemHostUnregister(void* p) { return unsetenv("PINNED"); }
"""


PYTHON_RIGHT = """
def launch(arrays, scalars, stream):
    arrays["y"][:] = arrays["x"] * scalars["factor"]
"""


def make_python_family(
    folder: Path, modules: Mapping[str, str], options: str = "", language: str = "cupy"
) -> Family:
    """Writes the family with one variant per Python module, which gets NumPy arrays, and loads it.

    `options` are further keys of each variant.
    """
    place = folder / "scale"
    place.mkdir(parents=True, exist_ok=True)
    (place / "reference.py").write_text(REFERENCE)
    for name, text in modules.items():
        (place / f"{name}.py").write_text(text)
    entries = (f"  - {{name: {name}, idea: an idea, language: {language}{options}}}\n" for name in modules)
    head = YAML[: YAML.index("  - {name: right")]
    (place / "family.yaml").write_text(head + "".join(entries))
    return load_family(place / "family.yaml")


def make_python_job(folder: Path, module: str, options: str = "") -> Job[CheckSettings]:
    """Returns a job whose launcher is the module; its build record is that of a successful build."""
    job = make_job(folder, "")  # for the rest of a job
    family = make_python_family(folder / "kernels", {"right": module}, options)
    variant = family.variants[0]
    job = replace(job, family=family, variant=variant)
    library = {"source_sha256": variant.fingerprint(), "library_sha256": "a" * 64, "language": "cupy"}
    door.write(job.build_folder / "record.json", structs.replace(job.build, **library))
    return replace(job)  # without the cached build record
