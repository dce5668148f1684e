#include "daemon/run/run_request.h"

#include <inttypes.h>
#include <unistd.h>

#include "api/spec.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/trust/account.h"
#include "base/units.h"
#include "core/ledger.h"
#include "daemon/log.h"
#include "daemon/node/node.h"
#include "daemon/run/mps_jobs.h"
#include "daemon/run/visible.h"
#include "launch/cgroup/device_filter.h"
#include "launch/lease.h"

static char *gpu_uuids(const struct daemon *daemon, const struct job_view *view)
{
    struct strbuf text = {0};

    for (uint32_t i = 0; i < view->placement_count; i++) {
        const struct gpu *gpu = core_gpu(daemon->core, view->placements[i].gpu);
        strbuf_printf(&text, "%s%s", i ? "," : "", gpu->uuid);
    }
    return strbuf_steal(&text);
}

static struct cgroup_limits host_limits(const struct config *config, const struct job_spec *spec)
{
    int64_t most = config->job_memory_max_bytes, asked = spec->host_memory_bytes;

    return (struct cgroup_limits){.memory_bytes = asked > 0 && (most == 0 || asked < most) ? asked : most,
                                  .pids = config->job_pids_max,
                                  .cpus = spec->cpus > 0 ? spec->cpus : 0,
                                  .cpu_weight = config->job_cpu_weight};
}

/* The strictest limit of the configuration, the job and its fence. */
static void limit_mps(struct launch_request *request, const struct config *config, const struct job_spec *spec,
                      const struct job_view *view)
{
    int64_t threads = view->run->threads_percent ? view->run->threads_percent : 100,
            bytes = config->mps_memory_limit_bytes;

    if (spec->mps_threads_percent > 0 && spec->mps_threads_percent < threads)
        threads = spec->mps_threads_percent;
    if (spec->mps_memory_limit_bytes > 0 && (bytes == 0 || spec->mps_memory_limit_bytes < bytes))
        bytes = spec->mps_memory_limit_bytes;
    if (view->run->fence_bytes >= 0 && (bytes == 0 || view->run->fence_bytes < bytes))
        bytes = view->run->fence_bytes;
    request->mps_threads_percent = threads < 100 ? (uint32_t)threads : 0;
    request->mps_memory_limit_bytes = bytes ? bytes : -1;
}

/* NULL: the driver does not say which are its own. Owned by the caller. */
static char *devices_of(const struct daemon *daemon, const struct job_view *view)
{
    struct device_filter filter;

    if (node_devices_of(daemon->node, view, &filter))
        return device_filter_print(&filter);
    daemon_log("job %" PRIu64 " can open the device nodes of all GPUs: the driver does not say which are its own",
               view->id);
    return NULL;
}

/* The job's reservation on each of its GPUs: the whole GPU where its need is unknown, and where it has the GPU to
 * itself. */
static void tell_memory(struct launch_request *request, const struct daemon *daemon, const struct job_view *view)
{
    int64_t alone_bytes = INT64_MAX;

    for (uint32_t i = 0; i < view->placement_count; i++) {
        const struct gpu *gpu = core_gpu(daemon->core, view->placements[i].gpu);
        if (gpu_idle_bytes(gpu) < alone_bytes)
            alone_bytes = gpu_idle_bytes(gpu);
        if (gpu->total_bytes > request->gpu_total_bytes)
            request->gpu_total_bytes = gpu->total_bytes;
    }
    request->gpu_memory_bytes = view->reserved_bytes;
    if (view->placement_count == 0)
        request->gpu_memory_bytes = 0;
    else if (view->reserved_bytes < 0 || view->wants->exclusive || view->reserved_bytes > alone_bytes)
        request->gpu_memory_bytes = alone_bytes;
}

static void tell_user(struct launch_request *request, const struct job_view *view)
{
    request->uid = view->wants->uid;
    request->gid = view->gid >= 0 ? (gid_t)view->gid : ACCOUNT_NOBODYS_GROUP;
    request->user = view->gid >= 0 ? job_view_user(view) : NULL;
    if (request->uid == geteuid())
        request->gid = getegid();
}

/* The texts stay the spec's. */
static void tell_command(struct launch_request *request, const struct job_spec *spec)
{
    request->name = spec->name;
    request->directory = spec->directory;
    request->output = spec->output;
    request->error = spec->error;
    request->conda_environment = spec->conda_environment;
    request->container = spec->container;
    request->surroundings = spec->surroundings;
    request->on_end = spec->on_end;
    request->script = spec->script;
    request->arguments = spec->command.items;
    request->argument_count = spec->command.count;
    request->environment = spec->environment.items;
    request->environment_count = spec->environment.count;
    request->attach = spec->attach;
    request->requeue = spec->requeue;
    request->no_progress = spec->no_progress;
}

/* Whoever starts its processes also limits them. The script is known for learning alone. */
static void ask_for_lease(struct launch_request *request)
{
    request->lease = true;
    request->limits = (struct cgroup_limits){0};
    request->start_timeout_ns = LEASE_EXPIRES_MS * NS_PER_MS;
    request->time_limit_ns = request->signal_before_ns = 0;
    request->signal = 0;
    request->script_directory = NULL;
    request->script = NULL;
}

int run_request_begin(const struct daemon *daemon, const struct job_view *view, bool filters_devices,
                      struct launch_request *request, struct launch_begun *begun, enum uuids_why *why,
                      struct error *err)
{
    CLEANUP(free_ptr) char *uuids = gpu_uuids(daemon, view);
    CLEANUP(free_ptr) char *devices = filters_devices ? devices_of(daemon, view) : NULL;
    const struct job_spec spec = job_view_spec(view);
    CLEANUP(free_ptr)
    char *indices = visible_indices(daemon, view, &spec, request->mps_pipe_directory != NULL,
                                    mps_jobs_gpus_of(daemon->mps_jobs, view->id), devices != NULL, why);

    tell_command(request, &spec);
    request->container_engine = config_container_engine(&daemon->config);
    request->job = view->id;
    request->array = job_view_array(view);
    request->launch = view->attempts;
    request->gpu_uuids = uuids;
    request->devices = devices;
    request->indices = indices;
    request->limits = host_limits(&daemon->config, &spec);
    request->grace_ns = daemon->config.grace_ns;
    request->start_timeout_ns = daemon->config.start_timeout_ns;
    request->time_limit_ns = spec.time_limit_ns > 0 ? spec.time_limit_ns : 0;
    request->signal = spec.signal_before_ns >= 0 ? (int)spec.signal : 0;
    request->signal_before_ns = spec.signal_before_ns >= 0 ? spec.signal_before_ns : 0;
    if (view->wants->external)
        ask_for_lease(request);
    tell_user(request, view);
    tell_memory(request, daemon, view);
    limit_mps(request, &daemon->config, &spec, view);
    return launch_begin(request, begun, err);
}
