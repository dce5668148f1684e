#include "cli/play/play.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/session.h"
#include "cli/show/answer.h"
#include "client/client.h"

#define BATCH_MAX   3 /* jobs of one request: even with an environment of 1 MiB each the daemon takes it */
#define POLL_MS     200
#define POLL_END_MS 50 /* when few jobs are left: the GPUs' energy after the last end is counted too */

volatile sig_atomic_t play_interrupted;

static int64_t elapsed_ns(const struct play *play)
{
    return nodetime_monotonic_wall_ns() - play->begun_wall_ns;
}

static int64_t arrival_wall_ns(const struct play *play, size_t item)
{
    return (int64_t)((double)play->items[item].job->arrival_ns / play->scale);
}

static int interrupted(struct error *err)
{
    return error_set(err, EINTR, "interrupted");
}

/* ---- submitting ---- */

/* The daemon takes a job's user from the connection, and root's can be that of any user. */
static uid_t user_of(const struct play *play, size_t item)
{
    uid_t wanted = play->items[item].job->uid;

    return wanted && getuid() == 0 ? wanted : getuid();
}

/* A connection stays that of the user who made it: others have their own, for one request. */
static int call_as(uid_t user, struct cli *cli, const json_t *request, json_t **reply, struct error *err)
{
    struct client *callers = cli->client;

    if (user == getuid())
        return session_call(cli, "POST", "/v1/jobs", request, reply, err);
    if (seteuid(user) != 0)
        return error_set(err, errno, "cannot submit as uid %u: %s", (unsigned)user, strerror(errno));
    cli->client = NULL;
    int rc = session_call(cli, "POST", "/v1/jobs", request, reply, err);
    client_free(cli->client);
    cli->client = callers;
    if (seteuid(getuid()) != 0)
        return error_set(err, errno, "cannot be uid %u again: %s", (unsigned)getuid(), strerror(errno));
    return rc;
}

static void take_id(struct play *play, size_t item, uint64_t id)
{
    play->items[item].id = id;
    if (id > play->greatest_id)
        play->greatest_id = id;
}

static int take_ids(struct play *play, size_t from, size_t to, const json_t *reply, struct error *err)
{
    const json_t *jobs = json_object_get(reply, "jobs");

    for (size_t i = from; i < to; i++) {
        int64_t id = answer_integer(json_array_get(jobs, i - from), "id", 0);
        if (id <= 0)
            return error_set(err, EPROTO, "the daemon accepted %zu jobs but named %zu: client and daemon do not match",
                             to - from, json_array_size(jobs));
        take_id(play, i, (uint64_t)id);
    }
    play->submitted = to;
    return 0;
}

/* Whether the daemon's job `id` is one of items[from .. to): no other job writes to the same file. */
static int match_job(struct play *play, size_t from, size_t to, uint64_t id, size_t *found, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, id);
    CLEANUP(json_release) json_t *job = NULL;
    int rc = session_call(play->cli, "GET", path, NULL, &job, err);

    if (rc)
        return rc;
    for (size_t i = from; i < to; i++) {
        const char *output = answer_text(job, "output");
        if (!play->items[i].id && output && strcmp(output, play->items[i].output) == 0) {
            take_id(play, i, id);
            ++*found;
            return 0;
        }
    }
    return 0;
}

/* The answer to a request did not come: the daemon accepted all of its jobs or none. Looks which. */
static int find_batch(struct play *play, size_t from, size_t to, bool *accepted, struct error *err)
{
    CLEANUP(json_release) json_t *reply = NULL;
    uint64_t after = play->greatest_id;
    size_t found = 0, at;
    json_t *job;
    int rc = cli_list_jobs(play->cli, "/v1/jobs?state=all", session_call, &reply, err);

    json_array_foreach (json_object_get(reply, "jobs"), at, job) {
        int64_t id = answer_integer(job, "id", 0);
        if (!rc && id > 0 && (uint64_t)id > after && answer_integer(job, "uid", -1) == (int64_t)user_of(play, from))
            rc = match_job(play, from, to, (uint64_t)id, &found, err);
    }
    if (rc)
        return rc;
    if (found && found != to - from)
        return error_set(err, EPROTO,
                         "the daemon has %zu of %zu jobs that were submitted together: look at carma queue", found,
                         to - from);
    *accepted = found > 0;
    play->in_doubt = 0;
    if (found)
        play->submitted = to;
    return 0;
}

static int submit_batch(struct play *play, size_t from, size_t to, struct error *err)
{
    CLEANUP(json_release) json_t *request = play_request(play, from, to);
    bool accepted = false;

    for (;;) {
        CLEANUP(json_release) json_t *reply = NULL;
        int rc = call_as(user_of(play, from), play->cli, request, &reply, err);
        if (rc == 0)
            return take_ids(play, from, to, reply, err);
        if (rc != -CLI_NO_ANSWER)
            return rc;
        play->in_doubt = to;
        rc = find_batch(play, from, to, &accepted, err);
        if (rc || accepted)
            return rc;
    }
}

