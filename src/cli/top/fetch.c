#include "cli/top/fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/job/log_file.h"
#include "cli/show/answer.h"
#include "cli/top/cluster.h"
#include "client/client.h"

#define ANSWER_MS      5000 /* so long a call may take: then the daemon counts as lost */
#define LOG_PERIOD_NS  (250 * NS_PER_MS)
#define LOG_TAIL_BYTES (64 * KIB)  /* of a log, to begin with */
#define LOG_MOST_BYTES (256 * KIB) /* entries that wait to be taken: more are read later */
#define STOP_NS        (500 * NS_PER_MS)
#define SPARING        100 /* a part of the time goes to pictures: long queues are looked at less often */

struct top_fetch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* there is something to do */
    int64_t period_ns;
    int wake_fd;
    struct cluster cluster;

    /* Under the lock. */
    bool stop;
    struct top_wish wish;
    bool wish_changed;
    int64_t job;      /* of `verb` */
    const char *verb; /* NULL: nothing is to be done */
    char which[96];   /* of several jobs: their selection; "": that one */
    struct top_news news;

    /* The thread's own. */
    struct cli cli;
    int64_t log_job; /* -1: none */
    char *log_path;
    int64_t log_owner;
    int log_fd;
};

static void wake(const struct top_fetch *fetch)
{
    if (write(fetch->wake_fd, "n", 1) < 0)
        return; /* the pipe is full: it is awake */
}

/* ---- The thread ---- */

static int ask(struct top_fetch *fetch, const char *method, const char *path, json_t **reply, struct error *err)
{
    int rc = 0;

    if (!fetch->cli.client)
        rc = client_open(fetch->cli.socket, &fetch->cli.client, err);
    if (rc)
        return rc;
    client_set_timeout(fetch->cli.client, ANSWER_MS);
    return cli_call(&fetch->cli, method, path, NULL, reply, err);
}

static int ask_daemon(struct top_fetch *fetch, const struct top_wish *wish, struct top_picture *picture,
                      struct error *err)
{
    CLEANUP(free_ptr) char *whose = wish->uid >= 0 ? xasprintf("&uid=%" PRId64, wish->uid) : xstrdup("");
    CLEANUP(free_ptr)
    char *waiting =
        xasprintf("/v1/jobs?state=waiting&limit=%zu%s%s", wish->waiting, whose, wish->unfolded ? "" : "&folded");
    int rc = ask(fetch, "GET", "/v1/status", &picture->status, err);

    if (!rc)
        rc = ask(fetch, "GET", "/v1/gpus", &picture->gpus, err);
    if (!rc)
        rc = ask(fetch, "GET", "/v1/jobs?state=running", &picture->running, err);
    if (!rc)
        rc = ask(fetch, "GET", waiting, &picture->waiting, err);
    return rc;
}

static void fetch_picture(struct top_fetch *fetch, const struct top_wish *wish)
{
    struct top_picture picture = {0};
    struct error err;
    int rc = fetch->cluster.wanted ? top_cluster_picture(&fetch->cluster, &picture, &err)
                                   : ask_daemon(fetch, wish, &picture, &err);

    pthread_mutex_lock(&fetch->lock);
    fetch->news.is_lost = rc != 0;
    if (rc) {
        snprintf(fetch->news.lost, sizeof fetch->news.lost, "%s", err.text);
    } else {
        top_picture_release(&fetch->news.picture);
        fetch->news.picture = picture;
        fetch->news.has_picture = true;
        picture = (struct top_picture){0};
    }
    pthread_mutex_unlock(&fetch->lock);
    top_picture_release(&picture);
}

static void fetch_details(struct top_fetch *fetch, int64_t job)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRId64, job);
    CLEANUP(free_ptr) char *explain = xasprintf("%s/explain", path);
    json_t *details = NULL, *explanation = NULL;
    struct error err;

    if (ask(fetch, "GET", path, &details, &err) || ask(fetch, "GET", explain, &explanation, &err)) {
        json_decref(details);
        details = json_pack("{s:s}", "state", err.text);
    }
    pthread_mutex_lock(&fetch->lock);
    json_decref(fetch->news.details);
    json_decref(fetch->news.explanation);
    fetch->news.details_of = job;
    fetch->news.details = details;
    fetch->news.explanation = explanation;
    pthread_mutex_unlock(&fetch->lock);
}

/* "cancel: 97 jobs; 2 refused: job 12 ..." */
static void tell_many(const json_t *reply, const char *verb, char text[sizeof(struct error)])
{
    const json_t *refused = json_object_get(reply, "refused");
    const char *first = answer_text(json_array_get(refused, 0), "error");
    size_t done = json_array_size(json_object_get(reply, "jobs"));

    snprintf(text, sizeof(struct error), "%s: %zu job%s", verb, done, done == 1 ? "" : "s");
    if (first)
        snprintf(text + strlen(text), sizeof(struct error) - strlen(text), "; %zu refused: %s",
                 json_array_size(refused), first);
}

