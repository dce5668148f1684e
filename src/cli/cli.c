#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/install.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "base/units.h"
#include "cli/session.h"
#include "cli/show/term.h"
#include "cli/show/answer.h"
#include "client/client.h"

bool cli_progress_shown;

static __attribute__((format(printf, 1, 0))) void print_error_line(const char *format, va_list args)
{
    CLEANUP(free_ptr) char *text = xvasprintf(format, args);
    CLEANUP(free_ptr) char *safe = term_escape(text);

    fflush(stdout);
    fprintf(stderr, "%scarma: %s\n", cli_progress_shown ? TERM_LINE_CLEAR : "", safe);
    cli_progress_shown = false;
}

void cli_end_progress(void)
{
    if (cli_progress_shown)
        fputs(TERM_LINE_CLEAR, stderr);
    cli_progress_shown = false;
}

int cli_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_error_line(format, args);
    va_end(args);
    return CLI_FAILURE;
}

int cli_become(const char *name, const char *built, char **argv)
{
    CLEANUP(free_ptr) char *folder = install_path("lib/carma"), *installed = xasprintf("%s/%s", folder, name);
    CLEANUP(free_ptr) char *beside = install_beside(built);

    execv(installed, argv);
    if (errno == ENOENT)
        execv(beside, argv);
    return cli_fail("%s: %s: it belongs to carma: install %s again", installed, strerror(errno),
                    strncmp(name, "bench/", 6) == 0 ? "carma (Debian: python3-carma)" : "carma");
}

/* Between two tries for a turn at a daemon that is busy with others of the same user. */
#define TURN_LEAST_MS 50
#define TURN_MOST_MS  1000
#define TURN_TOLD_NS  (2 * NS_PER_SEC)

static int transport_error(int rc)
{
    if (rc == -ECONNREFUSED || rc == -ENOENT)
        return -CLI_NO_DAEMON;
    if (rc == -ECONNRESET || rc == -ETIMEDOUT || rc == -EPROTO)
        return -CLI_NO_ANSWER;
    return rc;
}

static int ask_once(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
                    struct error *err)
{
    CLEANUP(json_release) json_t *answer = NULL;
    int status, rc = 0;

    if (!cli->client)
        rc = client_open(cli->socket, &cli->client, err);
    if (rc == 0)
        rc = client_call(cli->client, method, path, body, &status, &answer, err);
    if (rc)
        return transport_error(rc);
    rc = client_check(status, answer, err);
    if (rc)
        return rc == -ESHUTDOWN ? -CLI_NO_DAEMON : rc;
    if (reply)
        *reply = steal_ptr(&answer);
    return 0;
}

/* Of many that wait, each comes at another moment. */
static void sleep_before_turn(void)
{
    uint32_t random = 0;
    struct timespec pause = {0};

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint32_t)getpid();
    pause.tv_nsec = (long)(TURN_LEAST_MS + random % (TURN_MOST_MS - TURN_LEAST_MS)) * NS_PER_MS;
    nanosleep(&pause, NULL);
}

int cli_call(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
             struct error *err)
{
    int64_t begun = nodetime_monotonic_wall_ns();
    int rc;

    cli->crowded = false;
    while ((rc = ask_once(cli, method, path, body, reply, err)) == -CLIENT_BUSY) {
        int64_t waited_ns = nodetime_monotonic_wall_ns() - begun;
        if (!cli->waits && waited_ns > CLI_TURN_S * NS_PER_SEC)
            break;
        if (!cli->turn_told && waited_ns > TURN_TOLD_NS) {
            cli_fail("%s: waiting for a turn", err->text);
            cli->turn_told = true;
        }
        cli->crowded = true;
        sleep_before_turn();
    }
    return rc;
}

/* The last job's number; 0: there is none. */
static int64_t last_of(const json_t *jobs)
{
    size_t count = json_array_size(jobs);

    return count ? answer_integer(json_array_get(jobs, count - 1), "id", 0) : 0;
}

