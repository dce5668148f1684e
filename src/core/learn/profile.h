/* The history of a user's workload: kept by learn.c. */
#ifndef CARMA_CORE_PROFILE_H
#define CARMA_CORE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "core/record.h"

struct autocluster;
struct job_run;
struct program_history;
struct user;

/* The knowledge of a user's workload; jobs with the same key share it. */
struct profile {
    struct user *user;
    uint32_t runs;       /* that completed, and did not meet their fence */
    bool tells;          /* the first of them counts in the distribution that others are told (guess/prior.h) */
    int64_t first_bytes; /* the memory of the first run; the other runs' differences from it, in parts of 10,000
                            of it: */
    int64_t distance_sum;
    int64_t distance_squares;
    int64_t outgrown_bytes; /* the memory of the last completed run with a declared request, where that was more; else
                               0 */
    int64_t
        peak_bytes; /* the most that any of them was observed to hold on a GPU, or needed at least when it crashed */
    int64_t estimated_bytes;   /* by the last estimate of a run that was submitted without; 0: none */
    int32_t activity_permille; /* solo SM activity */
    int64_t variance;          /* of that estimate, permille squared */
    struct record_failure failure;
    struct program_history *program;  /* the workloads of its program; borrowed; NULL: its name tells none */
    uint32_t jobs;                    /* that have not ended */
    struct job_run *placed;           /* a list of those that have GPUs: not part of the state */
    struct autocluster *autoclusters; /* a list of those that wait: not part of the state either */
    uint32_t news;                    /* enum learn_news, the largest: in the list core.news */
    struct profile *next_news;
    uint32_t measures; /* in which it is named (pairs.h): a cache, as is the next */
    uint32_t met;      /* of them, the speeds of it beside another */
    UT_hash_handle hh;
    char workload[]; /* as long as it is: many have been submitted once */
};

#endif
