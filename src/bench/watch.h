/* carma-monitor beside a benchmark: its readings go to a file, and are read back when it has ended. */
#ifndef CARMA_BENCH_WATCH_H
#define CARMA_BENCH_WATCH_H

#include "bench/process.h"
#include "bench/run.h"

/* Starts it in `directory`, which then has its `frames` and its `errors`. `only`: the one source that it may ask; NULL:
 * any source. `period_ns`: node time. */
int bench_watch_start(const struct bench_setup *setup, const char *only, int64_t period_ns, const char *directory,
                      struct bench_child *child, struct error *err);

/* Until it has written more than `bytes`. -ENODEV: it ended, with its last message; -ETIMEDOUT. */
int bench_watch_wait(struct bench_child *child, const char *directory, int64_t bytes, struct error *err);

/* Calls `see` with each look that it wrote. */
int bench_watch_read(const char *directory, void (*see)(void *user, const struct gpu_node_reading *reading), void *user,
                     struct error *err);

int64_t bench_file_bytes(const char *path);                /* 0 where the file is missing */
char *bench_path(const char *directory, const char *name); /* owned by the caller */
char *bench_last_words(const char *path); /* the last line of a program's output; owned by the caller */

#endif
