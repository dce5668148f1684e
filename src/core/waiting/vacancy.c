/* How this file works: a vacancy has the most memory for each band of SM activity, a space the same for some
 * bands. search_of and find_most (backfill.c) widen a vacancy by the space of each GPU that has opened; trees of
 * waiting jobs (autocluster.c) keep the least need of each branch as a vacancy that was narrowed, and leave out
 * branches that vacancy_holds() says no to. Rounding is to the side of looking once too often. */
#include "core/waiting/vacancy.h"

#define UNIT_BYTES (INT64_C(64) << 20)

const struct vacancy vacancy_none = {{0}};

/* clang-format off */
#define FOUR(x) x, x, x, x
const struct vacancy vacancy_whole = {{FOUR(FOUR(FOUR(INT16_MAX)))}};
/* clang-format on */

int16_t vacancy_need(int64_t bytes)
{
    int64_t units = bytes > 0 ? bytes / UNIT_BYTES : 0;

    if (bytes == INT64_MAX)
        return VACANCY_NEED_IDLE;
    return units < VACANCY_NEED_IDLE - 2 ? (int16_t)units : VACANCY_NEED_IDLE - 2;
}

struct vacancy vacancy_of_needs(int16_t units, uint8_t band)
{
    struct vacancy needs = vacancy_whole;

    needs.units[band] = units;
    return needs;
}

/* Eight bands, as the processor takes them at once: compilers do not find that here by themselves. */
typedef int16_t eight __attribute__((vector_size(16), aligned(2), may_alias));

static eight eight_of(int16_t value)
{
    return (eight){value, value, value, value, value, value, value, value};
}

void vacancy_widen(struct vacancy *vacancy, struct space by)
{
    const eight bits = {1, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7};

    for (int from = 0; from < SLOWDOWN_BANDS && by.bands; from += 8) {
        eight *there = (eight *)&vacancy->units[from];
        eight units = eight_of(by.units) & ((eight_of((int16_t)(by.bands >> from & 255)) & bits) == bits);
        eight more = units > *there;
        *there = (units & more) | (*there & ~more);
    }
}

void vacancy_narrow(struct vacancy *vacancy, const struct vacancy *to)
{
    for (int band = 0; band < SLOWDOWN_BANDS; band++)
        vacancy->units[band] = to->units[band] < vacancy->units[band] ? to->units[band] : vacancy->units[band];
}

bool vacancy_holds(const struct vacancy *vacancy, const struct vacancy *needs)
{
    int16_t within = 0;

    for (int band = 0; band < SLOWDOWN_BANDS; band++)
        within |= needs->units[band] < vacancy->units[band];
    return within;
}
