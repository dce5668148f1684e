#include "daemon/run/sharing.h"

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
#include "daemon/run/runs.h"
#include "gpu/mps/domain.h"
#include "gpu/mps/multiuser.h"
#include "gpu/mps/process.h"

#define CHECK_MS         1000
#define ATTACH_WALL_NS   (10 * NS_PER_SEC) /* from a job's memory being seen to its being an MPS client, or never */
#define LOOK_WALL_NS     (3 * NS_PER_SEC)  /* for a look at a domain, when a job has failed */
#define TERMINATE_MS     3000
#define EVERYBODY        UINT32_MAX /* no uid */
#define USERS            "uid-" /* beginnings of directories' names */
#define EVERYBODYS       "all-"

/* A job in a domain. */
struct sharer {
    uint64_t job;
    uint32_t gpus[RECORD_MAX_GPUS];
    uint32_t gpu_count;
    struct domain *domain; /* NULL: the administrator's */
    sharing_ready *ready;  /* while it waits */
    bool attached;         /* seen among the clients, or said that it is not */
    int64_t memory_wall_ns; /* when its memory was first seen; 0: not yet */
    uint64_t lists;        /* lists of clients there were by then */
    int64_t faulted_ns;    /* node time; 0: never, or it was seen to be spared */
    uint64_t served_lists; /* lists of clients there were when its server served again after that */
    int64_t look_wall_ns;  /* when its end was first asked about; 0: not yet */
    uint64_t looks;        /* at its domain there were by then */
    void (*stopped)(struct daemon *daemon, uint64_t job); /* while its clients are terminated */
    int64_t stop_wall_ns;
    struct sharer *next;
};

struct domain {
    struct sharing *sharing;
    struct mps_domain *mps;
    bool wide;        /* on all GPUs, of the jobs of a user or of everybody */
    uint32_t uid;     /* its user, or EVERYBODY; of one that is wide */
    char *name;       /* owned, for people: "on GPU-...", "of user 1000" */
    bool faulted;     /* as the core was told */
    uint64_t culprit; /* the first job that told of this fault; 0: none has */
    uint32_t *hit;    /* GPUs of those that told of it; owned */
    uint32_t hit_count;
    size_t hit_capacity;
    struct domain *next;
};

struct sharing {
    struct daemon *daemon;
    char *directory; /* of all domains; owned */
    struct domain *domains;
    struct sharer *sharers;
    struct mps_process foreign; /* the administrator's control daemon, as last seen */
    uv_timer_t *check;
};

/* ---- Where a domain is ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *uuid_of(const struct sharing *sharing, const struct job_view *view, uint32_t i)
{
    return core_gpu(sharing->daemon->core, view->placements[i].gpu)->uuid;
}

/* A process can use one MIG instance, and so can a server. */
static bool has_wide(const struct sharing *sharing, const struct job_view *view)
{
    return sharing->daemon->config.core.mps_domain == MPS_DOMAIN_USER &&
           !core_gpu(sharing->daemon->core, view->placements[0].gpu)->instance;
}

static uint32_t owner_of(const struct sharing *sharing, const struct job_view *view)
{
    return sharing->daemon->config.core.mps_multiuser ? EVERYBODY : view->wants->uid;
}

static bool is_on(const struct job_view *view, uint32_t gpu)
{
    for (uint32_t i = 0; i < view->placement_count; i++)
        if (view->placements[i].gpu == gpu)
            return true;
    return false;
}

/* The GPUs of the domain that the job needs, sorted and joined: its own, or all on which others of its domain may be. One
 * that is lost is not among them: CUDA sees none behind it in the list. Owned by the caller. */
