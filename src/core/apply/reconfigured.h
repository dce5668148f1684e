/* The configuration, which is another. */
#ifndef CARMA_CORE_APPLY_RECONFIGURED_H
#define CARMA_CORE_APPLY_RECONFIGURED_H

#include <stdint.h>

struct core;
struct core_config;
struct error;

int apply_reconfigured(struct core *core, const struct core_config *config, struct error *err);

#endif
