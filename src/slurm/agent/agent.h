/* carma-slurm-agent: the work on one node that must outlive a step of Slurm's, or stay out of it. */
#ifndef CARMA_SLURM_AGENT_AGENT_H
#define CARMA_SLURM_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"

struct agent {
    const char *socket; /* carmad's */
    const char *spool;
    const char *node;
    int64_t period_ms;
};

/* One call to carmad, on a connection of its own. */
int agent_ask(const struct agent *agent, const char *method, const char *path, const json_t *body, json_t **reply,
              struct error *err);

/* Says it on standard error, which the journal keeps. */
void agent_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
