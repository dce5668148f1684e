/* The jobs of a daemon's own past, as jobs of the simulator, from its records of arrivals, GPUs, memory and run times.
 * So a site sees its own days under another policy.
 *
 * Facts that a record lacks are inferred. A job's SM activity is from samples of its GPUs while it had been alone there
 * for a whole window. Else it is the mean of its workload's other runs, else of all runs, else ACTIVITY_ASSUMED. Its
 * work: the time it trained, each moment counted at the rate that `contention` gives it beside the jobs it shared its
 * GPUs with. Its need: the most that was observed. Its user's share: the last one. Pure: no input or output. */
#ifndef CARMA_SIM_PAST_H
#define CARMA_SIM_PAST_H

#include <stddef.h>
#include <stdint.h>

#include "core/record.h"
#include "sim/sim.h"

#define PAST_ACTIVITY_ASSUMED 0.5

struct past;

struct past *past_new(void);
void past_free(struct past *past);

/* The next stored record. */
void past_record(struct past *past, const struct record *record);

/* The records' jobs in the order of submission, the first arriving at 0. Only jobs with a last run that ended by
 * itself: completed, failed, or killed. Owned by the history. */
struct past_jobs {
    const struct sim_job *items;
    size_t count;
    size_t left_out;     /* never ran to an end of their own */
    size_t inferred;     /* with SM activity that was never observed alone */
    uint32_t gpu_count;  /* of the node */
    int64_t total_bytes; /* of its largest GPU */
};

/* After the last record: works the jobs out. `share`: how jobs shared GPUs of which no record says it. load_ns: as in
 * sim_options. last_ns: 0, or only the jobs that were submitted within this time before the last record. */
void past_finish(struct past *past, enum share_mode share, const struct contention_params *contention, int64_t load_ns,
                 int64_t last_ns, struct past_jobs *jobs);

#endif
