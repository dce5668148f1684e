/* Which GPU qualifies for a job: the rules that all policies share. */
#ifndef CARMA_CORE_QUALIFY_H
#define CARMA_CORE_QUALIFY_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct gpu;
struct job;

/* Why the GPU cannot take the job at now_ns beside its residents: REASON_NONE if it can. */
uint32_t gpu_verdict(const struct core *core, const struct job *job, const struct gpu *gpu, int64_t now_ns);

/* Whether the job would take the GPU, once that is idle. */
bool gpu_is_for(const struct core *core, const struct job *job, const struct gpu *gpu);

/* Whether the job could start there beside its user's own jobs, once all others have left. */
bool gpu_will_be_for(const struct core *core, const struct job *job, const struct gpu *gpu);

/* Whether the GPU is idle and has the memory that is known to be needed. */
bool gpu_fits_idle(const struct core *core, const struct job *job, const struct gpu *gpu);

/* What is left there to further jobs beside the one that has the GPU reserved, once those have gone that were there
 * before. One that wants more does not qualify. Valid until the next record is applied. */
const struct beside_reserved *gpu_beside_reserved(const struct core *core, const struct gpu *gpu);

#endif
