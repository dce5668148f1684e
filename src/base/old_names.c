#include "base/old_names.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"

static const struct {
    const char *was, *is;
} names[] = {
    /* settings */
    {"recovery", "oom_retry"},
    {"max_recoveries", "max_retries"},
    {"max_recoveries_per_user", "max_retries_per_user"},
    {"patience", "starvation_timeout"},
    {"trim", "shrink_after"},
    /* values: of `share` and of `carma stats --by` */
    {"streams", "time-slice"},
    {"claim", "source"},
};

const char *present_name(const char *name)
{
    for (size_t i = 0; i < array_size(names); i++)
        if (strcmp(names[i].was, name) == 0)
            return names[i].is;
    return name;
}
