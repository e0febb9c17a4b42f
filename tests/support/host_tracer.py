"""A stand-in for the tracer of accesses, for kernels that are C functions: it writes a trace of a made-up kernel."""

from pathlib import Path

from host_family import compile_c

KERNEL, GRID, THREADS = "_Z4madev", 8, 32
_SOURCE = r"""
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
    """Compiles the stand-in; `why` is the reason for which it traces nothing."""
    values = {"KERNEL": f'"{KERNEL}"', "GRID": GRID, "THREADS": THREADS, "STRIDE": stride, "WHY": f'"{why}"'}
    source = library.with_suffix(".c")
    source.write_text("".join(f"#define {name} {value}\n" for name, value in values.items()) + _SOURCE)
    compile_c(source, library)
    return library