int cli_list_jobs(struct cli *cli, const char *path,
                  int (*call)(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
                              struct error *err),
                  json_t **reply, struct error *err)
{
    CLEANUP(json_release) json_t *whole = NULL;
    int rc = call(cli, "GET", path, NULL, &whole, err);
    json_t *jobs = json_object_get(whole, "jobs");

    while (!rc && answer_integer(whole, "left_out", 0) > 0) {
        CLEANUP(free_ptr)
        char *behind = xasprintf("%s%safter=%" PRId64, path, strchr(path, '?') ? "&" : "?", last_of(jobs));
        CLEANUP(json_release) json_t *page = NULL;
        rc = call(cli, "GET", behind, NULL, &page, err);
        if (!json_array_size(json_object_get(page, "jobs")))
            break;
        json_array_extend(jobs, json_object_get(page, "jobs"));
        json_object_set(whole, "left_out", json_object_get(page, "left_out"));
    }
    if (!rc)
        *reply = steal_ptr(&whole);
    return rc;
}

void cli_release(struct cli *cli)
{
    client_free(cli->client);
    cli->client = NULL;
}

int cli_main(int argc, char **argv, int (*run)(struct cli *cli, int argc, char **argv))
{
    struct cli cli = {0};
    struct error err;
    int status;

    json_set_alloc_funcs(xmalloc, free); /* else jansson leaves out values that it has no memory for, and the rest would
                                            be submitted */
    signal(SIGPIPE, SIG_DFL); /* `carma queue | head` ends quietly, even where SIGPIPE was inherited as ignored */
    status = nodetime_init(&err) ? cli_fail("%s", err.text) : run(&cli, argc, argv);
    cli_release(&cli);
    if (fflush(stdout) || ferror(stdout)) {
        cli_fail("cannot write to standard output: %s", strerror(errno));
        if (status == CLI_OK)
            status = CLI_FAILURE;
    }
    return status;
}

/* A command that waits for a job waits for a daemon that is started again, too. */
int cli_ask(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **reply,
            struct error *err)
{
    return cli->waits ? session_call(cli, method, path, body, reply, err)
                      : cli_call(cli, method, path, body, reply, err);
}

int cli_get_job(struct cli *cli, struct id_list *list, const char *suffix, json_t **reply)
{
    struct error err;
    int rc = cli_resolve_ids(cli, list, IDS_ONE, &err);

    if (rc == 0) {
        CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64 "%s", list->items[0], suffix);
        rc = cli_call(cli, "GET", path, NULL, reply, &err);
    }
    if (rc)
        return cli_fail("%s", err.text), CLI_FAILURE;
    return CLI_OK;
}

void cli_print_json(const json_t *json)
{
    CLEANUP(free_ptr) char *text = printable_json(json_dumps(json, JSON_INDENT(2)));

    printf("%s\n", text ? text : "null");
}

void cli_print_jobs(json_t *jobs)
{
    CLEANUP(json_release) json_t *whole = json_pack("{s:O}", "jobs", jobs);

    cli_print_json(whole);
}

error_t cli_parse_watch(const struct argp_state *state, const char *arg, int64_t *period_ns)
{
    CLEANUP(free_ptr) char *text = arg ? xasprintf("%ss", arg) : NULL;

    *period_ns = 2 * NS_PER_SEC;
    if (text &&
        (parse_duration(text, period_ns, NULL) || *period_ns < 10 * NS_PER_MS || *period_ns > 86400 * NS_PER_SEC))
        return cli_bad_usage(state, "--watch: '%.40s' is not a number of seconds from 0.01 to 86400", arg);
    return 0;
}

int cli_watch(struct cli *cli, int64_t period_ns, int (*draw)(struct cli *cli, void *input), void *input)
{
    const struct timespec pause = {.tv_sec = period_ns / NS_PER_SEC, .tv_nsec = period_ns % NS_PER_SEC};
    bool terminal = isatty(STDOUT_FILENO), worked = false;
    int status;

    for (;;) {
        if (period_ns && terminal)
            fputs(TERM_HOME_CLEAR, stdout);
        status = draw(cli, input);
        fflush(stdout);
        worked = worked || status == CLI_OK;
        if (!period_ns || !worked || ferror(stdout))
            return status;
        if (status != CLI_OK)
            cli_release(cli); /* the next call connects anew */
        nanosleep(&pause, NULL);
        if (!terminal && status == CLI_OK)
            putchar('\n');
    }
}
