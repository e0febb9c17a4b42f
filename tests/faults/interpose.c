/* Preloaded into a process: kills it before the n-th call that creates, renames or removes a file below a folder, or lets
   the n-th call that needs space there, and all later ones, fail as on a full disk. Built with: cc -shared -fPIC -ldl. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long kill_at, full_at, changes, writes;

/* The faults begin with this call; 0 means never. */
void faults_begin(const char* below, long nth_change, long nth_write) {
    strncpy(folder, below, sizeof folder - 1);
    kill_at = nth_change, full_at = nth_write, changes = writes = 0;
}

long faults_changes(void) { return changes; }
long faults_writes(void) { return writes; }

static int below(const char* path) {
    size_t length = strlen(folder);
    return length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int is_path(const char* path) {
    char here[PATH_MAX];
    if (!folder[0] || !path) return 0;
    return path[0] == '/' ? below(path) : getcwd(here, sizeof here) && below(here);
}

static int is_file(int file) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return below(path);
}

static void change(void) {
    if (__atomic_add_fetch(&changes, 1, __ATOMIC_SEQ_CST) == kill_at) kill(getpid(), SIGKILL), pause();
}

static int full(void) {
    long number = __atomic_add_fetch(&writes, 1, __ATOMIC_SEQ_CST);
    if (!full_at || number < full_at) return 0;
    errno = ENOSPC;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name, parameters, arguments)                           \
    int name parameters {                                           \
        va_list rest;                                               \
        va_start(rest, flags);                                      \
        mode_t mode = va_arg(rest, mode_t);                         \
        va_end(rest);                                               \
        if ((flags & O_CREAT) && is_path(path)) {                   \
            change();                                               \
            if (full()) return -1;                                  \
        }                                                           \
        return REAL(name) arguments;                                \
    }
OPEN(open, (const char* path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char* path, int flags, ...), (path, flags, mode))
OPEN(openat, (int at, const char* path, int flags, ...), (at, path, flags, mode))
OPEN(openat64, (int at, const char* path, int flags, ...), (at, path, flags, mode))

#define CHANGE(result, name, parameters, path, arguments)           \
    result name parameters {                                        \
        if (is_path(path)) change();                                \
        return REAL(name) arguments;                                \
    }
CHANGE(int, rename, (const char* from, const char* to), to, (from, to))
CHANGE(int, renameat, (int a, const char* from, int b, const char* to), to, (a, from, b, to))
CHANGE(int, renameat2, (int a, const char* from, int b, const char* to, unsigned flags), to, (a, from, b, to, flags))
CHANGE(int, link, (const char* from, const char* to), to, (from, to))
CHANGE(int, linkat, (int a, const char* from, int b, const char* to, int flags), to, (a, from, b, to, flags))
CHANGE(int, symlink, (const char* from, const char* to), to, (from, to))
CHANGE(int, symlinkat, (const char* from, int at, const char* to), to, (from, at, to))
CHANGE(int, unlink, (const char* path), path, (path))
CHANGE(int, unlinkat, (int at, const char* path, int flags), path, (at, path, flags))
CHANGE(int, rmdir, (const char* path), path, (path))

#define MKDIR(name, parameters, arguments)                          \
    int name parameters {                                           \
        if (is_path(path)) {                                        \
            change();                                               \
            if (full()) return -1;                                  \
        }                                                           \
        return REAL(name) arguments;                                \
    }
MKDIR(mkdir, (const char* path, mode_t mode), (path, mode))
MKDIR(mkdirat, (int at, const char* path, mode_t mode), (at, path, mode))

#define WRITE(result, name, parameters, arguments)                  \
    result name parameters {                                        \
        if (is_file(file) && full()) return -1;                     \
        return REAL(name) arguments;                                \
    }
WRITE(ssize_t, write, (int file, const void* data, size_t size), (file, data, size))
WRITE(ssize_t, writev, (int file, const struct iovec* data, int count), (file, data, count))
WRITE(ssize_t, pwrite, (int file, const void* data, size_t size, off_t at), (file, data, size, at))
WRITE(ssize_t, pwrite64, (int file, const void* data, size_t size, off64_t at), (file, data, size, at))
WRITE(int, ftruncate, (int file, off_t size), (file, size))
WRITE(int, ftruncate64, (int file, off64_t size), (file, size))

/* Copies of whole files: the caller falls back to write. */
ssize_t sendfile(int file, int from, off_t* at, size_t size) {
    if (is_file(file)) return errno = EINVAL, -1;
    return ((ssize_t(*)(int, int, off_t*, size_t))dlsym(RTLD_NEXT, "sendfile"))(file, from, at, size);
}
ssize_t sendfile64(int file, int from, off64_t* at, size_t size) {
    if (is_file(file)) return errno = EINVAL, -1;
    return ((ssize_t(*)(int, int, off64_t*, size_t))dlsym(RTLD_NEXT, "sendfile64"))(file, from, at, size);
}
ssize_t copy_file_range(int from, off64_t* at, int file, off64_t* to, size_t size, unsigned flags) {
    if (is_file(file)) return errno = EXDEV, -1;
    return REAL(copy_file_range)(from, at, file, to, size, flags);
}
