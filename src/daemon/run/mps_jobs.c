#include "daemon/run/mps_jobs.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/handle.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/ledger.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "gpu/mps/domain.h"
#include "gpu/mps/multiuser.h"
#include "gpu/mps/process.h"

#define CHECK_MS       1000
#define ATTACH_WALL_NS (10 * NS_PER_SEC) /* from a job's memory being seen to its being an MPS client, or never */
#define LOOK_WALL_NS   (3 * NS_PER_SEC)  /* for a look at a domain, when a job has failed */
#define TERMINATE_MS   3000
#define EVERYBODY      UINT32_MAX /* no uid */
#define USERS          "uid-"     /* beginnings of directories' names */
#define EVERYBODYS     "all-"

/* A job in a domain. */
struct mps_client {
    uint64_t job;
    uint32_t gpus[RECORD_MAX_GPUS];
    uint32_t gpu_count;
    struct domain *domain;  /* NULL: the administrator's */
    mps_jobs_ready *ready;  /* while it waits */
    bool attached;          /* seen among the clients, or said that it is not */
    int64_t memory_wall_ns; /* when its memory was first seen; 0: not yet */
    uint64_t lists;         /* lists of clients there were by then */
    int64_t faulted_ns;     /* node time; 0: never, or it was seen to be spared */
    uint64_t served_lists;  /* lists of clients there were when its server served again after that */
    int64_t look_wall_ns;   /* when its end was first asked about; 0: not yet */
    uint64_t looks;         /* at its domain there were by then */
    void (*stopped)(struct daemon *daemon, uint64_t job); /* while its clients are terminated */
    int64_t stop_wall_ns;
    struct mps_client *next;
};

struct domain {
    struct mps_jobs *mps_jobs;
    struct mps_domain *mps;
    bool wide;                     /* on all GPUs, of the jobs of a user or of everybody */
    uint32_t uid;                  /* its user, or EVERYBODY; of one that is wide */
    char *name;                    /* owned, for people: "on GPU-...", "of user 1000" */
    bool faulted;                  /* as the core was told */
    uint64_t first_faulted_client; /* the first job that told of this fault; 0: none has */
    uint32_t *hit;                 /* GPUs of those that told of it; owned */
    uint32_t hit_count;
    size_t hit_capacity;
    struct domain *next;
};

struct mps_jobs {
    struct daemon *daemon;
    mps_job_of_process *job_of;
    char *directory; /* of all domains; owned */
    struct domain *domains;
    struct mps_client *mps_clients;
    struct mps_process unmanaged; /* the administrator's control daemon, as last seen */
    uv_timer_t *check;
};

/* ---- Where a domain is ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *uuid_of(const struct mps_jobs *mps_jobs, const struct job_view *view, uint32_t i)
{
    return core_gpu(mps_jobs->daemon->core, view->placements[i].gpu)->uuid;
}

/* A process can use one MIG instance, and so can a server. */
static bool has_wide(const struct mps_jobs *mps_jobs, const struct job_view *view)
{
    return mps_jobs->daemon->config.core.mps_domain == MPS_DOMAIN_USER &&
           !core_gpu(mps_jobs->daemon->core, view->placements[0].gpu)->instance;
}

static uint32_t owner_of(const struct mps_jobs *mps_jobs, const struct job_view *view)
{
    return mps_jobs->daemon->config.core.mps_multiuser ? EVERYBODY : view->wants->uid;
}

static bool is_on(const struct job_view *view, uint32_t gpu)
{
    for (uint32_t i = 0; i < view->placement_count; i++)
        if (view->placements[i].gpu == gpu)
            return true;
    return false;
}

/* The GPUs of the domain that the job needs, sorted and joined: its own, or all on which others of its domain may be.
 * One that is lost is not among them: CUDA sees none behind it in the list. Owned by the caller. */
static char *gpus_of(const struct mps_jobs *mps_jobs, const struct job_view *view)
{
    const struct core *core = mps_jobs->daemon->core;
    CLEANUP(free_ptr) const char **uuids = xcalloc(core_gpu_count(core), sizeof *uuids);
    bool wide = has_wide(mps_jobs, view);
    struct strbuf text = {0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < core_gpu_count(core); i++) {
        const struct gpu *gpu = core_gpu(core, i);
        if (is_on(view, i) || (wide && gpu->share == SHARE_MPS && !gpu->instance && !gpu->lost))
            uuids[count++] = gpu->uuid;
    }
    qsort(uuids, count, sizeof *uuids, compare_texts);
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf(&text, "%s%s", i ? "," : "", uuids[i]);
    return strbuf_steal(&text);
}

