#include "daemon/view/holding.h"

#include "base/units.h"

static void add(int64_t *sum, int64_t bytes, int64_t ms)
{
    int64_t more, mib = bytes / MIB + (bytes % MIB >= MIB / 2);

    if (bytes > 0 && (__builtin_mul_overflow(mib, ms, &more) ||
                      __builtin_add_overflow(*sum, more, sum)))
        *sum = INT64_MAX;
}

/* Whole milliseconds: the fraction is counted with the next. */
static void advance(struct holding *holding, int64_t at_ns)
{
    int64_t ns;

    if (holding->at_ns <= 0 || at_ns <= holding->at_ns || __builtin_sub_overflow(at_ns, holding->at_ns, &ns))
        return;
    add(&holding->mib_ms, holding->bytes, ns / NS_PER_MS);
    add(&holding->measured_mib_ms, holding->measured_bytes, ns / NS_PER_MS);
    holding->at_ns += ns / NS_PER_MS * NS_PER_MS;
}

void holding_begin(struct holding *holding, int64_t at_ns)
{
    holding->at_ns = at_ns;
    holding->bytes = holding->measured_bytes = 0;
}

void holding_set(struct holding *holding, int64_t at_ns, int64_t bytes, int64_t measured_bytes)
{
    if (holding->at_ns <= 0)
        return;
    advance(holding, at_ns);
    if (at_ns < holding->at_ns) /* the clock was set back */
        holding->at_ns = at_ns;
    holding->bytes = bytes;
    holding->measured_bytes = measured_bytes;
}

void holding_end(struct holding *holding, int64_t at_ns)
{
    advance(holding, at_ns);
    holding->at_ns = holding->bytes = holding->measured_bytes = 0;
}

int64_t holding_mib_ms(const struct holding *holding, int64_t now_ns)
{
    struct holding copy = *holding;

    advance(&copy, now_ns);
    return copy.mib_ms;
}
