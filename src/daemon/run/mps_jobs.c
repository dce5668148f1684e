#include "daemon/run/mps_jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/handle.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/run/mps_jobs_internal.h"

#define CHECK_MS 1000
/* From the first observation of a job's memory until it is an MPS client, or never. */
#define ATTACH_WALL_NS (10 * NS_PER_SEC)
/* Less than the shepherd leaves us at a time limit (launch/shepherd/deadlines.c). */
#define TERMINATE_MS 10000

struct mps_client *mps_client_of(const struct mps_jobs *mps_jobs, uint64_t job)
{
    struct mps_client *mps_client = mps_jobs->mps_clients;

    while (mps_client && mps_client->job != job)
        mps_client = mps_client->next;
    return mps_client;
}

static struct mps_client *add_mps_client(struct mps_jobs *mps_jobs, const struct job_view *view, struct domain *domain)
{
    struct mps_client *mps_client = xcalloc(1, sizeof *mps_client);

    *mps_client = (struct mps_client){.job = view->id, .domain = domain, .next = mps_jobs->mps_clients};
    for (uint32_t i = 0; i < view->placement_count; i++)
        mps_client->gpus[mps_client->gpu_count++] = view->placements[i].gpu;
    mps_jobs->mps_clients = mps_client;
    return mps_client;
}

static void remove_mps_client(struct mps_jobs *mps_jobs, struct mps_client *mps_client)
{
    struct mps_client **at = &mps_jobs->mps_clients;

    while (*at != mps_client)
        at = &(*at)->next;
    *at = mps_client->next;
    free(mps_client);
}

bool mps_jobs_is_for(const struct daemon *daemon, const struct job_view *view)
{
    if (view->run->share == SHARE_ANY) /* placed by a carma that did not say */
        return daemon->config.share.mode == SHARE_MPS && !view->wants->exclusive;
    return view->run->share == SHARE_MPS;
}

static void on_ready(void *user, uint64_t job, int status, const struct error *err)
{
    struct mps_jobs *mps_jobs = user;
    struct mps_client *mps_client = mps_client_of(mps_jobs, job);
    struct daemon *daemon = mps_jobs->daemon;
    mps_jobs_ready *ready = mps_client->ready;

    mps_client->ready = NULL;
    if (status < 0) {
        struct error told = *err;
        error_prefix(&told, "MPS");
        daemon_log("job %" PRIu64 " cannot start: %s", job, told.text);
        remove_mps_client(mps_jobs, mps_client);
        ready(daemon, job, NULL, NULL, &told);
    } else {
        const struct mps_domain *mps = mps_client->domain->mps;
        mps_jobs_tell_wait(daemon, job, NULL);
        ready(daemon, job, mps_domain_pipe_directory(mps), mps_domain_log_directory(mps), NULL);
    }
    engine_turn(daemon->engine);
}

/* The administrator's own daemon: that it is there is all that can be asked of it. */
static void join_unmanaged(struct mps_jobs *mps_jobs, const struct job_view *view, mps_jobs_ready *ready)
{
    struct daemon *daemon = mps_jobs->daemon;
    const char *pipe_directory = daemon->config.mps_pipe_directory;
    struct error err;

    if (mps_process_find(pipe_directory, &mps_jobs->unmanaged)) {
        add_mps_client(mps_jobs, view, NULL);
        ready(daemon, view->id, pipe_directory, NULL, NULL);
        return;
    }
    error_set(&err, ENOENT,
              "MPS: no control daemon has its pipe in '%s' (the setting mps_pipe_directory): start it, or "
              "unset that for carma to start its own",
              pipe_directory);
    daemon_log("job %" PRIu64 " cannot start: %s", view->id, err.text);
    ready(daemon, view->id, NULL, NULL, &err);
}