static void carry_out(struct top_fetch *fetch, int64_t job, const char *verb, const char *which)
{
    CLEANUP(free_ptr)
    char *path = *which ? xasprintf("/v1/jobs/%s?%s", verb, which) : xasprintf("/v1/jobs/%" PRId64 "/%s", job, verb);
    CLEANUP(json_release) json_t *reply = NULL;
    struct error err;
    int rc = ask(fetch, "POST", path, &reply, &err);

    pthread_mutex_lock(&fetch->lock);
    fetch->news.has_answer = true;
    fetch->news.refused = rc != 0;
    if (rc)
        snprintf(fetch->news.answer, sizeof fetch->news.answer, "%s", err.text); /* it names the job */
    else if (*which)
        tell_many(reply, verb, fetch->news.answer);
    else
        snprintf(fetch->news.answer, sizeof fetch->news.answer, "job %" PRId64 ": %s, it is %s now", job, verb,
                 answer_text(reply, "state") ? answer_text(reply, "state") : "?");
    pthread_mutex_unlock(&fetch->lock);
}

/* ---- A job's log: read here too, for its file may lie on a disk that does not answer ---- */

static void close_log(struct top_fetch *fetch)
{
    close_fd(&fetch->log_fd);
    free(fetch->log_path);
    fetch->log_path = NULL;
    fetch->log_fd = -1;
    fetch->log_job = -1;
}

/* Where it writes is asked once; its file may not be there yet. */
static int open_log(struct top_fetch *fetch, int64_t job, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRId64, job);
    CLEANUP(json_release) json_t *reply = NULL;
    CLEANUP(free_ptr) char *user = NULL;
    off_t end;
    int rc;

    if (fetch->log_job != job)
        close_log(fetch);
    fetch->log_job = job;
    if (!fetch->log_path) {
        rc = ask(fetch, "GET", path, &reply, err);
        if (rc)
            return rc;
        fetch->log_path = log_file_path(reply, false, (uint64_t)job);
        fetch->log_owner = log_file_owner(reply);
        user = answer_safe_text(reply, "user");
    }
    if (!fetch->log_path)
        return error_set(err, EACCES, "permission denied: job %" PRId64 " belongs to %s", job, user);
    rc = log_file_open(fetch->log_path, fetch->log_owner, &fetch->log_fd, err);
    if (rc)
        return rc;
    end = lseek(fetch->log_fd, 0, SEEK_END);
    lseek(fetch->log_fd, end > LOG_TAIL_BYTES ? end - LOG_TAIL_BYTES : 0, SEEK_SET);
    return 0;
}

/* True where there is something new to show. */
static bool read_log(struct top_fetch *fetch, int64_t job)
{
    CLEANUP(free_ptr) char *block = xmalloc(LOG_TAIL_BYTES);
    struct error err = {.text = ""};
    ssize_t count = 0;
    bool is_new;

    if (fetch->log_job != job || fetch->log_fd < 0)
        count = open_log(fetch, job, &err);
    if (!count)
        count = log_file_read(fetch->log_fd, block, LOG_TAIL_BYTES, &err);
    pthread_mutex_lock(&fetch->lock);
    if (fetch->news.log_of != job)
        strbuf_clear(&fetch->news.log);
    is_new = count > 0 || strcmp(fetch->news.log_error, err.text) != 0 || fetch->news.log_of != job;
    fetch->news.log_of = job;
    memcpy(fetch->news.log_error, err.text, sizeof err.text);
    if (count > 0)
        strbuf_append(&fetch->news.log, block, (size_t)count);
    pthread_mutex_unlock(&fetch->lock);
    return is_new;
}

/* ---- The thread ---- */

struct turn {
    bool stop, picture, log;
    struct top_wish wish;
    int64_t job;
    const char *verb;
    char which[96];
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Waits until something is to be done. */
static struct turn next_turn(struct top_fetch *fetch, int64_t picture_ns, int64_t log_ns)
{
    struct turn turn = {0};

