#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "core/ledger.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/run/mps_jobs_internal.h"

#define LOOK_WALL_NS (3 * NS_PER_SEC) /* for a look at a domain, when a job has failed */

static void feed_fault(struct domain *domain, struct record_share_fault fault)
{
    struct record input = {.type = RECORD_SHARE_FAULT, .at_ns = nodetime_now_ns(), .share_fault = fault};
    struct error err;

    if (engine_input(domain->mps_jobs->daemon->engine, &input, &err) != 0)
        daemon_log("MPS %s: %s", domain->name, err.text);
}

/* A user may have two, where one is of GPUs as they were before. */
static bool has_faulted(const struct mps_jobs *mps_jobs, uint32_t uid)
{
    for (const struct domain *domain = mps_jobs->domains; domain; domain = domain->next)
        if (domain->wide && domain->uid == uid && domain->faulted)
            return true;
    return false;
}

static void tell_core(struct domain *domain, bool faulted)
{
    struct daemon *daemon = domain->mps_jobs->daemon;

    domain->faulted = faulted;
    if (domain->wide && domain->uid != EVERYBODY) {
        feed_fault(domain, (struct record_share_fault){.of_user = true,
                                                       .uid = domain->uid,
                                                       .faulted = has_faulted(domain->mps_jobs, domain->uid)});
        return;
    }
    for (uint32_t i = 0; i < core_gpu_count(daemon->core); i++) {
        if (mps_jobs_domain_has(domain, core_gpu(daemon->core, i)->uuid))
            feed_fault(domain, (struct record_share_fault){.gpu = i, .faulted = faulted});
    }
}

/* The server serves again: its clients that are still there were spared. */
static void note_service(struct domain *domain)
{
    for (struct mps_client *mps_client = domain->mps_jobs->mps_clients; mps_client; mps_client = mps_client->next)
        if (mps_client->domain == domain && mps_client->faulted_ns)
            mps_domain_clients(domain->mps, &mps_client->served_lists);
}

void mps_jobs_tell_wait(struct daemon *daemon, uint64_t job, const char *why)
{
    static const char waits[] = "waits for its MPS server";
    struct job_view *view = views_find(&daemon->views, job);
    CLEANUP(free_ptr) char *message = why ? xasprintf("%s: %s", waits, why) : NULL;

    if (!view || (view->message ? strncmp(view->message, waits, strlen(waits)) != 0 : !why))
        return; /* how its last run ended stays */
    job_view_set_message(view, message);
    views_touch(&daemon->views, view);
}

/* A start that failed is tried again while jobs wait (mps_domain_options.patience_ms). */
static void tell_late(struct domain *domain, const char *why)
{
    bool waits = false;

    for (struct mps_client *mps_client = domain->mps_jobs->mps_clients; mps_client; mps_client = mps_client->next) {
        if (mps_client->domain != domain || !mps_client->ready)
            continue;
        mps_jobs_tell_wait(domain->mps_jobs->daemon, mps_client->job, why);
        waits = true;
    }
    if (waits && !domain->late)
        daemon_log("MPS %s: %s; jobs wait, and it is tried again", domain->name, why);
    domain->late = waits;
}

void mps_jobs_on_phase(void *user, struct mps_domain *mps, enum mps_phase phase, const char *why)
{
    struct domain *domain = user;
    struct daemon *daemon = domain->mps_jobs->daemon;

    if (phase == MPS_DOWN)
        tell_late(domain, why);
    else if (phase == MPS_SERVING)
        domain->late = false;
    if (phase == MPS_FAULTED && !domain->faulted) {
        daemon_log("MPS %s: %s; %s until it serves again", domain->name, why,
                   domain->wide ? "the jobs beside that client fail, and no job of theirs is started by MPS"
                                : "its jobs fail, and no job is placed there");
        for (struct mps_client *mps_client = domain->mps_jobs->mps_clients; mps_client; mps_client = mps_client->next)
            if (mps_client->domain == domain && !mps_client->ready)
                mps_client->faulted_ns = nodetime_now_ns();
        tell_core(domain, true);
        engine_turn(daemon->engine);
    } else if (domain->faulted && (phase == MPS_SERVING || phase == MPS_DOWN)) {
        domain->first_faulted_client = 0;
        domain->hit_count = 0;
        note_service(domain);
        daemon_log("MPS %s: it %s", domain->name, phase == MPS_SERVING ? "serves again" : "was stopped");
        tell_core(domain, false);
        engine_turn(daemon->engine);
    }
}

