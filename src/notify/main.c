/* carma-notify: tells users and the administrator's hooks what happens to jobs.
 *
 * One thread and one loop: it follows the daemon's stream (stream.c), known.c says what is new in a job, and crew.c has
 * it told by children. carmad knows nothing of it. Root's tells everybody; a user's own tells him alone. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "base/units.h"
#include "base/usage.h"
#include "client/client.h"
#include "core/job.h"
#include "notify/crew.h"
#include "notify/known.h"
#include "notify/message.h"
#include "notify/stream.h"

#define TICK_MS        1000
#define AGAIN_NS       (2 * NS_PER_SEC)  /* to a daemon that is away */
#define SILENCE_NS     (60 * NS_PER_SEC) /* a stream has a comment every 15 s */
#define STATE          "/var/lib/carma-notify/state.json"
#define HOOKS          "/etc/carma/hooks.d"
#define ENDED_AT_FIRST "/v1/jobs?state=ended&last=1000"

static volatile sig_atomic_t stopping;

struct notifier {
    const char *socket, *hooks, *state;
    struct stream stream;
    struct known *known;
    struct crew *crew;
    int64_t now_ns;   /* of the daemon, when it last said it */
    int64_t heard_ns; /* wall; when that was */
    int64_t scale;    /* its time to the wall clock's */
    bool away;        /* it has been said that nobody listens */
};

static void on_signal(int number)
{
    stopping = number;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    CLEANUP(free_ptr) char *text = NULL;
    va_list list;

    va_start(list, format);
    text = xvasprintf(format, list);
    va_end(list);
    printable_replace(text);
    fprintf(stderr, "carma-notify: %s\n", text);
}

/* ---- What has happened ---- */

static bool is_failure(const json_t *job)
{
    static const uint32_t failures[] = {JOB_FAILED, JOB_GPU_OOM, JOB_LOST, JOB_REFUSED, JOB_TIMEOUT, JOB_EXPIRED};
    const char *state = json_string_value(json_object_get(job, "state"));

    for (size_t i = 0; state && i < array_size(failures); i++)
        if (strcmp(state, job_state_name(failures[i])) == 0)
            return true;
    return false;
}

/* A failed end is told once, also to those who want both. */
static bool is_wanted(const json_t *job, enum notify_event *event)
{
    const char *text = json_string_value(json_object_get(job, "notify"));
    struct notify_words words;

    if (!text || notify_parse(text, &words, NULL))
        return false;
    if (*event == NOTIFY_END && (words.events >> NOTIFY_FAIL & 1) && is_failure(job))
        *event = NOTIFY_FAIL;
    return words.events >> *event & 1;
}

static void tell(void *user, const json_t *job, enum notify_event event)
{
    struct notifier *notifier = user;
    uid_t uid = (uid_t)json_integer_value(json_object_get(job, "uid"));
    bool wanted = is_wanted(job, &event) && (geteuid() == 0 || geteuid() == uid);
    json_t *message = message_new(job, event);

    crew_run_hooks(notifier->crew, message);
    if (wanted)
        crew_tell_user(notifier->crew, uid, message);
    json_decref(message);
}

static void take(void *user, const char *name, const json_t *data)
{
    struct notifier *notifier = user;
    const json_t *now = json_object_get(data, "now_ns"), *scale = json_object_get(data, "time_scale"), *job;
    size_t i;

    if (json_is_integer(now)) {
        notifier->now_ns = json_integer_value(now);
        notifier->heard_ns = nodetime_monotonic_wall_ns();
    }
    if (strcmp(name, "status") == 0 && json_is_integer(scale) && json_integer_value(scale) > 0)
        notifier->scale = json_integer_value(scale);
    json_array_foreach (json_object_get(data, "jobs"), i, job)
        known_take(notifier->known, job, notifier->now_ns, tell, notifier);
}

/* ---- The daemon ---- */

/* The stream begins with the last hundred jobs that have ended; more may have, while nobody looked. */
static void take_ended(struct notifier *notifier)
{
    struct client *client = NULL;
    json_t *reply = NULL;
    struct error err;
    int status;

    if (client_open(notifier->socket, &client, &err))
        return;
    if (client_call(client, "GET", ENDED_AT_FIRST, NULL, &status, &reply, &err) == 0 && status == 200)
        take(notifier, "jobs", reply);
    json_decref(reply);
    client_free(client);
}

