/* Preloaded into carma's programs by the fault tests. It acts as the file $CARMA_FAULT says at that moment. It kills
 * the process before or after a call to the C library, makes it wait or fail, or shifts the clock.
 *
 * A process changes the world only by such calls, so between two of them nothing can be lost or done twice. The points
 * before and after each are the only ones to be killed at. The programs have nothing of this in them. */
#include "fault/fail.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static struct fail_control *control; /* NULL: nothing is to fail */
static char program[sizeof((struct fail_slot *)0)->program - 1];
static pid_t first_pid;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("CARMA_FAULT");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

    snprintf(program, sizeof program, "%s", program_invocation_short_name);
    first_pid = getpid();
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED)
        control = mapped;
}

static bool is_of_this_program(const struct fail_slot *slot)
{
    size_t length = strlen(program);
    bool forked = getpid() != first_pid;

    return strncmp(slot->program, program, length) == 0 && strcmp(slot->program + length, forked ? "+" : "") == 0;
}

static bool is_about(const struct fail_slot *slot, const char *path, int fd)
{
    char link[64], target[512];

    if (!slot->file[0])
        return true;
    if (path)
        return strstr(path, slot->file);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    return strstr(target, slot->file);
}

/* Whether the call is to be hit by the slot: one of those that are counted. */
static bool is_hit(struct fail_slot *slot)
{
    if (__atomic_fetch_sub(&slot->skip, 1, __ATOMIC_RELAXED) > 0)
        return false;
    if (__atomic_fetch_sub(&slot->times, 1, __ATOMIC_RELAXED) <= 0)
        return false;
    __atomic_fetch_add(&slot->hits, 1, __ATOMIC_RELAXED);
    return true;
}

/* The errno with which the call is to fail; 0: it is to be made. May not return. */
static int at(enum fail_when when, const char *call, const char *path, int fd)
{
    int saved = errno;

    for (size_t i = 0; control && i < FAIL_SLOTS; i++) {
        struct fail_slot *slot = &control->slots[i];
        if (!__atomic_load_n(&slot->armed, __ATOMIC_ACQUIRE) || slot->when != when || strcmp(slot->call, call) != 0 ||
            !is_of_this_program(slot) || !is_about(slot, path, fd) || !is_hit(slot))
            continue;
        if (slot->error > 0)
            return slot->error;
        if (slot->error < 0)
            poll(NULL, 0, -slot->error);
        else if (kill(getpid(), SIGKILL) == 0)
            pause();
    }
    errno = saved;
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A call that gives -1 and an errno when it fails. */
#define AROUND(name, path, fd, ...)                                                                                    \
    __typeof__(name(__VA_ARGS__)) result = -1;                                                                         \
    int failure = at(FAIL_BEFORE, #name, path, fd);                                                                    \
    if (failure) {                                                                                                     \
        errno = failure;                                                                                               \
        return -1;                                                                                                     \
    }                                                                                                                  \
    result = REAL(name)(__VA_ARGS__);                                                                                  \
    at(FAIL_AFTER, #name, path, fd);                                                                                   \
    return result

EXPORT int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list list;

    va_start(list, flags);
    if (flags & (O_CREAT | O_TMPFILE))
        mode = va_arg(list, mode_t);
    va_end(list);
    AROUND(open, path, -1, path, flags, mode);
}

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
    AROUND(write, NULL, fd, fd, data, size);
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    AROUND(pwrite64, NULL, fd, fd, data, size, offset);
}

EXPORT int fsync(int fd)
{
    AROUND(fsync, NULL, fd, fd);
}

EXPORT int fdatasync(int fd)
{
    AROUND(fdatasync, NULL, fd, fd);
}

EXPORT int rename(const char *from, const char *to)
{
    AROUND(rename, to, -1, from, to);
}

EXPORT int link(const char *from, const char *to)
{
    AROUND(link, to, -1, from, to);
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    AROUND(mkdir, path, -1, path, mode);
}

EXPORT ssize_t send(int fd, const void *data, size_t size, int flags)
{
    AROUND(send, NULL, fd, fd, data, size, flags);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    AROUND(sendmsg, NULL, fd, fd, message, flags);
}

EXPORT pid_t fork(void)
{
    int failure = at(FAIL_BEFORE, "fork", NULL, -1);

    if (failure) {
        errno = failure;
        return -1;
    }
    pid_t result = REAL(fork)();
    if (result != 0)
        at(FAIL_AFTER, "fork", NULL, -1);
    return result;
}

EXPORT int execvp(const char *file, char *const arguments[])
{
    AROUND(execvp, NULL, -1, file, arguments);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    int result = at(FAIL_BEFORE, "posix_spawn", path, -1);

    if (result)
        return result;
    result = REAL(posix_spawn)(pid, path, actions, attributes, arguments, environment);
    at(FAIL_AFTER, "posix_spawn", path, -1);
    return result;
}

/* SQLite's locks, which are all that is hit of it. */
EXPORT int fcntl64(int fd, int command, ...)
{
    int (*real)(int, int, ...) = REAL(fcntl64);
    va_list list;
    int failure = command == F_SETLK ? at(FAIL_BEFORE, "lock", NULL, fd) : 0;

    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (failure) {
        errno = failure;
        return -1;
    }
    return real(fd, command, argument);
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    int64_t ns = control && clock == CLOCK_REALTIME ? __atomic_load_n(&control->clock_ns, __ATOMIC_RELAXED) : 0;

    if (!real)
        real = REAL(clock_gettime);
    int result = real(clock, time);
    if (ns) {
        ns += time->tv_nsec;
        time->tv_sec += ns / 1000000000;
        time->tv_nsec = ns % 1000000000;
        if (time->tv_nsec < 0) {
            time->tv_nsec += 1000000000;
            time->tv_sec--;
        }
    }
    return result;
}

/* ---- Memory. dlsym() itself allocates, so the C library's own names are called. ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static bool is_without_memory(void)
{
    int failure = at(FAIL_BEFORE, "malloc", NULL, -1);

    if (failure)
        errno = failure;
    return failure;
}

EXPORT void *malloc(size_t size)
{
    return is_without_memory() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return is_without_memory() ? NULL : __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    return is_without_memory() ? NULL : __libc_realloc(old, size);
}
