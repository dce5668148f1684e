#include "daemon/view/memory_usage.h"

#include "base/units.h"

static void add(int64_t *sum, int64_t bytes, int64_t ms)
{
    int64_t more, mib = bytes / MIB + (bytes % MIB >= MIB / 2);

    if (bytes > 0 && (__builtin_mul_overflow(mib, ms, &more) || __builtin_add_overflow(*sum, more, sum)))
        *sum = INT64_MAX;
}

/* Whole milliseconds: the fraction is counted with the next. */
static void advance(struct memory_usage *memory_usage, int64_t at_ns)
{
    int64_t ns;

    if (memory_usage->at_ns <= 0 || at_ns <= memory_usage->at_ns ||
        __builtin_sub_overflow(at_ns, memory_usage->at_ns, &ns))
        return;
    add(&memory_usage->mib_ms, memory_usage->bytes, ns / NS_PER_MS);
    add(&memory_usage->measured_mib_ms, memory_usage->measured_bytes, ns / NS_PER_MS);
    memory_usage->at_ns += ns / NS_PER_MS * NS_PER_MS;
}

void memory_usage_begin(struct memory_usage *memory_usage, int64_t at_ns)
{
    memory_usage->at_ns = at_ns;
    memory_usage->bytes = memory_usage->measured_bytes = 0;
}

void memory_usage_set(struct memory_usage *memory_usage, int64_t at_ns, int64_t bytes, int64_t measured_bytes)
{
    if (memory_usage->at_ns <= 0)
        return;
    advance(memory_usage, at_ns);
    if (at_ns < memory_usage->at_ns) /* the clock was set back */
        memory_usage->at_ns = at_ns;
    memory_usage->bytes = bytes;
    memory_usage->measured_bytes = measured_bytes;
}

void memory_usage_end(struct memory_usage *memory_usage, int64_t at_ns)
{
    advance(memory_usage, at_ns);
    memory_usage->at_ns = memory_usage->bytes = memory_usage->measured_bytes = 0;
}

int64_t memory_usage_mib_ms(const struct memory_usage *memory_usage, int64_t now_ns)
{
    struct memory_usage copy = *memory_usage;

    advance(&copy, now_ns);
    return copy.mib_ms;
}
