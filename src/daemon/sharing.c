#include "daemon/sharing.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/ledger.h"
#include "daemon/engine.h"
#include "daemon/runs.h"
#include "gpu/mps_domain.h"
#include "gpu/mps_multiuser.h"
#include "gpu/mps_process.h"

#define CHECK_MS         1000
#define ATTACH_WALL_NS   (10 * NS_PER_SEC) /* from a job's memory being seen to its being an MPS client, or never */
#define LOOK_WALL_NS     (3 * NS_PER_SEC)  /* for a look at a domain, when a job has failed */
#define TERMINATE_MS     3000

/* A job in a domain. */
struct sharer {
    uint64_t job;
    struct domain *domain; /* NULL: the administrator's */
    sharing_ready *ready;  /* while it waits */
    bool attached;         /* seen among the clients, or said that it is not */
    int64_t memory_wall_ns; /* when its memory was first seen; 0: not yet */
    uint64_t lists;        /* lists of clients there were by then */
    int64_t faulted_ns;    /* node time; 0: never */
    int64_t look_wall_ns;  /* when its end was first asked about; 0: not yet */
    uint64_t looks;        /* at its domain there were by then */
    void (*stopped)(struct daemon *daemon, uint64_t job); /* while its clients are terminated */
    int64_t stop_wall_ns;
    struct sharer *next;
};

