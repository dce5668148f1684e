#include "base/nodetime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/units.h"

#define OFFSET_VARIABLE "CARMA_NODE_OFFSET"

/* Less is not taken for a step: the two clocks cannot be read at once. */
#define STEP_NS (100 * NS_PER_MS)

/* A reading of both clocks that lasted no longer is good; else the better of a few is. */
#define TOGETHER_NS (20 * NS_PER_US)
#define READINGS    5

static double scale; /* 0 until read */
static int64_t offset_ns;
static _Atomic int64_t shift_ns;

int64_t nodetime_clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* The wall clock's lead over the time since boot. */
static int64_t wall_lead_ns(void)
{
    int64_t lead_ns = 0, shortest_ns = INT64_MAX;

    for (int i = 0; i < READINGS && shortest_ns > TOGETHER_NS; i++) {
        int64_t before_ns = nodetime_clock_ns(CLOCK_BOOTTIME), wall_ns = nodetime_clock_ns(CLOCK_REALTIME);
        int64_t lasted_ns = nodetime_clock_ns(CLOCK_BOOTTIME) - before_ns;
        if (lasted_ns >= shortest_ns)
            continue;
        shortest_ns = lasted_ns;
        lead_ns = wall_ns - before_ns - lasted_ns / 2;
    }
    return lead_ns;
}

static int read_scale(struct error *err)
{
    const char *text = getenv("CARMA_TIME_SCALE");
    char *end;
    double value;

    scale = 1;
    if (!text || !*text)
        return 0;
    value = strtod(text, &end);
    if (end == text || *end || !(value >= 1 && value <= NODETIME_SCALE_MAX))
        return error_set(err, EINVAL, "CARMA_TIME_SCALE '%.40s' is not a number from 1 to %d: unset or correct it",
                         text, NODETIME_SCALE_MAX);
    scale = value;
    return 0;
}

int nodetime_init(struct error *err)
{
    const char *text = getenv(OFFSET_VARIABLE);

    atomic_store(&shift_ns, 0);
    if (!text)
        offset_ns = wall_lead_ns();
    else if (parse_integer(text, INT64_MIN, INT64_MAX, &offset_ns, NULL) != 0)
        return error_set(err, EINVAL, OFFSET_VARIABLE " '%.40s' is not carmad's: unset it", text);
    return read_scale(err);
}

void nodetime_set_offset_ns(int64_t new_ns)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, new_ns);
    setenv(OFFSET_VARIABLE, text, 1);
    offset_ns = new_ns;
    atomic_store(&shift_ns, 0);
}

int64_t nodetime_new_offset_ns(int64_t after_ns)
{
    int64_t lead_ns = wall_lead_ns(), least_ns = after_ns - nodetime_clock_ns(CLOCK_BOOTTIME);

    return lead_ns > least_ns ? lead_ns : least_ns;
}

double nodetime_scale(void)
{
    if (scale == 0)
        nodetime_init(NULL);
    return scale;
}

int64_t nodetime_now_ns(void)
{
    double factor = nodetime_scale();
    int64_t since_boot_ns = nodetime_clock_ns(CLOCK_BOOTTIME);

    return factor == 1 ? since_boot_ns + offset_ns : (int64_t)((double)since_boot_ns * factor);
}

int64_t nodetime_to_wall_ns(int64_t node_ns)
{
    return (int64_t)((double)node_ns / nodetime_scale());
}

int64_t nodetime_from_wall_ns(int64_t wall_ns)
{
    return (int64_t)((double)wall_ns * nodetime_scale());
}

int64_t nodetime_monotonic_wall_ns(void)
{
    return nodetime_clock_ns(CLOCK_MONOTONIC);
}

int64_t nodetime_shift_ns(void)
{
    int64_t told_ns, now_ns;

    if (nodetime_scale() != 1)
        return 0;
    told_ns = atomic_load(&shift_ns);
    now_ns = wall_lead_ns() - offset_ns;
    if (now_ns - told_ns <= STEP_NS && told_ns - now_ns <= STEP_NS)
        return told_ns;
    atomic_store(&shift_ns, now_ns);
    return now_ns;
}

int64_t nodetime_shown_ns(int64_t node_ns)
{
    return node_ns + nodetime_shift_ns();
}

int64_t nodetime_of_shown_ns(int64_t shown_ns)
{
    int64_t node_ns;

    return __builtin_sub_overflow(shown_ns, nodetime_shift_ns(), &node_ns) ? shown_ns : node_ns;
}

int64_t nodetime_shown_now_ns(void)
{
    return nodetime_shown_ns(nodetime_now_ns());
}