static char *gpus_of(const struct sharing *sharing, const struct job_view *view)
{
    const struct core *core = sharing->daemon->core;
    CLEANUP(free_ptr) const char **uuids = xcalloc(core_gpu_count(core), sizeof *uuids);
    bool wide = has_wide(sharing, view);
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
static char *directory_of(const struct sharing *sharing, const struct job_view *view, const char *gpus)
{
    uint64_t hash = digest_of_text(gpus);
    uint32_t owner = owner_of(sharing, view);

    if (has_wide(sharing, view))
        return owner == EVERYBODY
                   ? xasprintf("%s/" EVERYBODYS "%016" PRIx64, sharing->directory, hash)
                   : xasprintf("%s/" USERS "%" PRIu32 "-%016" PRIx64, sharing->directory, owner, hash);
    return strchr(gpus, ',') ? xasprintf("%s/set-%016" PRIx64, sharing->directory, hash)
                             : xasprintf("%s/%s", sharing->directory, gpus);
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

static struct sharer *sharer_of(const struct sharing *sharing, uint64_t job)
{
    struct sharer *sharer = sharing->sharers;

    while (sharer && sharer->job != job)
        sharer = sharer->next;
    return sharer;
}

static struct sharer *add_sharer(struct sharing *sharing, const struct job_view *view, struct domain *domain)
{
    struct sharer *sharer = xcalloc(1, sizeof *sharer);

    *sharer = (struct sharer){.job = view->id, .domain = domain, .next = sharing->sharers};
    for (uint32_t i = 0; i < view->placement_count; i++)
        sharer->gpus[sharer->gpu_count++] = view->placements[i].gpu;
    sharing->sharers = sharer;
    return sharer;
}

static void remove_sharer(struct sharing *sharing, struct sharer *sharer)
{
    struct sharer **at = &sharing->sharers;

    while (*at != sharer)
        at = &(*at)->next;
    *at = sharer->next;
    free(sharer);
}

/* ---- Faults ---- */

static void feed_fault(struct domain *domain, struct record_share_fault fault)
{
    struct record input = {.type = RECORD_SHARE_FAULT, .at_ns = nodetime_now_ns(), .share_fault = fault};
    struct error err;

    if (engine_input(domain->sharing->daemon->engine, &input, &err) != 0)
        daemon_log("MPS %s: %s", domain->name, err.text);
}

/* A user may have two, where one is of GPUs as they were before. */
static bool has_faulted(const struct sharing *sharing, uint32_t uid)
{
    for (const struct domain *domain = sharing->domains; domain; domain = domain->next)
        if (domain->wide && domain->uid == uid && domain->faulted)
            return true;
    return false;
}

static void tell_core(struct domain *domain, bool faulted)
{
    struct daemon *daemon = domain->sharing->daemon;

    domain->faulted = faulted;
    if (domain->wide && domain->uid != EVERYBODY) {
        feed_fault(domain, (struct record_share_fault){.of_user = true, .uid = domain->uid,
                                                       .faulted = has_faulted(domain->sharing, domain->uid)});
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
    for (struct sharer *sharer = domain->sharing->sharers; sharer; sharer = sharer->next)
        if (sharer->domain == domain && sharer->faulted_ns)
            mps_domain_clients(domain->mps, &sharer->served_lists);
}

static void on_phase(void *user, struct mps_domain *mps, enum mps_phase phase, const char *why)
{
    struct domain *domain = user;
    struct daemon *daemon = domain->sharing->daemon;

    if (phase == MPS_FAULTED && !domain->faulted) {
        daemon_log("MPS %s: %s; %s until it serves again", domain->name, why,
                   domain->wide ? "the jobs beside that client fail, and no job of theirs is started by MPS"
                                : "its jobs fail, and no job is placed there");
        for (struct sharer *sharer = domain->sharing->sharers; sharer; sharer = sharer->next)
            if (sharer->domain == domain && !sharer->ready)
                sharer->faulted_ns = nodetime_now_ns();
        tell_core(domain, true);
        engine_turn(daemon->engine);
    } else if (domain->faulted && (phase == MPS_SERVING || phase == MPS_DOWN)) {
        domain->culprit = 0;
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

int sharing_check(const struct config *config, struct error *err)
{
    int rc = config->core.mps_multiuser && !config->mps_pipe_directory
                 ? mps_multiuser_check(control_program(config), err) : 0;

    return rc == -ENOENT ? 0 : rc; /* a job that needs it is told so */
}

/* Which clients of a server that stays in FAULT are ended: those on GPUs where jobs have told of it. A job elsewhere
 * goes on, although other jobs wait for the server meanwhile. */
static bool is_hit(void *user, uint64_t job, pid_t client)
{
    const struct domain *domain = user;
    const struct sharer *sharer = sharer_of(domain->sharing, runs_owner_of(domain->sharing->daemon->runs, client));

    (void)job; /* no job asked for it */
    if (!sharer)
        return true;
    for (uint32_t i = 0; i < sharer->gpu_count; i++)
        for (uint32_t k = 0; k < domain->hit_count; k++)
            if (sharer->gpus[i] == domain->hit[k])
                return true;
    return false;
}

static int open_domain(struct sharing *sharing, const char *directory, const char *gpus, struct domain **result,
                       struct error *err)
{
    struct domain *domain = xcalloc(1, sizeof *domain);
    struct mps_domain_options options = {.loop = sharing->daemon->loop,
                                         .program = control_program(&sharing->daemon->config),
                                         .directory = directory,
                                         .gpus = gpus,
                                         .on_phase = on_phase,
                                         .user = domain};
    int rc;

    domain->sharing = sharing;
    read_owner(domain, directory);
    options.multiuser = domain->uid == EVERYBODY && (domain->wide || sharing->daemon->config.core.mps_multiuser);
    options.is_hit = domain->wide ? is_hit : NULL;
    rc = mps_domain_new(&options, &domain->mps, err);
    if (rc < 0) {
        free(domain);
        return rc;
    }
    domain->name = name_of(domain);
    domain->next = sharing->domains;
    sharing->domains = domain;
    *result = domain;
    return 0;
}

static void close_domain(struct sharing *sharing, struct domain *domain)
{
    struct domain **at = &sharing->domains;

    while (*at != domain)
        at = &(*at)->next;
    *at = domain->next;
    mps_domain_free(domain->mps);
    free(domain->hit);
    free(domain->name);
    free(domain);
}

/* How many GPUs of the job are in it. */
static uint32_t overlap(const struct sharing *sharing, const struct domain *domain, const struct job_view *view)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < view->placement_count; i++)
        count += names(mps_domain_gpus(domain->mps), uuid_of(sharing, view, i));
    return count;
}

/* Two servers on a GPU take turns: idle domains make room, used ones are joined or in the way. Those of another setting or
 * user, and of this user on GPUs as they were before, are left alone: they last as long as their jobs. */
static int find_domain(struct sharing *sharing, const struct job_view *view, struct domain **found, struct error *err)
{
    CLEANUP(free_ptr) char *gpus = gpus_of(sharing, view);
    CLEANUP(free_ptr) char *directory = directory_of(sharing, view, gpus);
    bool wide = has_wide(sharing, view);

    *found = NULL;
    for (struct domain *domain = sharing->domains, *next; domain; domain = next) {
        next = domain->next;
        if (domain->wide != wide || (wide && domain->uid != owner_of(sharing, view)))
            continue;
        if (strcmp(mps_domain_gpus(domain->mps), gpus) == 0) {
            *found = domain;
        } else if (overlap(sharing, domain, view) == 0) {
            continue;
        } else if (mps_domain_jobs(domain->mps) == 0) {
            if (!domain->faulted)
                close_domain(sharing, domain);
        } else if (wide) {
            continue;
        } else if (view->placement_count == 1) {
            *found = domain;
            return 0;
        } else {
            return error_set(err, EBUSY, "jobs use MPS on %s: a job on several GPUs needs one MPS server for all of them, "
                             "and has to wait until they have ended", mps_domain_gpus(domain->mps));
        }
    }
    return *found ? 0 : open_domain(sharing, directory, gpus, found, err);
}

/* Whether the job, found running, may be in it: the setting may have been another when it began. */
static bool may_hold(const struct sharing *sharing, const struct domain *domain, const struct job_view *view)
{
    return (domain->uid == EVERYBODY || domain->uid == view->wants->uid) &&
           overlap(sharing, domain, view) == view->placement_count;
}

/* Domains left by an earlier daemon: stopped, unless one of their jobs is found running before the loop turns. */
static void find_left_domains(struct sharing *sharing)
{
    DIR *directory = opendir(sharing->directory);
    struct dirent *entry;
    struct error err;

    while (directory && (entry = readdir(directory))) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", sharing->directory, entry->d_name);
        CLEANUP(free_ptr) char *gpus = xasprintf("%s/gpus", path);
        struct domain *domain;
        if (*entry->d_name == '.' || access(gpus, F_OK) < 0)
            continue;
        if (open_domain(sharing, path, NULL, &domain, &err) < 0)
            daemon_log("the MPS domain in %s cannot be taken up: %s", path, err.text);
    }
    if (directory)
        closedir(directory);
}

void sharing_reconcile(struct sharing *sharing)
{
    const struct core *core = sharing->daemon->core;
    struct record input = {.type = RECORD_SHARE_FAULT, .at_ns = nodetime_now_ns()};

    for (uint32_t i = 0; i < core_gpu_count(core); i++) {
        input.share_fault = (struct record_share_fault){.gpu = i};
        if (core_gpu(core, i)->share_faulted)
            engine_input(sharing->daemon->engine, &input, NULL);
    }
    input.share_fault = (struct record_share_fault){.of_user = true};
    while (core_share_faulted_user(core, &input.share_fault.uid) &&
           engine_input(sharing->daemon->engine, &input, NULL) == 0)
        ;
    if (!sharing->daemon->config.mps_pipe_directory)
        find_left_domains(sharing);
}

/* ---- Jobs come and go ---- */

bool sharing_is_for(const struct daemon *daemon, const struct job_view *view)
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
    struct sharing *sharing = user;
    struct sharer *sharer = sharer_of(sharing, job);
    struct daemon *daemon = sharing->daemon;
    sharing_ready *ready = sharer->ready;

    sharer->ready = NULL;
    if (status < 0) {
        struct error told = *err;
        error_prefix(&told, "MPS");
        daemon_log("job %" PRIu64 " cannot start: %s", job, told.text);
        remove_sharer(sharing, sharer);
        ready(daemon, job, NULL, NULL, &told);
    } else {
        const char *pipe_directory = mps_domain_pipe_directory(sharer->domain->mps);
        CLEANUP(free_ptr) char *log_directory = log_directory_of(pipe_directory);
        ready(daemon, job, pipe_directory, log_directory, NULL);
    }
    engine_turn(daemon->engine);
}

/* The administrator's own daemon: that it is there is all that can be asked of it. */
static void join_foreign(struct sharing *sharing, const struct job_view *view, sharing_ready *ready)
{
    struct daemon *daemon = sharing->daemon;
    const char *pipe_directory = daemon->config.mps_pipe_directory;
    struct error err;

    if (mps_process_find(pipe_directory, &sharing->foreign)) {
        add_sharer(sharing, view, NULL);
        ready(daemon, view->id, pipe_directory, NULL, NULL);
        return;
    }
    error_set(&err, ENOENT, "MPS: no control daemon has its pipe in '%s' (the setting mps_pipe_directory): start it, or "
              "unset that for carma to start its own", pipe_directory);
    daemon_log("job %" PRIu64 " cannot start: %s", view->id, err.text);
    ready(daemon, view->id, NULL, NULL, &err);
}

void sharing_join(struct sharing *sharing, const struct job_view *view, sharing_ready *ready)
{
    struct domain *domain;
    struct error err;

    if (sharing->daemon->config.mps_pipe_directory) {
        join_foreign(sharing, view, ready);
        return;
    }
    if (find_domain(sharing, view, &domain, &err) < 0) {
        error_prefix(&err, "MPS");
        daemon_log("job %" PRIu64 " cannot start: %s", view->id, err.text);
        ready(sharing->daemon, view->id, NULL, NULL, &err);
        return;
    }
    add_sharer(sharing, view, domain)->ready = ready;
    mps_domain_join(domain->mps, view->id, view->wants->uid, on_ready, sharing);
}

/* Which of those that may hold it does is not stored: all of them go on with it. */
void sharing_adopt(struct sharing *sharing, const struct job_view *view)
{
    struct domain *holds = NULL;
    struct error err;

    if (sharing->daemon->config.mps_pipe_directory)
        return;
    for (struct domain *domain = sharing->domains; domain; domain = domain->next) {
        if (!may_hold(sharing, domain, view))
            continue;
        mps_domain_join(domain->mps, view->id, view->wants->uid, NULL, NULL);
        if (!holds || domain->wide == has_wide(sharing, view))
            holds = domain;
    }
    if (!holds) {
        if (find_domain(sharing, view, &holds, &err) < 0) {
            daemon_log("job %" PRIu64 ": MPS: %s", view->id, err.text);
            return;
        }
        mps_domain_join(holds->mps, view->id, view->wants->uid, NULL, NULL);
    }
    add_sharer(sharing, view, holds);
}

bool sharing_has_server(const struct sharing *sharing, pid_t pid)
{
    struct proc_stat stat;

    if (!sharing->domains || proc_read_stat(pid, &stat) < 0)
        return false;
    for (const struct domain *domain = sharing->domains; domain; domain = domain->next)
        if (stat.parent > 0 && stat.parent == mps_domain_daemon(domain->mps))
            return true;
    return false;
}

void sharing_leave(struct sharing *sharing, uint64_t job)
{
    struct sharer *sharer = sharer_of(sharing, job);

    if (!sharer)
        return;
    for (struct domain *domain = sharing->domains; domain; domain = domain->next)
        mps_domain_leave(domain->mps, job);
    remove_sharer(sharing, sharer);
}

bool sharing_is_waiting(const struct sharing *sharing, uint64_t job)
{
    const struct sharer *sharer = sharer_of(sharing, job);

    return sharer && sharer->ready;
}

/* ---- The end of a job ---- */

bool sharing_has_looked(struct sharing *sharing, uint64_t job)
{
    struct sharer *sharer = sharer_of(sharing, job);
    int64_t now_ns = nodetime_monotonic_wall_ns();

    if (!sharer || !sharer->domain || sharer->faulted_ns)
        return true;
    if (!sharer->look_wall_ns) {
        sharer->look_wall_ns = now_ns;
        sharer->looks = mps_domain_looks(sharer->domain->mps);
        mps_domain_look(sharer->domain->mps);
        return false;
    }
    if (mps_domain_looks(sharer->domain->mps) >= sharer->looks + 2 || now_ns - sharer->look_wall_ns > LOOK_WALL_NS)
        return true;
    mps_domain_look(sharer->domain->mps); /* the first answer may be to a question from before the job failed */
    return false;
}

bool sharing_faulted_since(const struct sharing *sharing, uint64_t job, int64_t since_ns)
{
    const struct sharer *sharer = sharer_of(sharing, job);

    return sharer && sharer->faulted_ns && sharer->faulted_ns >= since_ns;
}

/* Clients on the same GPUs have failed with it, or caused its failure. */
static void note_hit(struct domain *domain, const struct sharer *sharer)
{
    array_reserve(domain->hit, domain->hit_capacity, domain->hit_count + sharer->gpu_count);
    for (uint32_t i = 0; i < sharer->gpu_count; i++)
        domain->hit[domain->hit_count++] = sharer->gpus[i];
}

bool sharing_first_to_fault(struct sharing *sharing, uint64_t job)
{
    struct sharer *sharer = sharer_of(sharing, job);

    if (!sharer || !sharer->domain)
        return false;
    if (!sharer->domain->culprit)
        sharer->domain->culprit = job;
    if (sharer->domain->faulted)
        note_hit(sharer->domain, sharer);
    return sharer->domain->culprit == job;
}

static void stopped(struct sharing *sharing, struct sharer *sharer)
{
    void (*done)(struct daemon *, uint64_t) = sharer->stopped;

    sharer->stopped = NULL;
    if (done)
        done(sharing->daemon, sharer->job);
}

static bool is_of_job(void *user, uint64_t job, pid_t client)
{
    const struct sharing *sharing = user;

    return runs_owner_of(sharing->daemon->runs, client) == job;
}

static void on_terminated(void *user, uint64_t job)
{
    struct sharer *sharer = sharer_of(user, job);

    if (sharer)
        stopped(user, sharer);
}

void sharing_terminate(struct sharing *sharing, uint64_t job, void (*done)(struct daemon *daemon, uint64_t job))
{
    struct sharer *sharer = sharer_of(sharing, job);

    if (!sharer || !sharer->domain || sharer->ready || mps_domain_phase(sharer->domain->mps) != MPS_SERVING) {
        done(sharing->daemon, job);
        return;
    }
    if (sharer->stopped)
        return; /* it is under way */
    sharer->stopped = done;
    sharer->stop_wall_ns = nodetime_monotonic_wall_ns();
    mps_domain_terminate(sharer->domain->mps, job, is_of_job, on_terminated, sharing);
}

/* ---- Whether jobs are where they should be ---- */

static bool memory_was_seen(const struct job_view *view)
{
    for (uint32_t i = 0; view && i < view->placement_count; i++)
        if (view->placements[i].observed_bytes > 0)
            return true;
    return false;
}

static bool is_client(const struct sharing *sharing, const struct sharer *sharer, uint64_t *lists)
{
    const struct mps_pids *clients = mps_domain_clients(sharer->domain->mps, lists);

    for (uint32_t i = 0; i < clients->count; i++)
        if (runs_owner_of(sharing->daemon->runs, clients->items[i]) == sharer->job)
            return true;
    return false;
}

static void check_attached(struct sharing *sharing, struct sharer *sharer, int64_t now_ns)
{
    struct job_view *view = views_find(&sharing->daemon->views, sharer->job);
    uint64_t lists;

    sharer->attached = is_client(sharing, sharer, &lists);
    if (sharer->attached || !memory_was_seen(view))
        return;
    if (!sharer->memory_wall_ns) {
        sharer->memory_wall_ns = now_ns;
        sharer->lists = lists;
    }
    if (now_ns - sharer->memory_wall_ns < ATTACH_WALL_NS || lists < sharer->lists + 2)
        return;
    sharer->attached = true; /* said once */
    job_view_set_message(view, "MPS requested but not attached: its GPU processes are no clients of the MPS server, so they "
                               "share by time slices; does the job change CUDA_MPS_PIPE_DIRECTORY, or run in a container "
                               "without it?");
    views_touch(&sharing->daemon->views, view);
    daemon_log("job %" PRIu64 ": %s", sharer->job, view->message);
}

/* A client of a server that serves again was on other GPUs than the one that failed: its later failures are its own. */
static void check_spared(struct sharing *sharing, struct sharer *sharer)
{
    uint64_t lists;
    bool spared = is_client(sharing, sharer, &lists);

    if (spared && lists > sharer->served_lists)
        sharer->faulted_ns = 0;
    else
        mps_domain_list_clients(sharer->domain->mps, true);
}

static void on_check(uv_timer_t *timer)
{
    struct sharing *sharing = timer->data;
    int64_t now_ns = nodetime_monotonic_wall_ns();

    for (struct domain *domain = sharing->domains; domain; domain = domain->next)
        mps_domain_list_clients(domain->mps, false);
    for (struct sharer *sharer = sharing->sharers, *next; sharer; sharer = next) {
        next = sharer->next;
        if (!sharer->domain || sharer->ready)
            continue;
        if (!sharer->attached)
            check_attached(sharing, sharer, now_ns);
        if (!sharer->attached)
            mps_domain_list_clients(sharer->domain->mps, true);
        if (sharer->faulted_ns && mps_domain_phase(sharer->domain->mps) == MPS_SERVING)
            check_spared(sharing, sharer);
        if (sharer->stopped && now_ns - sharer->stop_wall_ns > TERMINATE_MS * NS_PER_MS)
            stopped(sharing, sharer);
    }
}

/* ---- Life ---- */

struct sharing *sharing_new(struct daemon *daemon)
{
    struct sharing *sharing = xcalloc(1, sizeof *sharing);
    const char *socket = daemon->config.socket;

    sharing->daemon = daemon;
    sharing->directory = xasprintf("%.*s/mps", (int)(strrchr(socket, '/') - socket), socket);
    sharing->check = xmalloc(sizeof *sharing->check);
    uv_timer_init(daemon->loop, sharing->check);
    sharing->check->data = sharing;
    uv_timer_start(sharing->check, on_check, CHECK_MS, CHECK_MS);
    return sharing;
}

void sharing_free(struct sharing *sharing)
{
    if (!sharing)
        return;
    uv_close((uv_handle_t *)sharing->check, free_handle);
    while (sharing->sharers)
        remove_sharer(sharing, sharing->sharers);
    while (sharing->domains)
        close_domain(sharing, sharing->domains);
    free(sharing->directory);
    free(sharing);
}
