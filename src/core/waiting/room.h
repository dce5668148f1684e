/* The memory that jobs may find beside the residents of GPUs, or need at least, by the SM activity that is expected of
 * them: a GPU may have room for a light job and none for a busy one, or the other way round. Activities are taken in
 * the bands of slowdown.h and memory in units of 64 MiB, so that a look costs a few instructions. Nothing that fits is
 * missed by that; what is found may fit nowhere (qualify.c says). */
#ifndef CARMA_CORE_ROOM_H
#define CARMA_CORE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/share/slowdown.h"

/* In units. A need is within a room where it is less. */
struct room {
    int16_t units[SLOWDOWN_BANDS];
};

#define ROOM_NEED_IDLE (INT16_MAX - 1) /* within the room of an idle GPU alone */
#define ROOM_NEED_NONE INT16_MAX       /* within no room */

/* Of GPUs that take nobody, and of idle ones. */
extern const struct room room_none, room_whole;
#define SPACE_NONE  ((struct space){0, 0})
#define SPACE_WHOLE ((struct space){INT16_MAX, UINT64_MAX})

/* Bytes as a need; INT64_MAX: idle GPUs. */
int16_t room_need(int64_t bytes);

/* The needs of one job. */
struct room room_of_needs(int16_t units, uint8_t band);

/* What one GPU leaves to jobs of these bands, a bit for each (slowdown_bands). */
struct space {
    int16_t units;
    uint64_t bands;
};

struct gpu_space {
    struct space space;
    uint32_t gpu;
};

/* To at least the space, or at most the other room, in each band. */
void room_widen(struct room *room, struct space by);
void room_narrow(struct room *room, const struct room *to);

/* Whether a need of any band is within the room. */
bool room_holds(const struct room *room, const struct room *needs);

#endif
