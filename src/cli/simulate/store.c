/* The jobs of a daemon's own past. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/simulate/simulate.h"
#include "sim/past.h"
#include "store/store.h"

static int feed(uint64_t seq, const struct record *record, void *past)
{
    past_record(past, record);
    return 0;
}

int simulate_jobs_load_store(struct simulate_jobs *jobs, const struct simulate_source *source, enum share_mode share,
                             const struct contention_params *contention, struct error *err)
{
    struct contention_params usual = *contention;
    struct sim_options defaults;
    struct past_jobs past;
    int rc;

    usual.spread = 0; /* nobody recorded who crowds whom out */
    sim_options_default(&defaults);
    jobs->past = past_new();
    rc = store_read(source->trace, feed, jobs->past, err);
    if (rc)
        return rc;
    past_finish(jobs->past, share, &usual, defaults.load_ns, source->last_ns, &past);
    if (past.count == 0)
        return error_set(err, EINVAL, "%s: none of its jobs%s has run to an end: let some", source->trace,
                         source->last_ns ? " of that time" : "");
    jobs->count = past.count;
    jobs->gpu_count = past.gpu_count;
    jobs->gpu_bytes = past.total_bytes;
    jobs->items = xcalloc(past.count, sizeof *jobs->items);
    jobs->origins = xcalloc(past.count, sizeof *jobs->origins);
    memcpy(jobs->items, past.items, past.count * sizeof *jobs->items);
    for (size_t i = 0; i < past.count; i++)
        jobs->origins[i] = (struct simulate_origin){.request_bytes = past.items[i].request_bytes,
                                                    .request_source = past.items[i].request_source,
                                                    .expected_permille = past.items[i].expected_permille,
                                                    .line = i + 1};
    fprintf(stderr, "%zu jobs of the past", past.count);
    if (past.left_out)
        fprintf(stderr, "; %zu left out, which did not run to an end", past.left_out);
    if (past.inferred)
        fprintf(stderr, "; SM activity of %zu inferred, as they were never alone for long enough", past.inferred);
    fprintf(stderr, "\n");
    return 0;
}
