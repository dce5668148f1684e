#include "daemon/load.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/record_json.h"
#include "api/spec.h"
#include "api/submission_text.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/snapshot.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/snapshotter.h"
#include "daemon/engine/repeats.h"
#include "daemon/log.h"
#include "daemon/set_aside.h"
#include "daemon/view/owners.h"
#include "daemon/view/view_store.h"
#include "store/store.h"

static int take_spec(uint64_t job, const char *json, void *user)
{
    struct daemon *daemon = user;
    CLEANUP(job_spec_release) struct job_spec spec;
    CLEANUP(job_estimate_release) struct job_estimate estimate;
    struct job_view *view;
    struct owner owner;
    struct error err;

    if (submission_from_text(json, &spec, &estimate, &owner, &err) != 0) {
        view = views_add_unknown(&daemon->views, job);
        view->hidden = view->withdrawn = strcmp(json, SUBMISSION_WITHDRAWN) == 0;
        if (!view->withdrawn)
            set_aside(view, "its submission cannot be read: %s", err.text);
        free(owner.user);
        return 0;
    }
    view = views_add(&daemon->views, job, &spec, &estimate);
    job_view_set_user(view, owner.user);
    job_view_set_stored(view, strlen(json));
    free(owner.user);
    view->gid = owner.gid;
    return 0;
}

static int take_job(uint64_t job, uint64_t seq, const char *json, void *user)
{
    struct daemon *daemon = user;
    struct job_view *view = views_find(&daemon->views, job);
    struct error err;

    if (view && job_view_from_text(view, json, &err) != 0) {
        set_aside(view, "its state cannot be read: %s", err.text);
    } else if (view) {
        view->as_of = seq;
        views_loaded(&daemon->views, view);
    }
    return 0;
}

static int take_record(uint64_t seq, const struct record *record, void *user)
{
    struct daemon *daemon = user;
    struct error err;
    int status = core_apply(daemon->core, record, &err);

    if (status != 0) {
        daemon_log("stored record %" PRIu64 " does not apply: %s", seq, err.text);
        return -EBADMSG;
    }
    if (record->at_ns > daemon->stored_ns)
        daemon->stored_ns = record->at_ns;
    snapshotter_loaded(daemon->snapshotter, record);
    daemon->views.seq = seq;
    if (!record_is_state(record->type))
        views_fold(&daemon->views, daemon->core, record);
    return 0;
}

static int take_request(const struct store_request *request, void *user)
{
    struct daemon *daemon = user;

    if (repeats_is_id(request->id))
        repeats_add(daemon->repeats, request);
    else
        daemon_log("a stored request_id of uid %u cannot be read: it is not known any more", (unsigned)request->uid);
    return 0;
}

/* Jobs of an earlier carma have no stored user name: it is looked up now, once for each user, before any client is
 * served. */
static void find_owners(struct daemon *daemon)
{
    struct owner owner = {.gid = OWNER_UNKNOWN};
    uint32_t uid = UINT32_MAX;
    struct error err;

    for (struct job_view *view = daemon->views.jobs; view; view = view->hh.next) {
        if (job_view_user(view) && (view->gid != OWNER_UNKNOWN || job_state_ended(view->state)))
            continue;
        if (!owner.user || view->wants->uid != uid) {
            free_ptr(&owner.user);
            uid = view->wants->uid;
            if (owner_look_up(uid, &owner, &err) != 0) {
                daemon_log("%s: its jobs cannot be started until carmad is started anew", err.text);
                owner = (struct owner){.user = xasprintf("%u", (unsigned)uid), .gid = OWNER_NO_GID};
            }
        }
        if (!job_view_user(view))
            job_view_set_user(view, owner.user);
        view->gid = owner.gid;
    }
    free(owner.user);
}

/* A virtual node's time begins with the machine's and runs at its scale. A store from before a reboot, or of a larger
 * scale, lies in a future that may be months away. */
static int check_scaled_clock(const struct daemon *daemon, struct error *err)
{
    int64_t ahead_ns = daemon->stored_ns - nodetime_now_ns();

    if (ahead_ns <= 0)
        return 0;
    return error_set(err, EINVAL,
                     "%s: its last record lies %" PRId64 " s of node time ahead: it is of another CARMA_TIME_SCALE "
                     "or from before a reboot; give carmad another --state",
                     daemon->config.state_directory, ahead_ns / NS_PER_SEC);
}

/* Node time goes on as the shepherds of this boot have it; in another boot it begins with the wall clock, but not
 * before what is stored. */
static int set_clock(const struct daemon *daemon, struct error *err)
{
    struct store_clock clock;
    struct error unkept;
    int status = store_load_clock(daemon->store, &clock, err);

    if (status != 0)
        return status;
    nodetime_set_offset_ns(clock.offset_ns);
    if (!*clock.boot || strcmp(clock.boot, proc_boot()) != 0 || nodetime_now_ns() < daemon->stored_ns) {
        clock.offset_ns = nodetime_new_offset_ns(daemon->stored_ns);
        nodetime_set_offset_ns(clock.offset_ns);
        snprintf(clock.boot, sizeof clock.boot, "%s", proc_boot());
        if (store_keep_clock(daemon->store, &clock, &unkept) != 0)
            daemon_log("%s: after a restart, times in it may not follow those of now", unkept.text);
    }
    if (nodetime_shift_ns() != 0)
        daemon_log("the wall clock is %" PRId64
                   " s from the time that jobs are measured by, which nobody sets: times are "
                   "shown by the wall clock, and durations stay true",
                   nodetime_shift_ns() / NS_PER_SEC);
    return 0;
}

/* By their records, so that a setting cannot be forgotten here. */
static bool same_config(const struct core_config *a, const struct core_config *b)
{
    CLEANUP(strbuf_release) struct strbuf one = {0};
    CLEANUP(strbuf_release) struct strbuf other = {0};
    struct error err;

    return record_json_write(&(struct record){.type = RECORD_RECONFIGURED, .config = *a}, &one, &err) == 0 &&
           record_json_write(&(struct record){.type = RECORD_RECONFIGURED, .config = *b}, &other, &err) == 0 &&
           strcmp(one.text, other.text) == 0;
}

int load_stored(struct daemon *daemon, struct error *err)
{
    struct record input = {.type = RECORD_RECONFIGURED, .config = daemon->config.core};
    bool fresh;
    const struct store_taker taker = {.on_spec = take_spec,
                                      .on_job = take_job,
                                      .on_record = take_record,
                                      .user = daemon,
                                      .most_ended = SNAPSHOTTER_MOST_ENDED};
    int status = store_load(daemon->store, &taker, err);

    daemon->views.seq = UINT64_MAX;
    if (status == 0)
        status = nodetime_scale() == 1 ? set_clock(daemon, err) : check_scaled_clock(daemon, err);
    if (status == 0) {
        set_aside_what_disagrees(daemon);
        find_owners(daemon);
    }
    if (status == 0)
        status = store_load_requests(daemon->store, take_request, daemon, err);
    if (status == 0)
        status = core_check(daemon->core, err);
    if (store_last_job(daemon->store) > daemon->views.last_id)
        daemon->views.last_id = store_last_job(daemon->store);
    if (status != 0)
        return status;
    input.at_ns = nodetime_now_ns();
    fresh = core_gpu_count(daemon->core) == 0;
    if (fresh || !same_config(core_configuration(daemon->core), &daemon->config.core))
        status = engine_input(daemon->engine, &input, err);
    return status;
}
