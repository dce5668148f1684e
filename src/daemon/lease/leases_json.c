#include "api/spec.h"
#include "daemon/lease/leases_internal.h"

#include <stdlib.h>
#include <string.h>

#include "api/or_null.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "core/ledger.h"
#include "daemon/run/runs_lease.h"
#include "launch/cgroup/cgroup.h"
#include "launch/lease.h"

static json_t *gpus_to_json(const struct daemon *daemon, const struct job_view *view, bool uuids)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < view->placement_count; i++) {
        const struct gpu *gpu = core_gpu(daemon->core, view->placements[i].gpu);
        json_array_append_new(list, uuids ? json_string(gpu->uuid) : json_integer(gpu->number));
    }
    return list;
}

static json_t *environment_to_json(const char *text, size_t length)
{
    json_t *json = json_object();

    for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
        const char *entry = text + at, *equals = strchr(entry, '=');
        CLEANUP(free_ptr) char *name = equals ? xstrndup(entry, (size_t)(equals - entry)) : NULL;
        if (name)
            json_object_set_new(json, name, json_string(equals + 1));
    }
    return json;
}

/* The directory by which processes are put into the group. */
static json_t *group_to_json(const char *cgroup)
{
    CLEANUP(free_ptr) char *directory = *cgroup ? cgroup_locate(cgroup_place()->mounts, cgroup) : NULL;

    return text_or_null(directory);
}

json_t *lease_placed_to_json(const struct daemon *daemon, const struct job_view *view,
                             const struct launch_status *status, struct error *err)
{
    CLEANUP(free_ptr) char *environment = NULL;
    size_t length;

    if (runs_lease_environment(daemon->runs, view->id, &environment, &length, err) < 0)
        return NULL;
    return json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:I}", "id", (json_int_t)view->id, "state", "placed", "gpus",
                     gpus_to_json(daemon, view, true), "indexes", gpus_to_json(daemon, view, false), "environment",
                     environment_to_json(environment, length), "cgroup", group_to_json(status->cgroup), "request_bytes",
                     natural_or_null(view->reserved_bytes), "expires_ms", (json_int_t)LEASE_EXPIRES_MS);
}

static const char *cause_of(const struct job_view *view)
{
    return view->state == JOB_CANCELLED ? "stopped"
           : view->run->exited          ? exit_cause_name(view->run->exit.cause)
           : view->state == JOB_EXPIRED ? exit_cause_name(EXIT_EXPIRED)
                                        : exit_cause_name(EXIT_FAILED);
}

/* The next request fills the largest GPU: nobody else fits beside it. */
static bool next_is_exclusive(const struct daemon *daemon, const struct job_view *view)
{
    int64_t largest = 0;

    for (uint32_t i = 0; i < core_gpu_count(daemon->core); i++)
        if (core_gpu(daemon->core, i)->total_bytes > largest)
            largest = core_gpu(daemon->core, i)->total_bytes;
    return view->wants->exclusive ||
           (view->state == JOB_RETURNED && (view->reserved_bytes < 0 || view->reserved_bytes >= largest));
}

static uint32_t neighbours_of(const struct daemon *daemon, const struct job_view *view)
{
    uint32_t count = 0;

    for (const struct job_view *other = daemon->views.jobs; other; other = other->hh.next) {
        bool shared = false;
        if (other == view || other->run->started_ns < 0 || view->run->started_ns < 0 ||
            other->run->started_ns >= view->ended_ns ||
            (other->ended_ns >= 0 && other->ended_ns <= view->run->started_ns))
            continue;
        for (uint32_t i = 0; i < view->placement_count; i++)
            for (uint32_t k = 0; k < other->placement_count; k++)
                shared |= view->placements[i].gpu == other->placements[k].gpu;
        count += shared;
    }
    return count;
}

/* As the core has learned it of the workload; null: it has not. */
static json_t *activity_of(const struct daemon *daemon, const struct job_view *view)
{
    int32_t permille = core_observed_activity(daemon->core, view->wants->uid, job_view_workload(view));

    return integer_or_null(permille, permille > 0);
}

json_t *lease_end_to_json(const struct daemon *daemon, const struct job_view *view)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:b, s:I, s:I, s:I, s:o, s:I}", "cause", cause_of(view), "state",
                     job_state_name(view->state), "verdict", view->state == JOB_RETURNED ? "retry" : "done",
                     "request_bytes", natural_or_null(view->reserved_bytes), "exclusive",
                     next_is_exclusive(daemon, view), "peak_bytes", (json_int_t)view->run->peak_bytes, "energy_mj",
                     (json_int_t)view->run->energy_mj, "gpu_ns", (json_int_t)job_view_gpu_ns(view, nodetime_now_ns()),
                     "sm_permille", activity_of(daemon, view), "neighbours", (json_int_t)neighbours_of(daemon, view));
}

json_t *lease_to_json(const struct daemon *daemon, const struct job_view *view)
{
    const struct job_spec *spec = view->common->spec;
    struct launch_status status;
    const struct lease *lease = runs_lease_of(daemon->runs, view->id, &status);
    pid_t task = lease ? lease_living_task(lease) : 0;
    json_t *steps = json_array();

    for (size_t i = 0; lease && i < lease->count; i++)
        json_array_append_new(steps, json_string(lease->steps[i].name));
    return json_pack("{s:I, s:s, s:I, s:I, s:s, s:I, s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:b, s:b}", "id",
                     (json_int_t)view->id, "cluster", spec->cluster, "job", (json_int_t)spec->slurm_job, "restart",
                     (json_int_t)spec->slurm_restart, "node", spec->slurm_node, "uid", (json_int_t)view->wants->uid,
                     "name", text_or_null(common_text_first(view->name)), "state", job_state_name(view->state), "gpus",
                     gpus_to_json(daemon, view, true), "indexes", gpus_to_json(daemon, view, false), "request_bytes",
                     natural_or_null(view->reserved_bytes), "peak_bytes", (json_int_t)view->run->peak_bytes, "steps",
                     steps, "task", integer_or_null(task, task > 0), "teller", lease && lease_has_teller(lease),
                     "suspended", view->state == JOB_SUSPENDED);
}

json_t *lease_refusal_to_json(const char *text, const char *code, bool never)
{
    return json_pack("{s:s, s:s, s:s}", "error", text, "code", code, "when", never ? "never" : "later");
}

static int descending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a < b) - (a > b);
}

json_t *lease_capacity_to_json(const struct daemon *daemon)
{
    uint32_t count = core_gpu_count(daemon->core), there = 0, lost = 0;
    CLEANUP(free_ptr) int64_t *fits = xcalloc(count ? count : 1, sizeof *fits);
    json_t *memory = json_array(), *list = json_array();

    for (uint32_t i = 0; i < count; i++) {
        const struct gpu *gpu = core_gpu(daemon->core, i);
        json_array_append_new(memory, json_integer(gpu->total_bytes));
        lost += gpu->lost; /* a drained one stays in the scheduler's count */
        if (!gpu_is_open(gpu))
            continue;
        fits[there] = gpu_idle(gpu) ? gpu_idle_bytes(gpu) : gpu_free_bytes(daemon->core, gpu);
        if (fits[there] < 0 || gpu_exclusive_resident(gpu))
            fits[there] = 0;
        there++;
    }
    qsort(fits, there, sizeof *fits, descending);
    for (uint32_t i = 0; i < there; i++)
        json_array_append_new(list, json_integer(fits[i]));
    return json_pack("{s:I, s:I, s:o, s:o}", "gpus", (json_int_t)count, "lost", (json_int_t)lost, "memory_bytes",
                     memory, "fits_bytes", list);
}
