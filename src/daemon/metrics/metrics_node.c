/* Figures of the node, of its queue and of carmad's own process. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/nodetime.h"
#include "base/proc.h"
#include "base/units.h"
#include "core/ledger.h"
#include "daemon/capture/captures.h"
#include "daemon/engine/engine.h"
#include "daemon/metrics/metrics_internal.h"

METRIC(metric_one, subject, true, 1)
METRIC(metric_node_time, subject, true, scene->now_ns)
METRIC(metric_time_scale, subject, true, (int64_t)(nodetime_scale() * 1e3 + 0.5))
METRIC(metric_store_trouble, subject, true, engine_trouble(scene->daemon->engine) != NULL)
METRIC(metric_host_memory, subject, true, core_resources_held(scene->daemon->core)->host_memory_bytes)
METRIC(metric_jobs, state, true, (int64_t)scene->counts[state->number])
METRIC(metric_oldest_wait, subject, true, scene->now_ns - scene->oldest_ns)
METRIC(metric_decisions, decision, true, (int64_t)engine_decisions(scene->daemon->engine, decision->number))

/* ---- Results of jobs ---- */

METRIC(metric_submitted, subject, true, scene->submitted)
METRIC(metric_ends, state, true, scene->sums.ended[state->number])
METRIC(metric_oom, cause, true, cause->number == EXIT_GPU_HANDLE ? scene->sums.handle_crashes : scene->sums.oom_crashes)
METRIC(metric_retries, subject, true, scene->sums.retries)
METRIC(metric_captures, outcome, true, (int64_t)captures_count(scene->daemon->captures, outcome->number))
METRIC(metric_user_gpu_time, subject, true, subject->user->sums.gpu_ns)
METRIC(metric_user_energy, subject, true, subject->user->sums.energy_mj - subject->user->unstored_mj)

bool metric_user_ends(const struct metrics_scene *scene, const struct metric_subject *subject, int64_t *value)
{
    *value = 0;
    for (uint32_t state = 0; state < JOB_STATE_COUNT; state++)
        *value += subject->user->sums.ended[state];
    return true;
}

METRIC(metric_user_oom, subject, true, subject->user->sums.oom_crashes + subject->user->sums.handle_crashes)
METRIC(metric_user_retries, subject, true, subject->user->sums.retries)

/* ---- The process ---- */

bool metric_resident_memory(const struct metrics_scene *scene, const struct metric_subject *subject, int64_t *value)
{
    FILE *file = fopen("/proc/self/statm", "re");
    bool known = file && fscanf(file, "%*d %" SCNd64, value) == 1;

    *value = known ? *value * sysconf(_SC_PAGESIZE) : 0;
    if (file)
        fclose(file);
    return known;
}

bool metric_open_files(const struct metrics_scene *scene, const struct metric_subject *subject, int64_t *value)
{
    DIR *entries = opendir("/proc/self/fd");
    const struct dirent *entry;

    *value = -1; /* that of `entries` */
    while (entries && (entry = readdir(entries)))
        *value += *entry->d_name != '.';
    if (entries)
        closedir(entries);
    return *value >= 0;
}

bool metric_most_files(const struct metrics_scene *scene, const struct metric_subject *subject, int64_t *value)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return false;
    *value = (int64_t)limit.rlim_cur;
    return true;
}

bool metric_processor_time(const struct metrics_scene *scene, const struct metric_subject *subject, int64_t *value)
{
    struct timespec used;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0)
        return false;
    *value = (int64_t)used.tv_sec * NS_PER_SEC + used.tv_nsec;
    return true;
}

/* Wall time, as Prometheus's own: the moment of the boot is the difference of the two clocks. */
bool metric_start_time(const struct metrics_scene *scene, const struct metric_subject *subject, int64_t *value)
{
    struct timespec wall, since_boot;
    struct proc_stat stat;

    if (proc_read_stat(getpid(), &stat) != 0)
        return false;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    *value = (wall.tv_sec - since_boot.tv_sec) * NS_PER_SEC + wall.tv_nsec - since_boot.tv_nsec +
             (int64_t)stat.start_ticks * (NS_PER_SEC / sysconf(_SC_CLK_TCK));
    return true;
}
