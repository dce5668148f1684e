/* The memory that jobs may find beside the residents of GPUs, or need at least, by the SM activity that is expected of
 * them: a GPU may have room for a light job and none for a busy one, or the other way round. Activities are taken in
 * the bands of slowdown.h and memory in units of 64 MiB, so that a look costs a few instructions. Nothing that fits is
 * missed by that; what is found may fit nowhere (qualify.c says). */
#ifndef CARMA_CORE_VACANCY_H
#define CARMA_CORE_VACANCY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/share/slowdown.h"

/* In units. A need is within a vacancy where it is less. */
struct vacancy {
    int16_t units[SLOWDOWN_BANDS];
};

#define VACANCY_NEED_IDLE (INT16_MAX - 1) /* within the vacancy of an idle GPU alone */
#define VACANCY_NEED_NONE INT16_MAX       /* within none */

/* Of GPUs that take nobody, and of idle ones. */
extern const struct vacancy vacancy_none, vacancy_whole;
#define SPACE_NONE  ((struct space){0, 0})
#define SPACE_WHOLE ((struct space){INT16_MAX, UINT64_MAX})

/* Bytes as a need; INT64_MAX: idle GPUs. */
int16_t vacancy_need(int64_t bytes);

/* The needs of one job. */
struct vacancy vacancy_of_needs(int16_t units, uint8_t band);

/* What one GPU leaves to jobs of these bands, a bit for each (slowdown_bands). */
struct space {
    int16_t units;
    uint64_t bands;
};

struct gpu_space {
    struct space space;
    uint32_t gpu;
};

/* To at least the space, or at most the other vacancy, in each band. */
void vacancy_widen(struct vacancy *vacancy, struct space by);
void vacancy_narrow(struct vacancy *vacancy, const struct vacancy *to);

/* Whether a need of any band is within the vacancy. */
bool vacancy_holds(const struct vacancy *vacancy, const struct vacancy *needs);

#endif
