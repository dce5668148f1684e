/* The turns of submissions. Each is a chain of turns on the pool (submission_read.c), and is finished on the loop.
 *
 * submission_start() queues it. start_waiting() gives each user's first one its turn, and after() follows each turn: it
 * finishes those that are over (submission_take.c) and lets others go before the same user's next. Large requests and
 * costly estimates go through a lane of one turn at a time (lane_of). The administrator's filter, where there is one,
 * has its turn when all is read. */
#include "daemon/submit/submission_internal.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "daemon/node/node.h"

#define QUICK_BYTES 16384
#define LARGE_BYTES 65536
#define POOL_NICE   5

static bool is_over(const struct submission *submission)
{
    return submission->status != 201 || (submission_is_read(submission) && submission->completed == submission->count);
}

static void take_turn(struct submission *submission)
{
    if (submission->filter_output)
        submission_filter_apply(submission);
    else if (!is_over(submission))
        submission_read(submission);
    if (is_over(submission) && submission_filter_is_due(submission))
        submission_filter_prepare(submission);
}

/* Behind the loop, which is another thread of the process: on a busy machine it would wait for a processor behind all
 * estimates of all users. Only root gets its priority back. */
static void work_on_pool(uv_work_t *done)
{
    bool yields = geteuid() == 0;
    int before = getpriority(PRIO_PROCESS, 0);

    if (yields)
        setpriority(PRIO_PROCESS, 0, before + POOL_NICE);
    take_turn(done->data);
    if (yields)
        setpriority(PRIO_PROCESS, 0, before);
}

static void finish(struct submission *submission)
{
    json_t *jobs = NULL;

    if (submission->daemon->stopping)
        submission->status = 503; /* nothing is taken any more */
    else
        submission_take(submission, &jobs);
    submission->done(submission->user, submission->status, jobs, &submission->err);
    if (submission->looked_up && !submission->daemon->stopping) /* they are gone then */
        owners_keep(submission->daemon->owners, submission->uid, &submission->owner);
    for (size_t i = 0; i < submission->count; i++) {
        free(submission->applicants[i].text);
        job_spec_release(&submission->applicants[i].spec);
        job_estimate_release(&submission->applicants[i].estimate);
    }
    for (size_t i = 0; i < submission->environment_count; i++)
        spec_strings_release(&submission->environments[i]);
    free(submission->environments);
    dependencies_release(&submission->dependencies);
    free(submission->pieces);
    free(submission->applicants);
    free(submission->owner.user);
    free(submission->filter_input);
    free(submission->filter_output);
    free(submission);
}

/* Where the uid's first submission hangs; at the end of the list where it has none. */
static struct submission **first_of(struct daemon *daemon, uid_t uid)
{
    struct submission **at = &daemon->submissions;

    while (*at && (*at)->uid != uid)
        at = &(*at)->next;
    return at;
}

static struct submission **end_of(struct daemon *daemon)
{
    struct submission **at = &daemon->submissions;

    while (*at)
        at = &(*at)->next;
    return at;
}

static bool is_large(const struct submission *submission)
{
    return submission->length > LARGE_BYTES;
}

/* The user's others, behind those of all others: the next turn is somebody else's. */
static void give_way(struct daemon *daemon, uid_t uid)
{
    struct submission *others = NULL, **last = &others;

    for (struct submission **at = &daemon->submissions, *submission; (submission = *at);) {
        if (submission->uid != uid) {
            at = &submission->next;
            continue;
        }
        *at = submission->next;
        *last = submission;
        last = &submission->next;
    }
    *last = NULL;
    *end_of(daemon) = others;
}

static void after(uv_work_t *done, int canceled);

/* Whose turn its next one has to be, where there is one such turn at a time: the large request that is being read, the
 * costly estimate that is being made. Meanwhile the others wait as texts, and the pool has threads for all other work.
 */
static struct submission **lane_of(const struct submission *submission)
{
    struct daemon *daemon = submission->daemon;

    if (submission->read)
        return &daemon->estimates_costly;
    return is_large(submission) ? &daemon->reads_large : NULL;
}