void mps_jobs_join(struct mps_jobs *mps_jobs, const struct job_view *view, mps_jobs_ready *ready)
{
    struct domain *domain;
    struct error err;

    if (mps_jobs->daemon->config.mps_pipe_directory) {
        join_unmanaged(mps_jobs, view, ready);
        return;
    }
    if (mps_jobs_find_domain(mps_jobs, view, &domain, &err) < 0) {
        error_prefix(&err, "MPS");
        daemon_log("job %" PRIu64 " cannot start: %s", view->id, err.text);
        ready(mps_jobs->daemon, view->id, NULL, NULL, &err);
        return;
    }
    add_mps_client(mps_jobs, view, domain)->ready = ready;
    mps_domain_join(domain->mps, view->id, view->wants->uid, on_ready, mps_jobs);
}

const char *mps_jobs_gpus_of(const struct mps_jobs *mps_jobs, uint64_t job)
{
    const struct mps_client *mps_client = mps_client_of(mps_jobs, job);

    return mps_client && mps_client->domain ? mps_domain_gpus(mps_client->domain->mps) : NULL;
}

/* Which of those that may hold it does is not stored: all of them go on with it. */
void mps_jobs_adopt(struct mps_jobs *mps_jobs, const struct job_view *view)
{
    struct domain *holds = NULL;
    struct error err;

    if (mps_jobs->daemon->config.mps_pipe_directory)
        return;
    for (struct domain *domain = mps_jobs->domains; domain; domain = domain->next) {
        if (!mps_jobs_may_hold(mps_jobs, domain, view))
            continue;
        mps_domain_join(domain->mps, view->id, view->wants->uid, NULL, NULL);
        if (!holds || domain->wide == mps_jobs_has_wide(mps_jobs, view))
            holds = domain;
    }
    if (!holds) {
        if (mps_jobs_find_domain(mps_jobs, view, &holds, &err) < 0) {
            daemon_log("job %" PRIu64 ": MPS: %s", view->id, err.text);
            return;
        }
        mps_domain_join(holds->mps, view->id, view->wants->uid, NULL, NULL);
    }
    add_mps_client(mps_jobs, view, holds);
}

void mps_jobs_leave(struct mps_jobs *mps_jobs, uint64_t job)
{
    struct mps_client *mps_client = mps_client_of(mps_jobs, job);

    if (!mps_client)
        return;
    for (struct domain *domain = mps_jobs->domains; domain; domain = domain->next)
        mps_domain_leave(domain->mps, job);
    remove_mps_client(mps_jobs, mps_client);
}

bool mps_jobs_is_waiting(const struct mps_jobs *mps_jobs, uint64_t job)
{
    const struct mps_client *mps_client = mps_client_of(mps_jobs, job);

    return mps_client && mps_client->ready;
}

static void stopped(struct mps_jobs *mps_jobs, struct mps_client *mps_client)
{
    void (*done)(struct daemon *, uint64_t) = mps_client->stopped;

    mps_client->stopped = NULL;
    if (done)
        done(mps_jobs->daemon, mps_client->job);
}

static bool is_of_job(void *user, uint64_t job, pid_t client)
{
    const struct mps_jobs *mps_jobs = user;

    return mps_jobs->job_of(mps_jobs->daemon, client) == job;
}

static void on_terminated(void *user, uint64_t job)
{
    struct mps_client *mps_client = mps_client_of(user, job);

    if (mps_client)
        stopped(user, mps_client);
}

void mps_jobs_terminate(struct mps_jobs *mps_jobs, uint64_t job, void (*done)(struct daemon *daemon, uint64_t job))
{
    struct mps_client *mps_client = mps_client_of(mps_jobs, job);

    if (!mps_client || !mps_client->domain || mps_client->ready ||
        mps_domain_phase(mps_client->domain->mps) != MPS_SERVING) {
        done(mps_jobs->daemon, job);
        return;
    }
    if (mps_client->stopped)
        return; /* it is under way */
    mps_client->stopped = done;
    mps_client->stop_wall_ns = nodetime_monotonic_wall_ns();
    mps_domain_terminate(mps_client->domain->mps, job, is_of_job, on_terminated, mps_jobs);
}

static bool memory_was_observed(const struct job_view *view)
{
    for (uint32_t i = 0; view && i < view->placement_count; i++)
        if (view->placements[i].observed_bytes > 0)
            return true;
    return false;
}

