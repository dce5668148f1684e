/* The daemon's modules, put together and taken apart in their order. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/account/past_runs.h"
#include "daemon/account/totals.h"
#include "daemon/capture/captures.h"
#include "daemon/engine/snapshotter.h"
#include "daemon/forgetting.h"
#include "daemon/engine/repeats.h"
#include "daemon/engine_calls.h"
#include "daemon/lease/leases.h"
#include "daemon/load.h"
#include "daemon/log.h"
#include "daemon/node/attribution.h"
#include "daemon/node/job_mapping.h"
#include "daemon/node/node.h"
#include "daemon/submit/allowance.h"
#include "daemon/submit/submission.h"
#include "daemon/request/changes.h"
#include "daemon/request/dashboard.h"
#include "daemon/request/events.h"
#include "daemon/request/explanation.h"
#include "daemon/request/history_query.h"
#include "daemon/request/listing.h"
#include "daemon/request/requests.h"
#include "daemon/request/series_json.h"
#include "daemon/run/run_directories.h"
#include "daemon/run/runs.h"
#include "daemon/run/mps_jobs.h"
#include "daemon/set_aside.h"
#include "daemon/shares.h"
#include "daemon/view/access.h"
#include "daemon/view/owners.h"
#include "daemon/whatif/whatif.h"
#include "http/http.h"
#include "store/store.h"

/* Descriptors that one process needs where every client's place is taken: without them it would listen and not
 * answer. */
#define DESCRIPTORS_OWN  64
#define DESCRIPTORS_NEED (HTTP_MAX_CONNECTIONS + HTTP_MAX_PARKED + DESCRIPTORS_OWN)

static int check_descriptors(struct error *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS_NEED)
        return 0;
    return error_set(err, EMFILE,
                     "carmad needs %d open files and may have %llu: `ulimit -n %d`, or LimitNOFILE= of its service",
                     DESCRIPTORS_NEED, (unsigned long long)limit.rlim_cur, DESCRIPTORS_NEED);
}

/* A new store numbers its jobs from 1 again, over the outputs and run directories of those that an older one knew. */
static int check_not_emptied(const char *directory, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/store.db", directory);
    CLEANUP(free_ptr) char *runs = xasprintf("%s/runs", directory);
    struct stat st;

    if ((stat(path, &st) == 0 && st.st_size > 0) || !run_directories_any(runs))
        return 0;
    return error_set(
        err, EBADMSG,
        "%s is empty or gone, and %s has runs of its jobs: restore it from a backup, or move %s away to begin anew",
        path, runs, directory);
}

static uint64_t job_of_process(const struct daemon *daemon, pid_t pid)
{
    return runs_owner_of(daemon->runs, pid);
}

static uint64_t owner_of_memory(const void *user, pid_t pid)
{
    const struct daemon *daemon = user;
    uint64_t job = job_of_process(daemon, pid);

    if (job)
        mps_jobs_note_process(daemon->mps_jobs, job, pid);
    return job == 0 && mps_jobs_has_server(daemon->mps_jobs, pid) ? ATTRIBUTION_MPS_SERVER : job;
}

/* Some runs wait for a reading since their end. */
static void judge_ended(struct daemon *daemon)
{
    runs_look(daemon->runs);
}

static const struct node_calls node_calls = {.owner_of = owner_of_memory, .was_read = judge_ended};

struct uids {
    uint32_t *items; /* owned */
    size_t count, capacity;
};

static void take_uid(const struct total *total, void *user)
{
    struct uids *uids = user;

    array_reserve(uids->items, uids->capacity, uids->count + 1);
    uids->items[uids->count++] = total->uid;
}

/* A damaged accounting keeps nobody from work: without past runs, only estimates are worse. */
static void load_past_runs(struct daemon *daemon)
{
    struct uids uids = {0};
    struct error err;

    totals_read(daemon, nodetime_now_ns(), take_uid, &uids);
    if (past_runs_load(daemon->past_runs, daemon->config.state_directory, uids.items, uids.count, &err) != 0)
        daemon_log("run times and SM activities of earlier jobs are not known: %s", err.text);
    free(uids.items);
}

