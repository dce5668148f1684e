/* carmad: the first driver of the core. The world becomes records (node/, run/, request/), the engine feeds them to the
 * core and stores them with the decisions. Then it tells of these (engine_calls.c), and run/ acts on them.
 *
 * One thread, one libuv loop; nothing on it waits, and long work (submission_read.c) is done beside it. The store
 * commits on its own thread, GPU readings come from carma-monitor, jobs belong to their shepherds. */
#ifndef CARMA_DAEMON_DAEMON_H
#define CARMA_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/service.h"
#include "config/config.h"
#include "core/core.h"
#include "daemon/view/view.h"
#include "estimate/profile.h"

struct access;
struct allowance;
struct captures;
struct engine;
struct forgetting;
struct history_queries;
struct events;
struct explanations;
struct job_mapping;
struct snapshotter;
struct leases;
struct changes;
struct listings;
struct node;
struct owners;
struct past_runs;
struct repeats;
struct runs;
struct series;
struct mps_jobs;
struct store;
struct submission;
struct totals;
struct whatif;
struct http_server;

struct daemon {
    uv_loop_t *loop;
    struct config config;
    struct service service;         /* the service manager, and the sockets that it has handed over */
    struct machine_profile profile; /* of config.machine_profile; its name is "" where the GPUs say which it is */
    struct core *core;
    struct views views;
    struct store *store;
    struct engine *engine;
    struct events *events;
    struct explanations *explanations;
    struct snapshotter *snapshotter;
    struct forgetting *forgetting;
    struct leases *leases;
    struct listings *listings;
    struct changes *changes;
    struct totals *totals;
    struct past_runs *past_runs;
    struct history_queries *history;
    struct access *access;
    struct node *node;
    struct job_mapping *job_mapping;
    struct owners *owners;
    struct repeats *repeats;
    struct runs *runs;
    struct series *series;
    struct mps_jobs *mps_jobs;
    char *no_mps; /* owned: why jobs cannot share by MPS where `share` is auto; "": they can */
    struct whatif *whatif;
    struct captures *captures;
    struct http_server *http;
    struct allowance *allowances;        /* submit/allowance.h */
    struct submission *submissions;      /* that are being read and estimated, or wait for that */
    struct submission *reads_large;      /* of these, the large one that is being read */
    struct submission *estimates_costly; /* and the one of which a costly model is being estimated */
    int64_t stored_ns;                   /* node time of the latest record that was loaded */
    bool loaded;                         /* all that is stored has been taken in */
    bool stopping;
};

/* Makes the modules on daemon->loop, by daemon->config, with the stored state; nothing is looked for or started yet.
 * Where it fails, daemon_stop takes apart the parts that are there. */
int daemon_start(struct daemon *daemon, struct error *err);

/* Stores the rest and closes the modules: their handles on the loop end as the loop is run again. */
void daemon_stop(struct daemon *daemon);

#endif