/* The name of several GPUs is a hash of their UUIDs (FNV-1a, 64 bits): all of them would be longer than a socket's path
 * may be. */
static char *directory_of(const struct mps_jobs *mps_jobs, const struct job_view *view, const char *gpus)
{
    uint64_t hash = digest_of_text(gpus);
    uint32_t owner = owner_of(mps_jobs, view);

    if (has_wide(mps_jobs, view))
        return owner == EVERYBODY ? xasprintf("%s/" EVERYBODYS "%016" PRIx64, mps_jobs->directory, hash)
                                  : xasprintf("%s/" USERS "%" PRIu32 "-%016" PRIx64, mps_jobs->directory, owner, hash);
    return strchr(gpus, ',') ? xasprintf("%s/set-%016" PRIx64, mps_jobs->directory, hash)
                             : xasprintf("%s/%s", mps_jobs->directory, gpus);
}

/* The owner that a domain's directory names. */
static void read_owner(struct domain *domain, const char *directory)
{
    const char *entry = strrchr(directory, '/') + 1;
    bool of_user = strncmp(entry, USERS, strlen(USERS)) == 0;

    domain->wide = of_user || strncmp(entry, EVERYBODYS, strlen(EVERYBODYS)) == 0;
    domain->uid = of_user ? (uint32_t)strtoul(entry + strlen(USERS), NULL, 10) : EVERYBODY;
}

static char *name_of(const struct domain *domain)
{
    if (!domain->wide)
        return xasprintf("on %s", mps_domain_gpus(domain->mps));
    return domain->uid == EVERYBODY ? xstrdup("of all users") : xasprintf("of user %" PRIu32, domain->uid);
}

static bool names(const char *gpus, const char *uuid)
{
    size_t length = strlen(uuid);

    for (const char *at = gpus; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, uuid, length) == 0)
            return true;
    return false;
}

/* ---- Sharers ---- */

static struct mps_client *mps_client_of(const struct mps_jobs *mps_jobs, uint64_t job)
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

/* ---- Faults ---- */

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
        if (names(mps_domain_gpus(domain->mps), core_gpu(daemon->core, i)->uuid))
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

static void on_phase(void *user, struct mps_domain *mps, enum mps_phase phase, const char *why)
{
    struct domain *domain = user;
    struct daemon *daemon = domain->mps_jobs->daemon;

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

/* ---- Domains ---- */

static const char *control_program(const struct config *config)
{
    return config->mps_control ? config->mps_control : "nvidia-cuda-mps-control";
}

int mps_jobs_check(const struct config *config, struct error *err)
{
    int rc = config->core.mps_multiuser && !config->mps_pipe_directory
                 ? mps_multiuser_check(control_program(config), err)
                 : 0;

    return rc == -ENOENT ? 0 : rc; /* a job that needs it is told so */
}

/* Which clients of a server that stays in FAULT are ended: those on GPUs where jobs have told of it. A job elsewhere
 * goes on, although other jobs wait for the server meanwhile. */
static bool is_hit(void *user, uint64_t job, pid_t client)
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

static int open_domain(struct mps_jobs *mps_jobs, const char *directory, const char *gpus, struct domain **result,
                       struct error *err)
{
    struct domain *domain = xcalloc(1, sizeof *domain);
    struct mps_domain_options options = {.loop = mps_jobs->daemon->loop,
                                         .program = control_program(&mps_jobs->daemon->config),
                                         .directory = directory,
                                         .gpus = gpus,
                                         .on_phase = on_phase,
                                         .user = domain};
    int rc;

    domain->mps_jobs = mps_jobs;
    read_owner(domain, directory);
    options.multiuser = domain->uid == EVERYBODY && (domain->wide || mps_jobs->daemon->config.core.mps_multiuser);
    options.is_hit = domain->wide ? is_hit : NULL;
    rc = mps_domain_new(&options, &domain->mps, err);
    if (rc < 0) {
        free(domain);
        return rc;
    }
    domain->name = name_of(domain);
    domain->next = mps_jobs->domains;
    mps_jobs->domains = domain;
    *result = domain;
    return 0;
}

static void close_domain(struct mps_jobs *mps_jobs, struct domain *domain)
{
    struct domain **at = &mps_jobs->domains;

    while (*at != domain)
        at = &(*at)->next;
    *at = domain->next;
    mps_domain_free(domain->mps);
    free(domain->hit);
    free(domain->name);
    free(domain);
}

/* How many GPUs of the job are in it. */
static uint32_t overlap(const struct mps_jobs *mps_jobs, const struct domain *domain, const struct job_view *view)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < view->placement_count; i++)
        count += names(mps_domain_gpus(domain->mps), uuid_of(mps_jobs, view, i));
    return count;
}