static int submit_due(struct play *play, struct error *err)
{
    int64_t now = elapsed_ns(play);

    while (play->submitted < play->count && arrival_wall_ns(play, play->submitted) <= now && !play_interrupted) {
        size_t from = play->submitted, to = from;
        while (to < play->count && to - from < BATCH_MAX && arrival_wall_ns(play, to) <= now &&
               user_of(play, to) == user_of(play, from))
            to++;
        int rc = submit_batch(play, from, to, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- following ---- */

/* Ids grow in the order of submission. */
static struct play_item *find_item(struct play *play, uint64_t id)
{
    size_t low = 0, high = play->submitted;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (play->items[middle].id == id)
            return &play->items[middle];
        if (play->items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int fetch_ended(struct play *play, struct play_item *item, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, item->id);
    CLEANUP(json_release) json_t *job = NULL;
    int rc = session_call(play->cli, "GET", path, NULL, &job, err);

    if (rc || !answer_job_ended(job))
        return rc;
    item->crashes = answer_integer(job, "crashes", 0);
    item->running = false;
    item->ended = json_incref(job);
    play->done++;
    return 0;
}

/* A job that is no longer in the list of unfinished jobs has ended. */
static int follow(struct play *play, struct error *err)
{
    CLEANUP(json_release) json_t *reply = NULL;
    json_t *job;
    size_t at;
    int rc = cli_list_jobs(play->cli, "/v1/jobs", session_call, &reply, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < play->submitted; i++)
        play->items[i].listed = false;
    json_array_foreach (json_object_get(reply, "jobs"), at, job) {
        struct play_item *item = find_item(play, (uint64_t)answer_integer(job, "id", 0));
        const char *state = answer_text(job, "state");
        if (!item || !state)
            continue;
        item->listed = true;
        item->crashes = answer_integer(job, "crashes", 0);
        item->running = strcmp(state, "PLACED") == 0 || answer_job_runs(job);
    }
    for (size_t i = 0; i < play->submitted && !rc; i++) {
        if (!play->items[i].listed && !play->items[i].ended)
            rc = fetch_ended(play, &play->items[i], err);
    }
    return rc;
}

static int look_at_gpus(struct play *play, struct error *err)
{
    CLEANUP(json_release) json_t *gpus = NULL;
    int rc = session_call(play->cli, "GET", "/v1/gpus", NULL, &gpus, err);

    if (rc == 0)
        usage_add(&play->usage, gpus);
    return rc;
}

/* The jobs that are there before the first is submitted are not ours. */
static int note_greatest_id(struct play *play, struct error *err)
{
    CLEANUP(json_release) json_t *reply = NULL;
    int rc = cli_list_jobs(play->cli, "/v1/jobs?state=all", session_call, &reply, err);
    json_t *job;
    size_t at;

    json_array_foreach (json_object_get(reply, "jobs"), at, job) {
        int64_t id = answer_integer(job, "id", 0);
        if (id > 0 && (uint64_t)id > play->greatest_id)
            play->greatest_id = (uint64_t)id;
    }
    return rc;
}

static void pause_until_due(const struct play *play)
{
    bool ending = play->submitted == play->count && play->count - play->done <= 4;
    int64_t pause_ns = (ending ? POLL_END_MS : POLL_MS) * NS_PER_MS;

    if (play->submitted < play->count) {
        int64_t next = arrival_wall_ns(play, play->submitted) - elapsed_ns(play);
        pause_ns = next < pause_ns ? next : pause_ns;
    }
    if (pause_ns > 0)
        session_sleep_ms((pause_ns + NS_PER_MS - 1) / NS_PER_MS);
}

int play_run(struct play *play, struct error *err)
{
    int rc = note_greatest_id(play, err);

    if (!rc)
        rc = look_at_gpus(play, err);
    play->begun_wall_ns = nodetime_monotonic_wall_ns();
    while (!rc && play->done < play->count && !play_interrupted) {
        rc = submit_due(play, err);
        if (!rc && !play_interrupted)
            rc = follow(play, err);
        if (!rc && !play_interrupted)
            rc = look_at_gpus(play, err);
        play_show_progress(play, play->done == play->count);
        if (play->done < play->count && !rc)
            pause_until_due(play);
    }
    if (play_interrupted)
        return interrupted(err);
    return rc;
}

size_t play_cancel_rest(struct play *play)
{
    size_t cancelled = 0;
    bool accepted;
    struct error doubt;

    if (play->in_doubt > play->submitted && find_batch(play, play->submitted, play->in_doubt, &accepted, &doubt))
        cli_fail("%s; whether the last %zu jobs were submitted is not known: look at carma queue", doubt.text,
                 play->in_doubt - play->submitted);
    for (size_t i = 0; i < play->submitted; i++) {
        CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64 "/cancel", play->items[i].id);
        struct error err;
        if (!play->items[i].ended && cli_call(play->cli, "POST", path, NULL, NULL, &err) == 0)
            cancelled++;
    }
    return cancelled;
}
