#include "config/presets.h"

#include <stddef.h>
#include <string.h>

#define NOTHING_OF_CARMA                                                                                               \
    " order=fifo backfill=no max_slowdown=0 learn=no shrink_after=0s oom_retry=exclusive memory_fence=off "            \
    "prior_quantile=0 mps_threads=100"

/* The loop of the thesis's system (6.2) as its first public code runs it: a decision every 30 s, and 30 s more before
 * collocating. It has the monitor's readings, 2000 MB beyond an estimate, and 5 GB without one. */
#define THESIS                                                                                                         \
    "memory_view=monitor memory_floor=5G memory_margin=0 sm_activity_cap=80% statistic=mean window=90s "               \
    "decide_period=30s collocate_extra=30s paced=yes settle=0s max_jobs_per_gpu=48 "                                   \
    "estimator=declared" NOTHING_OF_CARMA

#define ORACLE THESIS " memory_margin=2000M"

#define ON_ONE_SERVER "mps:node" /* as MPS was run there */

#define CARMA                                                                                                          \
    "memory_view=reserve memory_margin=256M decide_period=0s collocate_extra=0s paced=no settle=30s "                  \
    "oom_retry=informed "                                                                                              \
    "max_jobs_per_gpu=16 order=fair backfill=yes starvation_timeout=6h max_slowdown=2.1 learn=yes shrink_after=5m "    \
    "memory_fence=auto mps_threads=auto prior_quantile=85% estimator=auto"

const struct preset presets[] = {
    {"carma", "carma",
     "carma's own: reservations, backfill, predicted slowdown, requests learned from earlier runs, informed OOM retry",
     CARMA, NULL},
    {"default", "carma", "the same as carma", CARMA, NULL},
    {"thesis", "magm", "the thesis's loop and preconditions; add a policy: thesis+lug", THESIS, ON_ONE_SERVER},
    {"code-2025", "magm",
     "the loop of the thesis's public code of 2025: 1 s, a GPU closed until a new job was observed for 30 s; add a "
     "policy",
     "memory_view=monitor memory_floor=5G memory_margin=2560M sm_activity_cap=79.9% sm_occupancy_cap=44.9% "
     "dram_activity_cap=39.9% caps_together=yes statistic=risk window=30s decide_period=1s collocate_extra=0s "
     "paced=no settle=30s max_jobs_per_gpu=48 estimator=declared" NOTHING_OF_CARMA,
     ON_ONE_SERVER},
    {"off", "first-fit", "oracle first fit (thesis 6.3.3); use with exact memory", ORACLE, ON_ONE_SERVER},
    {"obf", "best-fit", "oracle best fit (thesis 6.3.3); use with exact memory", ORACLE, ON_ONE_SERVER},
    {"owf", "magm", "oracle worst fit (thesis 6.3.3); use with exact memory", ORACLE, ON_ONE_SERVER},
    {"olug", "lug", "oracle least utilized GPU (thesis 6.3.3); use with exact memory", ORACLE, ON_ONE_SERVER},
    {"horus", "lug",
     "Horus-style, from its description in thesis 5.3.1: Horus's memory formula, least utilized GPU first",
     "memory_view=reserve memory_margin=0 estimator=horus sm_activity_cap=100% decide_period=1s collocate_extra=0s "
     "paced=no settle=30s max_jobs_per_gpu=48" NOTHING_OF_CARMA,
     NULL},
    {"lucid", "carma",
     "Lucid-style, from its public description: at most two jobs on a GPU, and only where little is lost by it",
     "memory_view=reserve memory_margin=1G decide_period=1s collocate_extra=0s paced=no settle=30s "
     "oom_retry=exclusive max_jobs_per_gpu=2 order=fifo backfill=yes starvation_timeout=4h max_slowdown=1.15 learn=yes "
     "shrink_after=0s memory_fence=off mps_threads=100 prior_quantile=0 estimator=declared",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct preset *preset_find(const char *name)
{
    for (const struct preset *preset = presets; preset->name; preset++)
        if (strcmp(preset->name, name) == 0)
            return preset;
    return NULL;
}

const char *presets_simulated_share(const char *policy)
{
    const char *share = NULL;

    for (const struct preset *preset = presets; preset->name; preset++)
        for (const char *at = policy; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL)
            if (strcspn(at, "+") == strlen(preset->name) && strncmp(at, preset->name, strlen(preset->name)) == 0 &&
                preset->simulated_share)
                share = preset->simulated_share;
    return share;
}