static void follow(struct notifier *notifier)
{
    struct error err;

    if (stream_open(&notifier->stream, notifier->socket, &err)) {
        if (!notifier->away)
            say("%s", err.text);
        notifier->away = true;
        return;
    }
    notifier->away = false;
    notifier->heard_ns = nodetime_monotonic_wall_ns();
    take_ended(notifier);
}

static void hear(struct notifier *notifier)
{
    struct error err;

    notifier->heard_ns = nodetime_monotonic_wall_ns(); /* a comment, too */
    if (stream_read(&notifier->stream, take, notifier, &err))
        say("%s", err.text);
}

/* Its time passes also while it says nothing. */
static void pass(struct notifier *notifier, int64_t since_ns)
{
    if (notifier->now_ns == 0 || notifier->stream.fd < 0)
        return;
    notifier->now_ns += since_ns * notifier->scale;
    known_pass(notifier->known, notifier->now_ns, tell, notifier);
}

static void run(struct notifier *notifier)
{
    int64_t next_ns = 0, passed_ns = nodetime_monotonic_wall_ns();

    while (!stopping) {
        int64_t now_ns = nodetime_monotonic_wall_ns();
        struct pollfd ready[1 + CREW_MOST];
        size_t count;

        if (notifier->stream.fd < 0 && now_ns >= next_ns) {
            follow(notifier);
            next_ns = now_ns + AGAIN_NS;
        }
        ready[0] = (struct pollfd){.fd = notifier->stream.fd, .events = POLLIN};
        count = 1 + crew_poll(notifier->crew, ready + 1);
        if (poll(ready, count, TICK_MS) < 0 && errno != EINTR)
            say("poll: %s", strerror(errno));
        now_ns = nodetime_monotonic_wall_ns();
        pass(notifier, now_ns - passed_ns);
        passed_ns = now_ns;
        if (notifier->stream.fd >= 0 && ready[0].revents)
            hear(notifier);
        else if (notifier->stream.fd >= 0 && now_ns - notifier->heard_ns > SILENCE_NS)
            stream_close(&notifier->stream);
        crew_turn(notifier->crew);
    }
}

/* ---- The program ---- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct notifier *notifier = state->input;

    switch (key) {
    case 's':
        notifier->socket = arg;
        return 0;
    case 'k':
        notifier->hooks = arg;
        return 0;
    case 'f':
        notifier->state = arg;
        return 0;
    case ARGP_KEY_ARG:
        usage_error(state, "it takes no arguments: '%.40s' is too much", arg);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option table[] = {
    {"socket", 's', "PATH", 0, "carmad's socket (default: $CARMA_SOCKET, or the user's own)"},
    {"hooks", 'k', "DIR", 0,
     "programs that get each event as JSON on standard input (default for root: " HOOKS "; for others: none)"},
    {"state", 'f', "FILE", 0, "up to when all has been told (default for root: " STATE "; for others: nowhere)"},
    {0}};

static const struct argp argp = {
    table, parse, NULL,
    "Tells users what happens to their jobs (carma submit --notify), by mail, webhook or on their desktop, as they say "
    "in ~/.config/carma/notify. Root's tells all users, each by his own rights; a user's own tells him alone."};

static const struct manual manual = {
    .name = "carma-notify",
    .section = 8,
    .summary = "tells users what happens to their jobs",
    .invocation = "carma-notify",
    .argp = &argp,
    .see_also = "carma(1), carmad(8)",
};

int main(int argc, char **argv)
{
    struct notifier notifier = {.hooks = geteuid() == 0 ? HOOKS : NULL,
                                .state = geteuid() == 0 ? STATE : NULL,
                                .scale = 1,
                                .stream = {.fd = -1}};
    struct sigaction action = {.sa_handler = on_signal};

    usage_parse(&manual, argc, argv, &notifier);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    notifier.known = known_new(notifier.state);
    notifier.crew = crew_new(notifier.hooks, say);
    run(&notifier);
    if (notifier.stream.fd >= 0)
        stream_close(&notifier.stream);
    known_free(notifier.known);
    crew_free(notifier.crew);
    return 0;
}
