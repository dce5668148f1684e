#include "core/waiting/room.h"

#define UNIT_BYTES (INT64_C(64) << 20)

const struct room room_none = {{0}};

/* clang-format off */
#define FOUR(x) x, x, x, x
const struct room room_whole = {{FOUR(FOUR(FOUR(INT16_MAX)))}};
/* clang-format on */

int16_t room_need(int64_t bytes)
{
    int64_t units = bytes > 0 ? bytes / UNIT_BYTES : 0;

    if (bytes == INT64_MAX)
        return ROOM_NEED_IDLE;
    return units < ROOM_NEED_IDLE - 2 ? (int16_t)units : ROOM_NEED_IDLE - 2;
}

struct room room_of_needs(int16_t units, uint8_t band)
{
    struct room needs = room_whole;

    needs.units[band] = units;
    return needs;
}

struct room room_beside(int64_t bytes, uint64_t bands)
{
    static const uint16_t bits[16] = {1,      1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                                      1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
    int16_t units = (int16_t)(room_need(bytes) + 1);
    struct room room;

    for (int from = 0; from < SLOWDOWN_BANDS; from += 16)
        for (int k = 0; k < 16; k++) /* by a mask: the compiler makes few instructions of it */
            room.units[from + k] = (uint16_t)(bands >> from) & bits[k] ? units : 0;
    return room;
}

void room_widen(struct room *room, const struct room *by)
{
    for (int band = 0; band < SLOWDOWN_BANDS; band++)
        room->units[band] = by->units[band] > room->units[band] ? by->units[band] : room->units[band];
}

void room_narrow(struct room *room, const struct room *to)
{
    for (int band = 0; band < SLOWDOWN_BANDS; band++)
        room->units[band] = to->units[band] < room->units[band] ? to->units[band] : room->units[band];
}

bool room_holds(const struct room *room, const struct room *needs)
{
    int16_t within = 0;

    for (int band = 0; band < SLOWDOWN_BANDS; band++)
        within |= needs->units[band] < room->units[band];
    return within;
}