/* One at a time of each user: in their order, and nobody has the whole pool. */
static void start_waiting(struct daemon *daemon)
{
    for (struct submission *submission = daemon->submissions; submission; submission = submission->next) {
        struct submission **lane = lane_of(submission);
        if (submission->started || *first_of(daemon, submission->uid) != submission)
            continue;
        if (is_over(submission)) {
            submission_filter_start(submission);
            continue;
        }
        if (lane && *lane && *lane != submission)
            continue;
        if (lane)
            *lane = submission;
        submission->started = true;
        uv_queue_work(daemon->loop, &submission->work, work_on_pool, after);
    }
}

static void finish_waiting(struct daemon *daemon)
{
    for (struct submission **at = &daemon->submissions, *submission; (submission = *at);) {
        if (submission->started) {
            at = &submission->next;
            continue;
        }
        *at = submission->next;
        finish(submission);
    }
}

/* A large one keeps its lane until all of it is read: no two are half read. */
static void leave_lanes(struct submission *submission)
{
    struct daemon *daemon = submission->daemon;

    if (daemon->reads_large == submission && (submission->read || is_over(submission)))
        daemon->reads_large = NULL;
    if (daemon->estimates_costly == submission)
        daemon->estimates_costly = NULL;
}

static void after(uv_work_t *done, int canceled)
{
    struct submission *submission = done->data;
    struct daemon *daemon = submission->daemon;
    uid_t uid = submission->uid;
    bool was_large = is_large(submission) || daemon->estimates_costly == submission;

    (void)canceled; /* nobody does */
    submission->read = submission_is_read(submission);
    submission->started = false;
    leave_lanes(submission);
    if ((is_over(submission) && !submission_filter_is_due(submission)) || daemon->stopping) {
        *first_of(daemon, uid) = submission->next;
        finish(submission);
        if (was_large) /* at once: the next is read by another thread, and each has kept the memory of its last */
            malloc_trim(0);
    }
    give_way(daemon, uid);
    if (daemon->stopping)
        finish_waiting(daemon);
    else
        start_waiting(daemon);
}

void submission_go_on(struct submission *submission)
{
    uv_queue_work(submission->daemon->loop, &submission->work, work_on_pool, after);
}

void submissions_stop(struct daemon *daemon)
{
    for (struct submission **at = &daemon->submissions, *submission; (submission = *at);) {
        if (!submission->filter) {
            at = &submission->next;
            continue;
        }
        *at = submission->next;
        low_child_free(submission->filter);
        finish(submission);
    }
}

/* Reading it takes less than waking a thread, and nothing is to be estimated. A text in which a letter is escaped may
 * name what it likes. */
static bool is_quick(const struct submission *submission)
{
    static const char *const models[] = {"\"summary\"", "\"capture\"", "\"hf_config\""};

    if (submission->length > QUICK_BYTES || strstr(submission->body, "\\u00"))
        return false;
    for (size_t i = 0; i < array_size(models); i++)
        for (const char *at = submission->body; (at = strstr(at, models[i])); at++)
            if (strncmp(at + strlen(models[i]), ":null", 5) != 0)
                return false;
    return true;
}

void submission_start(struct daemon *daemon, uid_t uid, const char *body, size_t length, bool judged,
                      submission_done *done, void *user)
{
    struct submission *submission = xcalloc(1, sizeof *submission);
    bool alone = !*first_of(daemon, uid);

    *submission = (struct submission){.work.data = submission,
                                      .daemon = daemon,
                                      .uid = uid,
                                      .body = body,
                                      .length = length,
                                      .judged = judged,
                                      .done = done,
                                      .user = user,
                                      .status = 201,
                                      .events_left = REQUEST_EVENTS,
                                      .config = &daemon->config};
    node_machine_profile(daemon->node, &submission->profile);
    *end_of(daemon) = submission;
    if (alone && is_quick(submission) && owners_find(daemon->owners, uid, &submission->owner)) {
        submission->started = true;
        take_turn(submission);
        after(&submission->work, 0);
    } else {
        start_waiting(daemon);
    }
}

/* ---- As it is stored ---- */