/* Which clients of a server that stays in FAULT are ended: those on GPUs where jobs have told of it. A job elsewhere
 * goes on, although other jobs wait for the server meanwhile. */
bool mps_jobs_is_hit(void *user, uint64_t job, pid_t client)
{
    const struct domain *domain = user;
    const struct mps_client *mps_client =
        mps_client_of(domain->mps_jobs, domain->mps_jobs->job_of(domain->mps_jobs->daemon, client));

    (void)job; /* no job asked for it */
    if (!mps_client)
        return true;
    for (uint32_t i = 0; i < mps_client->gpu_count; i++)
        for (uint32_t k = 0; k < domain->hit_count; k++)
            if (mps_client->gpus[i] == domain->hit[k])
                return true;
    return false;
}

void mps_jobs_reconcile(struct mps_jobs *mps_jobs)
{
    const struct core *core = mps_jobs->daemon->core;
    struct record input = {.type = RECORD_SHARE_FAULT, .at_ns = nodetime_now_ns()};

    for (uint32_t i = 0; i < core_gpu_count(core); i++) {
        input.share_fault = (struct record_share_fault){.gpu = i};
        if (core_gpu(core, i)->share_faulted)
            engine_input(mps_jobs->daemon->engine, &input, NULL);
    }
    input.share_fault = (struct record_share_fault){.of_user = true};
    while (core_share_faulted_user(core, &input.share_fault.uid) &&
           engine_input(mps_jobs->daemon->engine, &input, NULL) == 0)
        ;
    if (!mps_jobs->daemon->config.mps_pipe_directory)
        mps_jobs_find_left_domains(mps_jobs);
}

bool mps_jobs_has_looked(struct mps_jobs *mps_jobs, uint64_t job)
{
    struct mps_client *mps_client = mps_client_of(mps_jobs, job);
    int64_t now_ns = nodetime_monotonic_wall_ns();

    if (!mps_client || !mps_client->domain || mps_client->faulted_ns)
        return true;
    if (!mps_client->look_wall_ns) {
        mps_client->look_wall_ns = now_ns;
        mps_client->looks = mps_domain_looks(mps_client->domain->mps);
        mps_domain_look(mps_client->domain->mps);
        return false;
    }
    if (mps_domain_looks(mps_client->domain->mps) >= mps_client->looks + 2 ||
        now_ns - mps_client->look_wall_ns > LOOK_WALL_NS)
        return true;
    mps_domain_look(mps_client->domain->mps); /* the first answer may be to a question from before the job failed */
    return false;
}

bool mps_jobs_faulted_since(const struct mps_jobs *mps_jobs, uint64_t job, int64_t since_ns)
{
    const struct mps_client *mps_client = mps_client_of(mps_jobs, job);

    return mps_client && mps_client->faulted_ns && mps_client->faulted_ns >= since_ns;
}

/* Clients on the same GPUs have failed with it, or caused its failure. */
static void note_hit(struct domain *domain, const struct mps_client *mps_client)
{
    array_reserve(domain->hit, domain->hit_capacity, domain->hit_count + mps_client->gpu_count);
    for (uint32_t i = 0; i < mps_client->gpu_count; i++)
        domain->hit[domain->hit_count++] = mps_client->gpus[i];
}

bool mps_jobs_first_to_fault(struct mps_jobs *mps_jobs, uint64_t job)
{
    struct mps_client *mps_client = mps_client_of(mps_jobs, job);

    if (!mps_client || !mps_client->domain)
        return false;
    if (!mps_client->domain->first_faulted_client)
        mps_client->domain->first_faulted_client = job;
    if (mps_client->domain->faulted)
        note_hit(mps_client->domain, mps_client);
    return mps_client->domain->first_faulted_client == job;
}

void mps_jobs_check_spared(struct mps_jobs *mps_jobs, struct mps_client *mps_client)
{
    uint64_t lists;
    bool spared = mps_client_is_listed(mps_jobs, mps_client, &lists);

    if (spared && lists > mps_client->served_lists)
        mps_client->faulted_ns = 0;
    else
        mps_domain_list_clients(mps_client->domain->mps, true);
}
