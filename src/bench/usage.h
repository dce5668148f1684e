/* The host's resources that processes take: processor time and memory, of all that belong to a session, or have a
 * name. */
#ifndef CARMA_BENCH_USAGE_H
#define CARMA_BENCH_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bench_usage {
    pid_t session;             /* the session; 0: none */
    const char *name;          /* and those of this command name, of any user; NULL: none */
    double cpu_s;              /* since the first look, of processes that ended as far as they were looked at */
    int64_t memory_bytes;      /* resident, at the latest look */
    int64_t memory_peak_bytes; /* of all looks */
    struct bench_process {
        pid_t pid;
        uint64_t start_ticks, first_ticks, last_ticks;
    } * processes; /* owned: those found so far */
    size_t count, capacity;
};

void bench_usage_look(struct bench_usage *usages, size_t count); /* one pass over /proc for all of them */
void bench_usage_release(struct bench_usage *usage);

#endif
