/* Learning activity from samples of the GPUs. */
#ifndef CARMA_CORE_READINGS_H
#define CARMA_CORE_READINGS_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct gpu;
struct job;
struct record;

/* Whether a sample of the GPU at at_ns would teach anything: not where residents came or went within the window. */
bool learn_sample_is_due(const struct core *core, const struct gpu *gpu, int64_t at_ns);

/* Learns the residents' activities from a sample of a GPU. The activity of a job that was alone is measured directly;
 * else it comes from regression (one step of a Kalman filter with independent estimates). */
void learn_activity(struct core *core, struct gpu *gpu, const struct record *sample);

/* Corrects the activity of the job's workload by one reading of it alone. The reading differs by differs_permille from
 * what is known, and has that variance, in permille squared. */
void learn_from_reading(struct core *core, struct job *job, int64_t differs_permille, int64_t variance);

#endif