bool mps_client_is_listed(const struct mps_jobs *mps_jobs, const struct mps_client *mps_client, uint64_t *lists)
{
    const struct mps_pids *clients = mps_domain_clients(mps_client->domain->mps, lists);

    for (uint32_t i = 0; i < clients->count; i++)
        if (mps_jobs->job_of(mps_jobs->daemon, clients->items[i]) == mps_client->job)
            return true;
    return false;
}

static void check_attached(struct mps_jobs *mps_jobs, struct mps_client *mps_client, int64_t now_ns)
{
    struct job_view *view = views_find(&mps_jobs->daemon->views, mps_client->job);
    uint64_t lists;

    mps_client->attached = mps_client_is_listed(mps_jobs, mps_client, &lists);
    if (mps_client->attached || !memory_was_observed(view))
        return;
    if (!mps_client->memory_wall_ns) {
        mps_client->memory_wall_ns = now_ns;
        mps_client->lists = lists;
    }
    if (now_ns - mps_client->memory_wall_ns < ATTACH_WALL_NS || lists < mps_client->lists + 2)
        return;
    mps_client->attached = true; /* said once */
    job_view_set_message(view,
                         "MPS requested but not attached: its GPU processes are no clients of the MPS server, so they "
                         "share by time slices; does the job change CUDA_MPS_PIPE_DIRECTORY, or run in a container "
                         "without it?");
    views_touch(&mps_jobs->daemon->views, view);
    daemon_log("job %" PRIu64 ": %s", mps_client->job, view->message);
}

static void on_check(uv_timer_t *timer)
{
    struct mps_jobs *mps_jobs = timer->data;
    int64_t now_ns = nodetime_monotonic_wall_ns();

    for (struct domain *domain = mps_jobs->domains; domain; domain = domain->next) {
        mps_domain_list_clients(domain->mps, false);
        mps_jobs_read_words(domain);
    }
    for (struct mps_client *mps_client = mps_jobs->mps_clients, *next; mps_client; mps_client = next) {
        next = mps_client->next;
        if (!mps_client->domain || mps_client->ready)
            continue;
        if (!mps_client->attached)
            check_attached(mps_jobs, mps_client, now_ns);
        if (!mps_client->attached)
            mps_domain_list_clients(mps_client->domain->mps, true);
        if (mps_client->faulted_ns && mps_domain_phase(mps_client->domain->mps) == MPS_SERVING)
            mps_jobs_check_spared(mps_jobs, mps_client);
        if (mps_client->stopped && now_ns - mps_client->stop_wall_ns > TERMINATE_MS * NS_PER_MS)
            stopped(mps_jobs, mps_client);
    }
}

struct mps_jobs *mps_jobs_new(struct daemon *daemon, mps_job_of_process *job_of)
{
    struct mps_jobs *mps_jobs = xcalloc(1, sizeof *mps_jobs);
    const char *socket = daemon->config.socket;

    mps_jobs->daemon = daemon;
    mps_jobs->job_of = job_of;
    mps_jobs->directory = xasprintf("%.*s/mps", (int)(strrchr(socket, '/') - socket), socket);
    mps_jobs->check = xmalloc(sizeof *mps_jobs->check);
    uv_timer_init(daemon->loop, mps_jobs->check);
    mps_jobs->check->data = mps_jobs;
    uv_timer_start(mps_jobs->check, on_check, CHECK_MS, CHECK_MS);
    return mps_jobs;
}

void mps_jobs_free(struct mps_jobs *mps_jobs)
{
    if (!mps_jobs)
        return;
    uv_close((uv_handle_t *)mps_jobs->check, free_handle);
    while (mps_jobs->mps_clients)
        remove_mps_client(mps_jobs, mps_jobs->mps_clients);
    while (mps_jobs->domains)
        mps_jobs_close_domain(mps_jobs, mps_jobs->domains);
    free(mps_jobs->directory);
    free(mps_jobs);
}