/* Two servers on a GPU take turns: idle domains make room, used ones are joined or in the way. Those of another setting
 * or user, and of this user on GPUs as they were before, are left alone: they last as long as their jobs. */
static int find_domain(struct mps_jobs *mps_jobs, const struct job_view *view, struct domain **found, struct error *err)
{
    CLEANUP(free_ptr) char *gpus = gpus_of(mps_jobs, view);
    CLEANUP(free_ptr) char *directory = directory_of(mps_jobs, view, gpus);
    bool wide = has_wide(mps_jobs, view);

    *found = NULL;
    for (struct domain *domain = mps_jobs->domains, *next; domain; domain = next) {
        next = domain->next;
        if (domain->wide != wide || (wide && domain->uid != owner_of(mps_jobs, view)))
            continue;
        if (strcmp(mps_domain_gpus(domain->mps), gpus) == 0) {
            *found = domain;
        } else if (overlap(mps_jobs, domain, view) == 0) {
            continue;
        } else if (mps_domain_jobs(domain->mps) == 0) {
            if (!domain->faulted)
                close_domain(mps_jobs, domain);
        } else if (wide) {
            continue;
        } else if (view->placement_count == 1) {
            *found = domain;
            return 0;
        } else {
            return error_set(err, EBUSY,
                             "jobs use MPS on %s: a job on several GPUs needs one MPS server for all of them, "
                             "and has to wait until they have ended",
                             mps_domain_gpus(domain->mps));
        }
    }
    return *found ? 0 : open_domain(mps_jobs, directory, gpus, found, err);
}

/* Whether the job, found running, may be in it: the setting may have been another when it began. */
static bool may_hold(const struct mps_jobs *mps_jobs, const struct domain *domain, const struct job_view *view)
{
    return (domain->uid == EVERYBODY || domain->uid == view->wants->uid) &&
           overlap(mps_jobs, domain, view) == view->placement_count;
}

/* Domains left by an earlier daemon: stopped, unless one of their jobs is found running before the loop turns. */
static void find_left_domains(struct mps_jobs *mps_jobs)
{
    DIR *directory = opendir(mps_jobs->directory);
    struct dirent *entry;
    struct error err;

    while (directory && (entry = readdir(directory))) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", mps_jobs->directory, entry->d_name);
        CLEANUP(free_ptr) char *gpus = xasprintf("%s/gpus", path);
        struct domain *domain;
        if (*entry->d_name == '.' || access(gpus, F_OK) < 0)
            continue;
        if (open_domain(mps_jobs, path, NULL, &domain, &err) < 0)
            daemon_log("the MPS domain in %s cannot be taken up: %s", path, err.text);
    }
    if (directory)
        closedir(directory);
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
        find_left_domains(mps_jobs);
}

/* ---- Jobs come and go ---- */

bool mps_jobs_is_for(const struct daemon *daemon, const struct job_view *view)
{
    if (view->share == SHARE_ANY) /* placed by a carma that did not say */
        return daemon->config.share.mode == SHARE_MPS && !view->wants->exclusive;
    return view->share == SHARE_MPS;
}

