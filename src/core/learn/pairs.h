/* Measures of workloads alone and beside others: how fast their jobs say they are, and how busy the GPU is. They tell
 * the cost of two workloads for each other. Where there is no measure, the prediction (slowdown.h) does.
 *
 * A measure beside another counts from the second reading on: one may have met a data set that was read for the first
 * time. Each reading counts as much as all before it together. How fast a job runs is said by its own user, so nobody
 * makes another's job look slower. How busy a GPU is tells only of one user's jobs: another's might idle there. Of two
 * users' jobs, measures may only say that they get a quarter more done than predicted (slowdown.c). A measure without a
 * reading for PAIRS_VALID_NS is forgotten: programs, data and drivers change, and a pair that turned out bad is tried
 * again. */
#ifndef CARMA_CORE_PAIRS_H
#define CARMA_CORE_PAIRS_H

#include <stdint.h>

#include "base/hash.h"
#include "core/record.h"

struct core;
struct gpu;
struct job;
struct profile;

#define PAIRS_READINGS 2
#define PAIRS_VALID_NS (30 * 24 * INT64_C(3600000000000))
#define PAIRS_MOST     4096 /* measures that are remembered: the user with the most loses the oldest */

enum pairs_kind {
    PAIRS_SPEED,    /* of `of` beside `beside`, in millionths of a step in a second */
    PAIRS_ACTIVITY, /* the GPU's, with both, in permille; `of` is the first by name */
    PAIRS_PART,     /* a speed alone on an instance (parts.h) */
    PAIRS_KINDS
};

struct pairs_key {                     /* hashed as it is: no padding */
    const struct profile *of, *beside; /* NULL: alone */
    uint32_t share;                    /* enum share_mode; 0: alone; of PAIRS_PART, permille of a GPU's SMs */
    uint32_t kind;                     /* enum pairs_kind */
};

struct measure {
    struct pairs_key key;
    int64_t value;
    int64_t unit; /* of a speed: the steps of a pass, since bars of different loops count different steps; else 0 */
    int64_t gpu_bytes; /* memory of the GPU: tells models apart */
    uint32_t readings;
    int64_t at_ns; /* of the latest */
    UT_hash_handle hh;
};

/* A reading. False: one of its members is out of range. */
bool pairs_note(struct core *core, const struct measure *reading);

/* The key of a workload's speed alone on that part of a GPU's SMs, in permille; the measure, NULL: there is none. */
struct pairs_key pairs_key_alone(const struct profile *of, int32_t part_permille);
const struct measure *pairs_speed_alone(const struct core *core, const struct profile *of, int32_t part_permille);

/* Learns from a running job's speed: alone, or beside one other job. */
void pairs_learn_speed(struct core *core, const struct job *job, const struct record *progressed);

/* Learns from a sample of the GPU that is due (learn.h). */
void pairs_learn_activity(struct core *core, const struct gpu *gpu, const struct record *sample);

/* By speed: how much slower than alone `of` was beside `beside`. By the GPU's activity: how much slower both were, if
 * they were slowed alike, as the prediction assumes. In permille, at least 1000; 0: not known. */
int32_t pairs_slowdown(const struct core *core, const struct gpu *gpu, const struct profile *of,
                       const struct profile *beside, uint32_t share);
int32_t pairs_slowdown_by_activity(const struct core *core, const struct gpu *gpu, const struct profile *of,
                                   const struct profile *beside, uint32_t share);

/* How much slower than alone a job of the workload runs now, by its report. Where its speed alone is not known, it is
 * at least the fastest that the job has reported, of the same number of steps (0: none). 0: not known. */
int32_t pairs_slowed(const struct core *core, const struct gpu *gpu, const struct profile *of,
                     const struct record_progressed *report, int64_t fastest);

/* The SM activity by which the job is predicted not to fit beside others. 0: measures may say that it fits better than
 * predicted. */
int32_t pairs_activity(const struct job *job);

void pairs_forget_old(struct core *core, int64_t now_ns);
void pairs_forget_profile(struct core *core, const struct profile *profile); /* it is about to go */

#endif