    pthread_mutex_lock(&fetch->lock);
    for (;;) {
        int64_t now_ns = nodetime_monotonic_wall_ns();
        bool follows = fetch->wish.log_of >= 0 && fetch->news.log.length < LOG_MOST_BYTES;
        int64_t due_ns = follows ? earlier(picture_ns, log_ns) : picture_ns;
        struct timespec until = {.tv_sec = due_ns / NS_PER_SEC, .tv_nsec = due_ns % NS_PER_SEC};

        turn = (struct turn){.stop = fetch->stop,
                             .picture = fetch->wish_changed || fetch->verb || now_ns >= picture_ns,
                             .log = follows && (fetch->wish_changed || now_ns >= log_ns),
                             .wish = fetch->wish,
                             .job = fetch->job,
                             .verb = fetch->verb};
        memcpy(turn.which, fetch->which, sizeof turn.which);
        if (turn.stop || turn.picture || turn.log)
            break;
        pthread_cond_timedwait(&fetch->wanted, &fetch->lock, &until);
    }
    fetch->wish_changed = false;
    pthread_mutex_unlock(&fetch->lock);
    return turn;
}

static int64_t spent_ns(void)
{
    struct timespec spent;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return spent.tv_sec * NS_PER_SEC + spent.tv_nsec;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void *run(void *user)
{
    struct top_fetch *fetch = user;
    int64_t picture_ns = 0, log_ns = 0; /* when they are due */

    for (;;) {
        struct turn turn = next_turn(fetch, picture_ns, log_ns);
        bool is_new = turn.picture;

        if (turn.stop)
            break;
        if (turn.verb) {
            carry_out(fetch, turn.job, turn.verb, turn.which);
            pthread_mutex_lock(&fetch->lock);
            fetch->verb = NULL;
            pthread_mutex_unlock(&fetch->lock);
        }
        if (turn.picture) {
            int64_t before_ns = spent_ns();
            fetch_picture(fetch, &turn.wish);
            if (turn.wish.details_of >= 0)
                fetch_details(fetch, turn.wish.details_of);
            picture_ns = nodetime_monotonic_wall_ns() + later(fetch->period_ns, SPARING * (spent_ns() - before_ns));
        }
        if (turn.log) {
            is_new = read_log(fetch, turn.wish.log_of) || is_new;
            log_ns = nodetime_monotonic_wall_ns() + LOG_PERIOD_NS;
        }
        if (turn.wish.log_of < 0)
            close_log(fetch);
        if (is_new)
            wake(fetch);
    }
    return NULL;
}

/* ---- The screen's side ---- */

struct top_fetch *top_fetch_start(const char *socket, const struct cluster *cluster, int64_t period_ns, int wake_fd,
                                  const struct top_wish *wish)
{
    struct top_fetch *fetch = xcalloc(1, sizeof *fetch);
    pthread_condattr_t monotonic;
    sigset_t all, old;

    fetch->cli.socket = socket;
    fetch->cluster = *cluster;
    fetch->period_ns = period_ns;
    fetch->wake_fd = wake_fd;
    fetch->wish = *wish;
    fetch->log_job = fetch->log_fd = -1;
    fetch->news.details_of = fetch->news.log_of = -1;
    pthread_mutex_init(&fetch->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&fetch->wanted, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_BLOCK, &all, &old);
    if (pthread_create(&fetch->thread, NULL, run, fetch))
        abort(); /* as without memory */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return fetch;
}

void top_fetch_stop(struct top_fetch *fetch)
{
    struct timespec until;

    pthread_mutex_lock(&fetch->lock);
    fetch->stop = true;
    pthread_cond_signal(&fetch->wanted);
    pthread_mutex_unlock(&fetch->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += STOP_NS;
    if (until.tv_nsec >= NS_PER_SEC) {
        until.tv_sec++;
        until.tv_nsec -= NS_PER_SEC;
    }
    if (pthread_timedjoin_np(fetch->thread, NULL, &until))
        return;
    cli_release(&fetch->cli);
    close_log(fetch);
    top_news_release(&fetch->news);
    pthread_cond_destroy(&fetch->wanted);
    pthread_mutex_destroy(&fetch->lock);
    free(fetch);
}

void top_fetch_want(struct top_fetch *fetch, const struct top_wish *wish)
{
    pthread_mutex_lock(&fetch->lock);
    if (memcmp(&fetch->wish, wish, sizeof *wish) != 0) {
        fetch->wish = *wish;
        fetch->wish_changed = true;
        pthread_cond_signal(&fetch->wanted);
    }
    pthread_mutex_unlock(&fetch->lock);
}

bool top_fetch_do(struct top_fetch *fetch, int64_t job, const char *verb, const char *which)
{
    bool is_free;

    pthread_mutex_lock(&fetch->lock);
    is_free = !fetch->verb;
    if (is_free) {
        fetch->job = job;
        fetch->verb = verb;
        snprintf(fetch->which, sizeof fetch->which, "%s", which);
        pthread_cond_signal(&fetch->wanted);
    }
    pthread_mutex_unlock(&fetch->lock);
    return is_free;
}

void top_fetch_take(struct top_fetch *fetch, struct top_news *news)
{
    pthread_mutex_lock(&fetch->lock);
    *news = fetch->news;
    fetch->news = (struct top_news){.is_lost = news->is_lost, .details_of = -1, .log_of = news->log_of};
    memcpy(fetch->news.lost, news->lost, sizeof news->lost);
    memcpy(fetch->news.log_error, news->log_error, sizeof news->log_error);
    pthread_cond_signal(&fetch->wanted); /* the log may be read on */
    pthread_mutex_unlock(&fetch->lock);
}

void top_news_release(struct top_news *news)
{
    top_picture_release(&news->picture);
    json_decref(news->details);
    json_decref(news->explanation);
    strbuf_release(&news->log);
}