int daemon_start(struct daemon *daemon, struct error *err)
{
    struct http_options http = {.loop = daemon->loop,
                                .socket_path = daemon->config.socket,
                                .tcp_address = daemon->config.listen,
                                .token_file = daemon->config.token_file,
                                .is_public = dashboard_has,
                                .inherited = SERVICE_FIRST_SOCKET,
                                .inherited_count = daemon->service.sockets,
                                .handle = requests_handle,
                                .body_limit = requests_body_limit,
                                .user = daemon};
    int status = mps_jobs_check(&daemon->config, &daemon->no_mps, err);

    if (status != 0)
        return status;
    daemon->core = core_new();
    status = config_machine_profile(&daemon->config, &daemon->profile, err);
    if (status != 0)
        return status;
    status = check_descriptors(err);
    if (status == 0)
        status = check_not_emptied(daemon->config.state_directory, err);
    if (status == 0)
        status = store_open(daemon->config.state_directory, &daemon->store, err);
    if (status != 0)
        return status;
    daemon->engine = engine_new(daemon, &engine_calls);
    daemon->snapshotter = snapshotter_new(daemon, &engine_calls);
    daemon->forgetting = forgetting_new(daemon);
    daemon->totals = totals_new();
    daemon->past_runs = past_runs_new();
    daemon->listings = listings_new(daemon);
    daemon->changes = changes_new(daemon);
    daemon->leases = leases_new(daemon);
    daemon->owners = daemon->views.owners = owners_new(daemon->loop);
    daemon->repeats = repeats_new();
    daemon->history = history_new(daemon);
    daemon->explanations = explanations_new(daemon);
    daemon->access = access_new(daemon->loop, daemon->config.admin_group);
    daemon->series = series_for(daemon);
    daemon->node = node_new(daemon, &node_calls);
    daemon->job_mapping = job_mapping_new(daemon);
    daemon->mps_jobs = mps_jobs_new(daemon, job_of_process);
    daemon->whatif = whatif_new(daemon);
    daemon->captures = captures_new(daemon);
    daemon->events = events_new(daemon);
    status = runs_new(daemon, &daemon->runs, err);
    if (status == 0)
        status = load_stored(daemon, err);
    if (status == 0)
        status = node_load_energy(daemon->node, err);
    if (status == 0)
        status = totals_load(daemon, err);
    if (status == 0)
        load_past_runs(daemon);
    if (status == 0)
        set_aside_from_queue(daemon);
    if (status == 0)
        shares_tell_all(daemon);
    daemon->loaded = status == 0;
    if (status == 0)
        status = http_server_new(&http, &daemon->http, err);
    return status;
}

void daemon_stop(struct daemon *daemon)
{
    uint32_t running = daemon->runs ? runs_count(daemon->runs) : 0;

    daemon->stopping = true;
    if (daemon->loaded) /* the accounts since the last turn; nothing is added to a store that was refused */
        engine_turn(daemon->engine);
    if (daemon->node && daemon->store)
        node_stop(daemon->node);
    if (daemon->store)
        store_close(daemon->store); /* answers the waiting clients */
    events_free(daemon->events);
    submissions_stop(daemon);
    history_close(daemon->history);
    explanations_close(daemon->explanations);
    listings_free(daemon->listings);
    changes_free(daemon->changes);
    http_server_free(daemon->http);
    leases_free(daemon->leases);
    access_free(daemon->access);
    owners_free(daemon->owners);
    allowances_release(daemon);
    runs_free(daemon->runs);
    mps_jobs_free(daemon->mps_jobs);
    whatif_free(daemon->whatif);
    captures_free(daemon->captures);
    job_mapping_free(daemon->job_mapping);
    node_free(daemon->node);
    series_free(daemon->series);
    engine_free(daemon->engine);
    snapshotter_free(daemon->snapshotter);
    forgetting_free(daemon->forgetting);
    totals_free(daemon->totals);
    past_runs_free(daemon->past_runs);
    repeats_free(daemon->repeats);
    views_release(&daemon->views);
    free(daemon->no_mps);
    core_free(daemon->core);
    if (running)
        daemon_log("stopped; %" PRIu32 " job%s on and will be found again", running, running == 1 ? " goes" : "s go");
}
