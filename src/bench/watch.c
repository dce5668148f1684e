#include "bench/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "gpu/frame.h"

#define LOOK_US     20000
#define START_NS    (60 * NS_PER_SEC)  /* wall: a driver may have to wake its GPUs first */
#define FRAMES_MOST (INT64_C(1) << 30) /* bytes read back of carma-monitor's output */
#define WORDS_MOST  (64 * 1024)

char *bench_path(const char *directory, const char *name)
{
    return xasprintf("%s/%s", directory, name);
}

char *bench_last_words(const char *path)
{
    char *text = NULL, *line;
    size_t length = 0;

    if (file_read(path, WORDS_MOST, &text, &length, NULL) < 0 || length == 0) {
        free(text);
        return xstrdup("it says nothing");
    }
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    line = strrchr(text, '\n');
    line = xstrdup(line ? line + 1 : text);
    free(text);
    return line;
}

int bench_watch_start(const struct bench_setup *setup, const char *only, int64_t period_ns, const char *directory,
                      struct bench_child *child, struct error *err)
{
    CLEANUP(free_ptr) char *program = install_path("lib/carma/carma-monitor");
    CLEANUP(free_ptr) char *period = xasprintf("%lld", (long long)(period_ns / NS_PER_MS));
    CLEANUP(free_ptr) char *frames = bench_path(directory, "frames");
    CLEANUP(free_ptr) char *errors = bench_path(directory, "errors");
    const char *argv[12] = {program, "--period-ms", period};
    size_t count = 3;

    if (only) {
        argv[count++] = "--only";
        argv[count++] = only;
    }
    if (setup->library) {
        argv[count++] = "--library";
        argv[count++] = setup->library;
    }
    if (setup->dcgm) {
        argv[count++] = "--dcgm";
        argv[count++] = setup->dcgm;
    }
    return bench_child_start(child, argv, NULL, frames, errors, err);
}

int64_t bench_file_bytes(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (int64_t)info.st_size : 0;
}

int bench_watch_wait(struct bench_child *child, const char *directory, int64_t bytes, struct error *err)
{
    CLEANUP(free_ptr) char *frames = bench_path(directory, "frames");
    CLEANUP(free_ptr) char *errors = bench_path(directory, "errors");
    int64_t until_ns = nodetime_monotonic_wall_ns() + START_NS;

    while (bench_file_bytes(frames) <= bytes) {
        if (bench_child_ended(child)) {
            CLEANUP(free_ptr) char *words = bench_last_words(errors);
            return error_set(err, ENODEV, "%s", words);
        }
        if (nodetime_monotonic_wall_ns() > until_ns)
            return error_set(err, ETIMEDOUT, "carma-monitor shows nothing: the driver may hang");
        usleep(LOOK_US);
    }
    return 0;
}

int bench_watch_read(const char *directory, void (*see)(void *user, const struct gpu_node_reading *reading), void *user,
                     struct error *err)
{
    CLEANUP(free_ptr) char *path = bench_path(directory, "frames");
    CLEANUP(free_ptr) struct gpu_node_reading *reading = xcalloc(1, sizeof *reading);
    CLEANUP(gpu_frame_decoder_release) struct gpu_frame_decoder decoder = {0};
    CLEANUP(free_ptr) char *bytes = NULL;
    const void *at;
    size_t left = 0;
    int rc = file_read(path, FRAMES_MOST, &bytes, &left, err);

    at = bytes;
    while (rc == 0 && (rc = gpu_frame_decode(&decoder, &at, &left, reading, err)) == 1) {
        see(user, reading);
        rc = 0;
        if (left == 0)
            break;
    }
    return rc < 0 ? rc : 0;
}
