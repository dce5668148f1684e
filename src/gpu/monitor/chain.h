/* One look at the node through all sources: the backend first, then, for missing values, each further source in the
 * order given. At last NVML's utilisation comes in place of SM activity, marked as such (docs/metrics.md). Used within
 * carma-monitor only. */
#ifndef CARMA_GPU_MONITOR_CHAIN_H
#define CARMA_GPU_MONITOR_CHAIN_H

#include "gpu/backend.h"
#include "gpu/metric_source.h"

#define GPU_CHAIN_LINKS 4

/* How long a metric must have been missing, node time, before the next in the chain is asked for it. A measure over an
 * interval is not there at the first look. */
#define GPU_CHAIN_TIMEOUT_NS INT64_C(100000000)
/* Node time until a source that could not be opened is retried. */
#define GPU_CHAIN_RETRY_NS INT64_C(60000000000)

struct gpu_chain;

struct gpu_chain_link {
    const struct gpu_metric_source *source;
    const char *library; /* the argument of its open(); must outlive the chain */
};

/* Opens the backend. The further sources are opened when they are first needed, so that a node that lacks nothing pays
 * nothing for them. `links` ends with a source NULL. `period_ns`: node time between two looks. 0 and *chain, or a
 * negative errno. */
int gpu_chain_open(const struct gpu_backend *backend, const struct gpu_backend_options *options,
                   const struct gpu_chain_link *links, int64_t period_ns, struct gpu_chain **chain, struct error *err);

/* Fills *reading; for all answers of the backend and the sources, it makes a frame that the daemon accepts. 0, or the
 * backend's negative errno. */
int gpu_chain_read(struct gpu_chain *chain, struct gpu_node_reading *reading, struct error *err);

void gpu_chain_close(struct gpu_chain *chain); /* takes NULL */

#endif