struct domain {
    struct sharing *sharing;
    struct mps_domain *mps;
    bool faulted;     /* as the core was told */
    uint64_t culprit; /* the first job that told of this fault; 0: none has */
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

/* The job's GPUs, sorted and joined: the identity of a domain of its own. Owned by the caller. */
static char *gpus_of(const struct sharing *sharing, const struct job_view *view)
{
    const char *uuids[RECORD_MAX_GPUS];
    struct strbuf text = {0};

    for (uint32_t i = 0; i < view->placement_count; i++)
        uuids[i] = uuid_of(sharing, view, i);
    qsort(uuids, view->placement_count, sizeof *uuids, compare_texts);
    for (uint32_t i = 0; i < view->placement_count; i++)
        strbuf_printf(&text, "%s%s", i ? "," : "", uuids[i]);
    return strbuf_steal(&text);
}

/* A set's name has a hash of its UUIDs (FNV-1a, 64 bits): all of them would be longer than a socket's path may be. */
static char *directory_of(const struct sharing *sharing, const char *gpus)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    if (!strchr(gpus, ','))
        return xasprintf("%s/%s", sharing->directory, gpus);
    for (const char *c = gpus; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return xasprintf("%s/set-%016" PRIx64, sharing->directory, hash);
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

static struct sharer *add_sharer(struct sharing *sharing, uint64_t job, struct domain *domain)
{
    struct sharer *sharer = xcalloc(1, sizeof *sharer);

    *sharer = (struct sharer){.job = job, .domain = domain, .next = sharing->sharers};
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

static void tell_core(struct domain *domain, bool faulted)
{
    struct daemon *daemon = domain->sharing->daemon;
    struct record input = {.type = RECORD_SHARE_FAULT, .at_ns = nodetime_now_ns()};
    struct error err;

    domain->faulted = faulted;
    for (uint32_t i = 0; i < core_gpu_count(daemon->core); i++) {
        if (!names(mps_domain_gpus(domain->mps), core_gpu(daemon->core, i)->uuid))
            continue;
        input.share_fault = (struct record_share_fault){.gpu = i, .faulted = faulted};
        if (engine_input(daemon->engine, &input, &err) != 0)
            daemon_log("MPS on GPU %" PRIu32 ": %s", i, err.text);
    }
}

static void on_phase(void *user, struct mps_domain *mps, enum mps_phase phase, const char *why)
{
    struct domain *domain = user;
    struct daemon *daemon = domain->sharing->daemon;

    if (phase == MPS_FAULTED && !domain->faulted) {
        daemon_log("MPS on %s: %s; its jobs fail, and no job is placed there until it serves again",
                   mps_domain_gpus(mps), why);
        for (struct sharer *sharer = domain->sharing->sharers; sharer; sharer = sharer->next)
            if (sharer->domain == domain && !sharer->ready)
                sharer->faulted_ns = nodetime_now_ns();
        tell_core(domain, true);
        engine_turn(daemon->engine);
    } else if (domain->faulted && (phase == MPS_SERVING || phase == MPS_DOWN)) {
        domain->culprit = 0;
        daemon_log("MPS on %s: it %s", mps_domain_gpus(mps), phase == MPS_SERVING ? "serves again" : "was stopped");
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

static int open_domain(struct sharing *sharing, const char *directory, const char *gpus, struct domain **result,
                       struct error *err)
{
    struct domain *domain = xcalloc(1, sizeof *domain);
    struct mps_domain_options options = {.loop = sharing->daemon->loop,
                                         .program = control_program(&sharing->daemon->config),
                                         .directory = directory,
                                         .gpus = gpus,
                                         .multiuser = sharing->daemon->config.core.mps_multiuser,
                                         .on_phase = on_phase,
                                         .user = domain};
    int rc;

    domain->sharing = sharing;
    rc = mps_domain_new(&options, &domain->mps, err);
    if (rc < 0) {
        free(domain);
        return rc;
    }
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
    free(domain);
}

/* Whether some GPU of the job is in it. */
static bool overlaps(const struct sharing *sharing, const struct domain *domain, const struct job_view *view)
{
    for (uint32_t i = 0; i < view->placement_count; i++)
        if (names(mps_domain_gpus(domain->mps), uuid_of(sharing, view, i)))
            return true;
    return false;
}

/* Two servers on a GPU would be two contexts there: idle domains make room, used ones are joined or in the way. */
static int find_domain(struct sharing *sharing, const struct job_view *view, struct domain **found, struct error *err)
{
    CLEANUP(free_ptr) char *gpus = gpus_of(sharing, view);
    CLEANUP(free_ptr) char *directory = directory_of(sharing, gpus);

    *found = NULL;
    for (struct domain *domain = sharing->domains, *next; domain; domain = next) {
        next = domain->next;
        if (strcmp(mps_domain_gpus(domain->mps), gpus) == 0) {
            *found = domain;
        } else if (!overlaps(sharing, domain, view)) {
            continue;
        } else if (mps_domain_jobs(domain->mps) == 0) {
            if (!domain->faulted)
                close_domain(sharing, domain);
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

/* What an earlier daemon left: stopped, unless one of its jobs is found running before the loop turns. */
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
    if (!sharing->daemon->config.mps_pipe_directory)
        find_left_domains(sharing);
}

/* ---- Jobs come and go ---- */

bool sharing_is_for(const struct daemon *daemon, const struct job_view *view)
{
    if (view->share == SHARE_ANY) /* placed by a carma that did not say */
        return daemon->config.share.mode == SHARE_MPS && !view->wants.exclusive;
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
static void join_foreign(struct sharing *sharing, uint64_t job, sharing_ready *ready)
{
    struct daemon *daemon = sharing->daemon;
    const char *pipe_directory = daemon->config.mps_pipe_directory;
    struct error err;

    if (mps_process_find(pipe_directory, &sharing->foreign)) {
        add_sharer(sharing, job, NULL);
        ready(daemon, job, pipe_directory, NULL, NULL);
        return;
    }
    error_set(&err, ENOENT, "MPS: no control daemon has its pipe in '%s' (the setting mps_pipe_directory): start it, or "
              "unset that for carma to start its own", pipe_directory);
    daemon_log("job %" PRIu64 " cannot start: %s", job, err.text);
    ready(daemon, job, NULL, NULL, &err);
}

void sharing_join(struct sharing *sharing, const struct job_view *view, sharing_ready *ready)
{
    struct domain *domain;
    struct error err;

    if (sharing->daemon->config.mps_pipe_directory) {
        join_foreign(sharing, view->id, ready);
        return;
    }
    if (find_domain(sharing, view, &domain, &err) < 0) {
        error_prefix(&err, "MPS");
        daemon_log("job %" PRIu64 " cannot start: %s", view->id, err.text);
        ready(sharing->daemon, view->id, NULL, NULL, &err);
        return;
    }
    add_sharer(sharing, view->id, domain)->ready = ready;
    mps_domain_join(domain->mps, view->id, view->wants.uid, on_ready, sharing);
}

void sharing_adopt(struct sharing *sharing, const struct job_view *view)
{
    struct domain *domain = NULL;
    struct error err;

    if (sharing->daemon->config.mps_pipe_directory)
        return;
    if (find_domain(sharing, view, &domain, &err) < 0) {
        daemon_log("job %" PRIu64 ": MPS: %s", view->id, err.text);
        return;
    }
    add_sharer(sharing, view->id, domain);
    mps_domain_join(domain->mps, view->id, view->wants.uid, NULL, NULL);
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
    if (sharer->domain)
        mps_domain_leave(sharer->domain->mps, job);
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

bool sharing_first_to_fault(struct sharing *sharing, uint64_t job)
{
    struct sharer *sharer = sharer_of(sharing, job);

    if (!sharer || !sharer->domain)
        return false;
    if (!sharer->domain->culprit)
        sharer->domain->culprit = job;
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
        if (sharer->stopped && now_ns - sharer->stop_wall_ns > TERMINATE_MS * NS_PER_MS)
            stopped(sharing, sharer);
    }
}

/* ---- Life ---- */

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

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