static char *log_directory_of(const char *pipe_directory)
{
    const char *slash = strrchr(pipe_directory, '/');

    return xasprintf("%.*s/log", (int)(slash - pipe_directory), pipe_directory);
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
        const char *pipe_directory = mps_domain_pipe_directory(mps_client->domain->mps);
        CLEANUP(free_ptr) char *log_directory = log_directory_of(pipe_directory);
        ready(daemon, job, pipe_directory, log_directory, NULL);
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
    if (find_domain(mps_jobs, view, &domain, &err) < 0) {
        error_prefix(&err, "MPS");
        daemon_log("job %" PRIu64 " cannot start: %s", view->id, err.text);
        ready(mps_jobs->daemon, view->id, NULL, NULL, &err);
        return;
    }
    add_mps_client(mps_jobs, view, domain)->ready = ready;
    mps_domain_join(domain->mps, view->id, view->wants->uid, on_ready, mps_jobs);
}

/* Which of those that may hold it does is not stored: all of them go on with it. */
void mps_jobs_adopt(struct mps_jobs *mps_jobs, const struct job_view *view)
{
    struct domain *holds = NULL;
    struct error err;

    if (mps_jobs->daemon->config.mps_pipe_directory)
        return;
    for (struct domain *domain = mps_jobs->domains; domain; domain = domain->next) {
        if (!may_hold(mps_jobs, domain, view))
            continue;
        mps_domain_join(domain->mps, view->id, view->wants->uid, NULL, NULL);
        if (!holds || domain->wide == has_wide(mps_jobs, view))
            holds = domain;
    }
    if (!holds) {
        if (find_domain(mps_jobs, view, &holds, &err) < 0) {
            daemon_log("job %" PRIu64 ": MPS: %s", view->id, err.text);
            return;
        }
        mps_domain_join(holds->mps, view->id, view->wants->uid, NULL, NULL);
    }
    add_mps_client(mps_jobs, view, holds);
}

bool mps_jobs_has_server(const struct mps_jobs *mps_jobs, pid_t pid)
{
    struct proc_stat stat;

    if (!mps_jobs->domains || proc_read_stat(pid, &stat) < 0)
        return false;
    for (const struct domain *domain = mps_jobs->domains; domain; domain = domain->next)
        if (stat.parent > 0 && stat.parent == mps_domain_daemon(domain->mps))
            return true;
    return false;
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

/* ---- The end of a job ---- */

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

/* ---- Whether jobs are where they should be ---- */

static bool memory_was_observed(const struct job_view *view)
{
    for (uint32_t i = 0; view && i < view->placement_count; i++)
        if (view->placements[i].observed_bytes > 0)
            return true;
    return false;
}

static bool is_client(const struct mps_jobs *mps_jobs, const struct mps_client *mps_client, uint64_t *lists)
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

    mps_client->attached = is_client(mps_jobs, mps_client, &lists);
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

/* A client of a server that serves again was on other GPUs than the one that failed: its later failures are its own. */
static void check_spared(struct mps_jobs *mps_jobs, struct mps_client *mps_client)
{
    uint64_t lists;
    bool spared = is_client(mps_jobs, mps_client, &lists);

    if (spared && lists > mps_client->served_lists)
        mps_client->faulted_ns = 0;
    else
        mps_domain_list_clients(mps_client->domain->mps, true);
}

static void on_check(uv_timer_t *timer)
{
    struct mps_jobs *mps_jobs = timer->data;
    int64_t now_ns = nodetime_monotonic_wall_ns();

    for (struct domain *domain = mps_jobs->domains; domain; domain = domain->next)
        mps_domain_list_clients(domain->mps, false);
    for (struct mps_client *mps_client = mps_jobs->mps_clients, *next; mps_client; mps_client = next) {
        next = mps_client->next;
        if (!mps_client->domain || mps_client->ready)
            continue;
        if (!mps_client->attached)
            check_attached(mps_jobs, mps_client, now_ns);
        if (!mps_client->attached)
            mps_domain_list_clients(mps_client->domain->mps, true);
        if (mps_client->faulted_ns && mps_domain_phase(mps_client->domain->mps) == MPS_SERVING)
            check_spared(mps_jobs, mps_client);
        if (mps_client->stopped && now_ns - mps_client->stop_wall_ns > TERMINATE_MS * NS_PER_MS)
            stopped(mps_jobs, mps_client);
    }
}

/* ---- Life ---- */

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
        close_domain(mps_jobs, mps_jobs->domains);
    free(mps_jobs->directory);
    free(mps_jobs);
}
