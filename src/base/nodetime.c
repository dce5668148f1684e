#include "base/nodetime.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/units.h"

static double scale; /* 0 until read */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

int nodetime_init(struct error *err)
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

double nodetime_scale(void)
{
    if (scale == 0)
        nodetime_init(NULL);
    return scale;
}

int64_t nodetime_now_ns(void)
{
    double factor = nodetime_scale();

    if (factor == 1)
        return clock_ns(CLOCK_REALTIME);
    return (int64_t)((double)clock_ns(CLOCK_BOOTTIME) * factor);
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
    return clock_ns(CLOCK_MONOTONIC);
}
