#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/trust/guarded.h"
#include "base/memory.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "core/ledger.h"
#include "core/share/sharing.h"
#include "daemon/log.h"
#include "daemon/run/mps_jobs_internal.h"
#include "gpu/mps/directory.h"
#include "gpu/mps/trial.h"

#define USERS      "uid-" /* beginnings of directories' names */
#define EVERYBODYS "all-"

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *uuid_of(const struct mps_jobs *mps_jobs, const struct job_view *view, uint32_t i)
{
    return core_gpu(mps_jobs->daemon->core, view->placements[i].gpu)->uuid;
}

bool mps_jobs_has_wide(const struct mps_jobs *mps_jobs, const struct job_view *view)
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
    bool wide = mps_jobs_has_wide(mps_jobs, view);
    struct strbuf text = {0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < core_gpu_count(core); i++) {
        const struct gpu *gpu = core_gpu(core, i);
        if (is_on(view, i) || (wide && sharing_serves(gpu) && !gpu->instance && !gpu->lost))
            uuids[count++] = gpu->uuid;
    }
    qsort(uuids, count, sizeof *uuids, compare_texts);
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf(&text, "%s%s", i ? "," : "", uuids[i]);
    return strbuf_steal(&text);
}

/* The name of several GPUs is a hash of their UUIDs (FNV-1a, 64 bits): all UUIDs would be longer than a socket's path
 * may be. */
static char *directory_of(const struct mps_jobs *mps_jobs, const struct job_view *view, const char *gpus)
{
    uint64_t hash = digest_of_text(gpus);
    uint32_t owner = owner_of(mps_jobs, view);

    if (mps_jobs_has_wide(mps_jobs, view))
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

bool mps_jobs_domain_has(const struct domain *domain, const char *uuid)
{
    return names(mps_domain_gpus(domain->mps), uuid);
}

static const char *control_program(const struct config *config)
{
    return config->mps_control ? config->mps_control : "nvidia-cuda-mps-control";
}

static int try_mps(const struct config *config, int trials, char **no_mps, struct error *err)
{
    const char *program = control_program(config);
    struct error why;
    int rc = 0;

    if (config->mps_pipe_directory || !share_setting_names(&config->share, SHARE_AUTO) ||
        mps_try(program, trials, &why) == 0)
        *no_mps = xstrdup("");
    else
        *no_mps = xasprintf("%s (carma doctor says more)", why.text);
    if (config->mps_pipe_directory)
        return 0;
    if (config->core.mps_multiuser)
        rc = mps_try_multiuser(program, trials, err);
    return rc == -ENOENT ? 0 : rc; /* a job that needs it is told so */
}

int mps_jobs_check(const struct config *config, char **no_mps, struct error *err)
{
    CLEANUP(free_ptr) char *record = xasprintf("%s/mps-trial", config->state_directory);
    bool made = access(config->state_directory, F_OK) < 0;
    int trials = file_make_dirs(config->state_directory, 0700, err), rc;

    if (trials == 0)
        trials = mps_trials_begin(record, err);
    rc = trials == -EBUSY ? trials : try_mps(config, trials, no_mps, err); /* other faults are the store's to tell */
    mps_trials_end(record, trials);
    if (rc && made)
        rmdir(config->state_directory); /* a daemon that is refused leaves nothing */
    return rc;
}

/* The directory of all domains: whoever owned it could put another control daemon in a domain's place. */
static int own_directory(const char *path, struct error *err)
{
    int rc = file_make_dirs(path, 0755, err);

    if (rc)
        return rc;
    rc = guarded_own_directory(path, 0755, err);
    if (rc)
        error_prefix(err, "the directory '%s', for MPS, cannot be used", path);
    return rc;
}

static int open_domain(struct mps_jobs *mps_jobs, const char *directory, const char *gpus, struct domain **result,
                       struct error *err)
{
    struct domain *domain = xcalloc(1, sizeof *domain);
    struct mps_domain_options options = {.loop = mps_jobs->daemon->loop,
                                         .program = control_program(&mps_jobs->daemon->config),
                                         .directory = directory,
                                         .gpus = gpus,
                                         .patience_ms =
                                             (uint64_t)(mps_jobs->daemon->config.start_timeout_ns / NS_PER_MS),
                                         .on_phase = mps_jobs_on_phase,
                                         .user = domain};
    int rc;

    domain->mps_jobs = mps_jobs;
    read_owner(domain, directory);
    options.multiuser = domain->uid == EVERYBODY && (domain->wide || mps_jobs->daemon->config.core.mps_multiuser);
    options.is_hit = domain->wide ? mps_jobs_is_hit : NULL;
    rc = own_directory(mps_jobs->directory, err);
    if (rc == 0)
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

void mps_jobs_close_domain(struct mps_jobs *mps_jobs, struct domain *domain)
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
        count += mps_jobs_domain_has(domain, uuid_of(mps_jobs, view, i));
    return count;
}

int mps_jobs_find_domain(struct mps_jobs *mps_jobs, const struct job_view *view, struct domain **found,
                         struct error *err)
{
    CLEANUP(free_ptr) char *gpus = gpus_of(mps_jobs, view);
    CLEANUP(free_ptr) char *directory = directory_of(mps_jobs, view, gpus);
    bool wide = mps_jobs_has_wide(mps_jobs, view);

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
                mps_jobs_close_domain(mps_jobs, domain);
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

bool mps_jobs_may_hold(const struct mps_jobs *mps_jobs, const struct domain *domain, const struct job_view *view)
{
    return (domain->uid == EVERYBODY || domain->uid == view->wants->uid) &&
           overlap(mps_jobs, domain, view) == view->placement_count;
}

/* Another carmad of this user, with other GPUs, may have its socket in the same folder, and so its domains. */
static bool is_anothers(const struct mps_jobs *mps_jobs, const char *path)
{
    const struct core *core = mps_jobs->daemon->core;
    CLEANUP(free_ptr) char *gpus = NULL;
    struct error err;

    if (mps_directory_gpus(path, &gpus, &err) < 0)
        return false;
    for (uint32_t i = 0; i < core_gpu_count(core); i++)
        if (names(gpus, core_gpu(core, i)->uuid))
            return false;
    return true;
}

void mps_jobs_find_left_domains(struct mps_jobs *mps_jobs)
{
    DIR *directory = opendir(mps_jobs->directory);
    struct dirent *entry;
    struct error err;

    while (directory && (entry = readdir(directory))) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", mps_jobs->directory, entry->d_name);
        CLEANUP(free_ptr) char *gpus = xasprintf("%s/gpus", path);
        struct domain *domain;
        if (*entry->d_name == '.' || access(gpus, F_OK) < 0 || is_anothers(mps_jobs, path))
            continue;
        if (open_domain(mps_jobs, path, NULL, &domain, &err) < 0)
            daemon_log("the MPS domain in %s cannot be taken up: %s", path, err.text);
    }
    if (directory)
        closedir(directory);
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
