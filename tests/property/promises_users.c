#include "promises.h"

/* From the world's knowledge of running jobs. */
struct usages {
    uint32_t running, gpus;
    int64_t memory_bytes;
};

/* Its user's request counts in whole, and a larger reservation, or one that has grown with its use. */
static int64_t counting(const struct world_job *job, int64_t reserved_bytes)
{
    int64_t request = job->wants.request_source == SOURCE_DECLARED ? job->wants.request_bytes : 0;

    return reserved_bytes < request ? request : reserved_bytes;
}

static struct usages usages_of(const struct world *world, uint32_t uid)
{
    struct usages has = {0};

    for (uint64_t id = 1; id < world->next_job; id++) {
        const struct world_job *job = &world->jobs[id];
        if (!job->running || job->wants.uid != uid)
            continue;
        has.running++;
        has.gpus += job->gpu_count;
        has.memory_bytes += counting(job, job->counted_bytes) * job->gpu_count;
        for (uint32_t g = 0; g < RECORD_MAX_GPUS; g++)
            has.memory_bytes += job->stray_bytes[g];
    }
    return has;
}

static bool is_beyond(const struct world *world, const struct usages *has)
{
    const struct core_limits *limits = &core_configuration(world->core)->per_user;

    return (limits->max_running && has->running > limits->max_running) ||
           (limits->max_gpus && has->gpus > limits->max_gpus) ||
           (limits->max_memory_bytes && has->memory_bytes > limits->max_memory_bytes);
}

/* Of the host's memory jobs that run have asked for no more than may be, and no more jobs run without a GPU. */
void check_host(const struct world *world)
{
    const struct core_config *config = core_configuration(world->core);
    int64_t most = config->most.host_memory_bytes, held = 0;
    uint32_t without = 0;

    for (uint64_t id = 1; id < world->next_job; id++) {
        held += world->jobs[id].running ? world->jobs[id].wants.host_memory_bytes : 0;
        without += world->jobs[id].running && world->jobs[id].gpu_count == 0;
    }
    if (without != world->core->without_gpu ||
        (config->max_without_gpu && !world->reconfigured && without > config->max_without_gpu))
        fail(world, "%" PRIu32 " jobs run without a GPU", without);
    if (held != core_resources_held(world->core)->host_memory_bytes || (most && !world->reconfigured && held > most))
        fail(world, "jobs have %" PRId64 " bytes of the host's memory", held);
}

/* At a placement: running jobs may grow beyond a limit, which nobody can prevent; no decision takes a user there. */
void check_limits(const struct world *world, const struct record_submitted *placed)
{
    uint32_t uid = placed->uid;
    struct usages has = usages_of(world, uid);

    if (placed->gpus == 0) /* these it does not ask for */
        has.gpus = has.memory_bytes = 0;
    if (is_beyond(world, &has))
        fail(world, "user %" PRIu32 " has %" PRIu32 " jobs on %" PRIu32 " GPUs with %" PRId64 " bytes", uid,
             has.running, has.gpus, has.memory_bytes);
}

/* Whether a limit of its user's, and nothing else, keeps the job waiting. */
void check_limited(const struct world *world, const struct job *job, uint32_t code)
{
    struct usages has = usages_of(world, job->wants->uid);
    int64_t reservation = core_reservation(world->core, job, NULL);

    has.running++;
    has.gpus += job->wants->gpus;
    has.memory_bytes += job->wants->gpus *
                        counting(&world->jobs[job->id], reservation < 0 ? world->core->largest_gpu_bytes : reservation);
    if (job->wants->gpus == 0) /* these it does not ask for */
        has.gpus = has.memory_bytes = 0;
    if (is_beyond(world, &has) != (code == REASON_USER_JOBS || code == REASON_USER_GPUS || code == REASON_USER_MEMORY))
        fail(world,
             "job %" PRIu64 " waits for '%s', its user has %" PRIu32 " jobs on %" PRIu32 " GPUs with %" PRId64 " bytes",
             job->id, reason_name(code), has.running - 1, has.gpus - job->wants->gpus, has.memory_bytes);
}

/* How many of the user's jobs were put before the queue in this one's hour. The first after an hour begins another. */
void count_retry(struct world *world, uint32_t uid, int64_t at_ns)
{
    struct world_user *user = &world->users[uid - 1000];
    uint32_t most = core_configuration(world->core)->per_user.max_retries;

    if (user->retries == 0 || at_ns - user->since_ns >= 3600 * NS_PER_SEC)
        *user = (struct world_user){.since_ns = at_ns};
    if (++user->retries > most && most)
        fail(world, "user %" PRIu32 " recovers for the %" PRIu32 "th time within an hour", uid, user->retries);
}

bool has_retries_left(const struct world *world, uint32_t uid, int64_t at_ns)
{
    const struct world_user *user = &world->users[uid - 1000];
    uint32_t most = core_configuration(world->core)->per_user.max_retries;

    return most == 0 || user->retries < most || at_ns - user->since_ns >= 3600 * NS_PER_SEC;
}
