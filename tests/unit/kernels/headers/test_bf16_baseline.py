"""Which of cublasLt's candidates becomes the baseline of bf16_gemm, with a simulated library and GPU."""

import ctypes

import pytest
from host_headers import host_library

SOURCE = """
#include <cuda_bf16.h>
#include <dlfcn.h>
#include <unistd.h>
#include <cstring>

static float times_ms[10];  // by candidate
static float seen_ms = 0, disturbed_ms = 0;
static int candidates = 0, launches = 0, last = -1;
static bool is_capturing = false;

// The first candidate is disturbed after itself and after the last one: while all are compared, but not while it is
// compared with one between them.
static int multiply(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                    void*, void*, const unsigned long* algorithm, void*, size_t, cudaStream_t) {
    const int candidate = static_cast<int>(*algorithm);
    seen_ms = times_ms[candidate] + (candidate == 0 && (last <= 0 || last == candidates - 1) ? disturbed_ms : 0.0f);
    last = candidate;
    ++launches;
    return 0;
}
static int heuristics(void*, void*, void*, void*, void*, void*, void*, int, void* results, int* found) {
    std::memset(results, 0, 96 * candidates);
    for (int i = 0; i < candidates; ++i) static_cast<unsigned long*>(results)[12 * i] = i;
    *found = candidates;
    return 0;
}
static int succeed() { return 0; }
static void* simulated(const char* name) {
    if (!std::strcmp(name, "cublasLtMatmul")) return reinterpret_cast<void*>(multiply);
    if (!std::strcmp(name, "cublasLtMatmulAlgoGetHeuristic")) return reinterpret_cast<void*>(heuristics);
    return reinterpret_cast<void*>(succeed);
}
#define dlopen(...) reinterpret_cast<void*>(1)
#define dlsym(object, name) simulated(name)
#define usleep(...) 0
#define cudaGetDevice(device) (*(device) = 0, cudaSuccess)
#define cudaGetLastError() cudaSuccess
#define cudaMalloc(...) cudaSuccess
#define cudaFree(...) cudaSuccess
#define cudaMemsetAsync(...) cudaSuccess
#define cudaMemcpyAsync(...) cudaSuccess
#define cudaThreadExchangeStreamCaptureMode(...) cudaSuccess
#define cudaStreamIsCapturing(stream, capture) \\
    (*(capture) = is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone, cudaSuccess)
#define cudaEventCreate(...) cudaSuccess
#define cudaEventDestroy(...) cudaSuccess
#define cudaEventRecord(...) cudaSuccess
#define cudaEventSynchronize(...) cudaSuccess
#define cudaEventElapsedTime(ms, ...) (*(ms) = seen_ms, cudaSuccess)
#include "cublas.cu"

// Launches a shape, and returns the candidate that the last launch used.
extern "C" int chosen(int size, int count, const float* ms, float disturbance_ms, int capturing) {
    std::memcpy(times_ms, ms, count * sizeof *ms);
    candidates = count, disturbed_ms = disturbance_ms, is_capturing = capturing, launches = 0, last = -1;
    return launch(nullptr, nullptr, nullptr, size, size, size, nullptr) == cudaSuccess ? last : -1;
}
extern "C" int launched() { return launches; }
"""
pytestmark = pytest.mark.nvcc


class Baseline:
    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.size = 0

    def chosen(
        self, *ms: float, disturbance_ms: float = 0.0, capturing: bool = False, again: bool = False
    ) -> int:
        """Returns the candidate that a launch of a new shape uses, or of the last shape."""
        self.size += not again
        times = (ctypes.c_float * len(ms))(*ms)
        return self.library.chosen(self.size, len(ms), times, ctypes.c_float(disturbance_ms), capturing)


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Baseline:
    return Baseline(host_library(SOURCE, tmp_path_factory.mktemp("baseline")))


def test_the_first_candidate_stays_if_no_other_is_faster_by_more_than_the_noise(baseline: Baseline) -> None:
    assert baseline.chosen(0.180, 0.178, 0.179, 0.177) == 0


def test_a_candidate_that_is_faster_by_more_than_the_noise_is_chosen(baseline: Baseline) -> None:
    assert baseline.chosen(0.180, 0.190, 0.170, 0.175) == 2


def test_of_equally_fast_candidates_the_earlier_one_is_chosen(baseline: Baseline) -> None:
    assert baseline.chosen(0.180, 0.171, 0.170, 0.169) == 1


def test_no_candidate_is_faster_than_the_chosen_one_by_more_than_the_noise(baseline: Baseline) -> None:
    assert baseline.chosen(0.1800, 0.1775, 0.1740) == 2


def test_a_disturbed_comparison_does_not_replace_the_first_candidate(baseline: Baseline) -> None:
    assert baseline.chosen(0.180, 0.190, 0.179, 0.181, disturbance_ms=0.02) == 0


def test_nothing_is_timed_during_capture_and_the_shape_is_timed_later(baseline: Baseline) -> None:
    assert baseline.chosen(0.180, 0.150, capturing=True) == 0
    assert baseline.library.launched() == 1
    assert baseline.chosen(0.180, 0.150, again=True) == 1
    assert baseline.chosen(0.180, 0.150, capturing=True, again=True) == 1
    assert baseline.library.launched() == 1


def test_launches_that_take_too_long_are_not_compared(baseline: Baseline) -> None:
    assert baseline.chosen(30.0, 20.0) == 0
    assert baseline.library.launched() < 5
