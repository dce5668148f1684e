/* Thesis 6.2.2: a job gets idle GPUs and keeps them for itself. */
#include <stddef.h>

#include "core/policy/policy.h"

const struct policy policy_exclusive = {
    .name = "exclusive",
    .summary = "idle GPUs only, one job each",
    .shares = false,
    .idle_first = true,
    .rank = NULL,
};
