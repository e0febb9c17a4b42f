"""A variant with a search space whose 'kernel' is C++ for the host, with a fake nvcc and a fake timing core.

Setting (A, B) takes 100 A + 10 B microseconds. A 3, B 2 does not compile; A 2, B 4 crashes; A 4, B 4 is wrong;
A 1, B 2 kills the process of the search as long as the file `trap` exists.
"""

import sys
from pathlib import Path

import made_up_records
from host_family import REFERENCE, YAML, compile_c
from warplog.catalog.family import load_family
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job
from warplog.measure.tuning.search import Search, make_search
from warplog.records.config import TimeSettings, TuneSettings

TUNE = """
    parameters: {A: 2, B: 2, FIXED: 7}
    tune:
      cases: ["64", "1000"]
      values: {A: [1, 2, 3, 4], B: [1, 2, 4]}
      threads: 32 * A
      where: [A * B <= 16, THREADS >= A + B and FIXED == 7, not (A == 1 and B == 1)]
      first: [{A: 4, B: 1}]
"""
SOURCE = """
#include <csignal>
#include <cerrno>
#include <unistd.h>
typedef void* cudaStream_t;
static_assert(A != 3 || B != 2, "three and two do not go together");
extern "C" int launch(const float* x, float* y, int N, float factor, cudaStream_t) {
    if (A == 2 && B == 4) raise(SIGSEGV);
    if (A == 1 && B == 2 && access("PLACE/trap", F_OK) == 0) { kill(getppid(), SIGKILL); sleep(20); }
    for (int i = 0; i < N; ++i) y[i] = A == 4 && B == 4 ? 0.0f : factor * x[i];
    errno = 100 * A + 10 * B;
    return 0;
}
"""
COMPILER = """#!/bin/sh
for word; do
    case $word in
        -D*|-I*) defines="$defines $word" ;;
        *.so) library=$word ;;
        *.d) listing=$word ;;
        *launcher.cu) source=$word ;;
    esac
done
echo "$library" >> PLACE/compiled
echo "ptxas info    : Compiling entry function 'kernel' for 'sm_90'"
echo "ptxas info    : Used 40 registers, used 1 barriers, 4096 bytes smem"
exec g++ -O0 -shared -fPIC $defines -x c++ "$source" -o "$library" -MMD -MF "$listing"
"""
TIMER = """
#include <errno.h>
typedef int (*Launcher)(const void*, void*);
struct Sample { float event_us, sm_mhz, set_mhz; int blocked; float host_us; };
int warplog_timer_create(void** t) { *t = 0; return 0; }
int warplog_timer_destroy(void* t) { return 0; }
const char* warplog_timer_error(int code) { return "an error of the host"; }
int warplog_timer_warm_up(void* t, Launcher f, const void* a, int least, float ms, int* n, float* first, float* best) {
    *n = 1; *first = *best = 1; return f(a, 0);
}
int warplog_timer_probe(void* t, float* mhz) { *mhz = 0; return 0; }
int warplog_timer_cold(void* t, Launcher f, const void* a, int count, struct Sample* out, int block, float pause) {
    for (int i = 0; i < count; ++i) {
        errno = 0;
        int code = f ? f(a, 0) : 0;
        if (code) return code;
        out[i].event_us = 1 + errno; out[i].sm_mhz = out[i].set_mhz = 0; out[i].blocked = 1; out[i].host_us = 0;
    }
    return 0;
}
static Launcher prepared;
static const void* with;
int warplog_timer_prepare(void* t, Launcher f, const void* a, int launches, int capture) {
    prepared = f; with = a;
    return 0;
}
int warplog_timer_run(void* t, int batches, float pause, float* out, float* mhz) {
    int code = prepared(with, 0);
    for (int i = 0; i < batches; ++i) out[i] = errno;
    *mhz = 0;
    return code;
}
int warplog_timer_release(void* t) { return 0; }
"""
POLICY = TimeSettings(
    min_samples=3,
    max_samples=5,
    max_seconds=1.0,
    rel_error=0.002,
    warmup_launches=1,
    warmup_ms=1.0,
    hot_seconds=0.01,
    timeout_s=20.0,
)


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def make_place(place: Path) -> None:
    """Writes kernels/scale with the variant `right`, which has a search space, and the fake tools to `place`."""
    folder = place / "kernels" / "scale"
    folder.mkdir(parents=True)
    (folder / "family.yaml").write_text(
        YAML.replace("  - {name: right, idea: as it should be}", "  - name: right\n    idea: tuned" + TUNE)
    )
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "right.cu").write_text(SOURCE.replace("PLACE", str(place)))
    executable(place / "nvcc", COMPILER.replace("PLACE", str(place)))
    executable(place / "cuobjdump", "#!/bin/sh\n")
    (place / "timer.c").write_text(TIMER)
    compile_c(place / "timer.c", place / "timer.so")


def search(place: Path, minutes: float = 10.0, campaign: str = "c") -> Search:
    """Returns the search in a folder that make_place has filled."""
    family = load_family(place / "kernels" / "scale" / "family.yaml")
    record = place / "results" / "tune" / "host" / "scale" / "right.json"
    job = Job(
        family=family,
        variant=family.variant("right"),
        gpu=made_up_records.gpu(
            slug="host",
            name="no GPU",
            uuid=f"host {place}",
            sms=0,
            driver="d",
            max_sm_mhz=0,
            power_limit_w=None,
        ),
        build_folder=record.with_name(".right.work") / "settings",
        record=record,
        scratch=record.with_name(".right.work"),
        settings=TuneSettings(minutes=minutes, timeout_s=20.0),
        tools={},
        commit="",
        content_sha256="",
        backend="numpy",
    )
    tools = tuple(Tool(name, place / name, "1", "") for name in ("nvcc", "cuobjdump"))
    return make_search(job, campaign, "sm_90", tools, place / "timer.so", POLICY, cores=2)


if __name__ == "__main__":
    search(Path(sys.argv[1])).run()
