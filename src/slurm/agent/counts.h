/* Requests as Slurm counts them: lists of GRES. */
#ifndef CARMA_SLURM_AGENT_COUNTS_H
#define CARMA_SLURM_AGENT_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

/* The value of " NAME=value" in a line of scontrol's, up to the next blank. false: not there, or too long. */
bool counts_property(const char *line, const char *name, char *value, size_t size);

/* A node's counts for whole GPUs. */
struct counts_node {
    int64_t gpus;
    int64_t whole_bytes; /* gpumem of one GPU */
    bool has_big;
    int64_t sm; /* gpusm of one GPU; 0: it counts none */
};

/* Of a node's list "gpumem:160G,gpubig:4". false: it counts no gpumem. */
bool counts_read_node(const char *list, int64_t gpus, struct counts_node *node);

/* A job's list with another request of memory on each of its GPUs. Whole GPUs take all of their gpusm, since nobody
 * comes beside the job; other GRES of `old` stay. */
void counts_request(const char *old, const struct counts_node *node, int64_t gpus, int64_t bytes, struct strbuf *list);

/* A node's list with gpumem, gpubig and gpusm lowered to `usable` of its GPUs. */
void counts_lower(const char *list, int64_t gpus, int64_t usable, struct strbuf *lowered);

/* The job's list with more of gpusm than its node has free beside what is used there; at each refusal an eighth of the
 * node more, at most all. No lease depends on gpusm. false: it asks for as much already, or none is counted. */
bool counts_beyond_free(const char *old, const char *node, const char *used, int64_t refusals, struct strbuf *list);

#endif
