/* carmad: reads its configuration, its store and its GPUs, in this order, and runs until it is told to stop. */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/usage.h"
#include "daemon/announce.h"
#include "daemon/capture/captures.h"
#include "daemon/daemon.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/node/node.h"
#include "daemon/run/runs.h"
#include "daemon/run/mps_jobs.h"
#include "http/http.h"
#include "store/store.h"

/* ---- Options ---- */

enum { OPTION_SETTINGS = 0x100, OPTION_SETTINGS_FILE, OPTION_SETTINGS_MAN };

struct options {
    const char *file; /* NULL: the default one, which may be missing */
    const char *state;
    const char *socket;
    const char **settings; /* owned array of borrowed "key=value" */
    size_t setting_count, setting_capacity;
    void (*print)(FILE *out); /* this, instead of running; NULL: run */
};

static const struct argp_option option_table[] = {
    {"config", 'c', "FILE", 0, "read settings from FILE", 0},
    {"set", 's', "KEY=VALUE", 0, "set one thing; may be given several times, and wins over the file", 0},
    {"state", 'S', "DIR", 0, "keep the store and the runs in DIR (the setting state_directory)", 0},
    {"socket", 'u', "PATH", 0, "listen on the Unix socket PATH (the setting socket)", 0},
    {"settings", OPTION_SETTINGS, NULL, 0, "list the settings, and end", 0},
    {"settings-file", OPTION_SETTINGS_FILE, NULL, 0,
     "print a configuration file with every default as a comment, and end", 0},
    {"settings-man", OPTION_SETTINGS_MAN, NULL, OPTION_HIDDEN, "print the manual page carma.conf(5), and end", 0},
    {0},
};

static void print_settings(FILE *out)
{
    config_help(out);
    fprintf(out, "\nThe values of `policy` (NAME, or a preset and a plain policy: thesis+lug):\n");
    config_policies_help(out);
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'c':
        options->file = argument;
        return 0;
    case 's':
        array_reserve(options->settings, options->setting_capacity, options->setting_count + 1);
        options->settings[options->setting_count++] = argument;
        return 0;
    case 'S':
        options->state = argument;
        return 0;
    case 'u':
        options->socket = argument;
        return 0;
    case OPTION_SETTINGS:
        options->print = print_settings;
        return 0;
    case OPTION_SETTINGS_FILE:
        options->print = config_file;
        return 0;
    case OPTION_SETTINGS_MAN:
        options->print = config_manual;
        return 0;
    case ARGP_KEY_ARG:
        usage_error(state, "'%s' is not expected here: carmad takes options only", argument);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = option_table,
    .parser = parse_option,
    .doc = "The carma daemon: shares this server's GPUs among training jobs. Runs in the foreground.\v"
           "Settings come from /etc/carma/carma.conf as root, else from ~/.config/carma/carma.conf, then from --set. "
           "SIGTERM ends it; jobs go on, and the next carmad takes them over.",
};

static const struct manual program = {
    .name = "carmad",
    .section = 8,
    .summary = "share a server's GPUs among training jobs",
    .invocation = "carmad",
    .argp = &argp,
    .see_also = "carma(1), carma.conf(5), carma-vnode(1)",
};

/* A fault in the file is a failure like any other; in an option, wrong usage. Returns the exit status. */
static int read_config(const struct options *options, struct config *config, struct error *err)
{
    CLEANUP(free_ptr) char *default_path = config_default_path();
    int status = config_read_file(config, options->file ? options->file : default_path, err);

    if (status != 0 && !(status == -ENOENT && !options->file))
        return EXIT_FAILURE;
    status = 0;
    for (size_t i = 0; i < options->setting_count && status == 0; i++)
        status = config_set_pair(config, options->settings[i], err);
    if (status == 0 && options->state)
        status = config_set(config, "state_directory", options->state, err);
    if (status == 0 && options->socket)
        status = config_set(config, "socket", options->socket, err);
    if (status == 0)
        status = config_check(config, err);
    return status == 0 ? EXIT_SUCCESS : EXIT_USAGE;
}

/* ---- Running ---- */

/* A host without memory shall kill its jobs first, not root's daemon and its helpers (jobs: launch/shepherd/inherit.h).
 * Where it may not ask for that, it has the same chance as others. */
static void protect_from_oom_killer(void)
{
    FILE *file = geteuid() == 0 ? fopen("/proc/self/oom_score_adj", "we") : NULL;

    if (file) {
        fputs("-500", file);
        fclose(file);
    }
}

static void on_store(uv_poll_t *poll, int status, int events)
{
    CLEANUP(free_ptr) char *note = store_take_note(poll->data);

    store_dispatch(poll->data);
    if (note)
        daemon_log("%s", note);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;

    daemon->stopping = true;
    uv_stop(daemon->loop);
}

/* At the end of a user's session. His jobs go on, and so does whoever looks after them. */
static void on_hangup(uv_signal_t *signal, int number)
{
    daemon_log("its terminal or session has ended (SIGHUP): carmad goes on; kill -TERM %d ends it", (int)getpid());
}

/* How often carmad looks whether its socket can be reached, and what else it has made is there. */
#define HEAL_MS 3000

static void on_heal(uv_timer_t *timer)
{
    static bool told; /* one line for a trouble that lasts */
    struct daemon *daemon = timer->data;
    struct error err;
    int healed = http_server_heal(daemon->http, &err);

    runs_heal(daemon->runs);
    if (healed > 0)
        daemon_log("%s was removed: carmad has made it again", daemon->config.socket);
    else if (healed < 0 && !told)
        daemon_log("%s was removed, and cannot be made again: %s", daemon->config.socket, err.text);
    told = healed < 0;
}

/* While the loop does not yet run. A handler, as children would inherit that a signal is ignored. */
static void on_early_hangup(int number)
{
}

static void tell_of_places(const struct daemon *daemon)
{
    struct http_place place;

    for (unsigned i = 0; http_server_place(daemon->http, i, &place); i++) {
        const char *whose = place.inherited ? ", a socket of the service manager's" : "";
        const char *set = place.tcp ? daemon->config.listen : daemon->config.socket;

        if (place.tcp)
            daemon_log("listening on %s%s, for clients that show the token in %s", place.name, whose,
                       daemon->config.token_file);
        else
            daemon_log("listening on %s%s", place.name, whose);
        if (place.inherited && set && strcmp(set, place.name) != 0)
            daemon_log("the setting %s = %s is not used then: ListenStream= of the socket unit says where",
                       place.tcp ? "listen" : "socket", set);
        if (place.exposed)
            daemon_log("WARNING: %s can be reached from other machines without encryption, even of the token: listen "
                       "on 127.0.0.1 and use ssh -L, or put an encrypting proxy before it",
                       place.name);
    }
}

static int run(struct daemon *daemon, struct error *err)
{
    struct announcer *announcer;
    uv_signal_t signals[3];
    uv_timer_t heal;
    uv_poll_t stored;
    uv_loop_t loop;
    int status;

    uv_loop_init(&loop);
    daemon->loop = &loop;
    announce_loading(daemon);
    status = daemon_start(daemon, err);
    if (status == 0) {
        uv_poll_init(&loop, &stored, store_event_fd(daemon->store));
        stored.data = daemon->store;
        uv_poll_start(&stored, UV_READABLE, on_store);
        for (int i = 0; i < 3; i++) {
            uv_signal_init(&loop, &signals[i]);
            signals[i].data = daemon;
        }
        uv_signal_start(&signals[0], on_signal, SIGTERM);
        uv_signal_start(&signals[1], on_signal, SIGINT);
        uv_signal_start(&signals[2], on_hangup, SIGHUP);
        uv_timer_init(&loop, &heal);
        heal.data = daemon;
        uv_timer_start(&heal, on_heal, HEAL_MS, HEAL_MS);
        mps_jobs_reconcile(daemon->mps_jobs);
        runs_reconcile(daemon->runs);
        captures_resume(daemon->captures);
        engine_turn(daemon->engine);
        node_watch(daemon->node);
        daemon_log("policy %s, memory view %s", daemon->config.core.policy,
                   memory_view_name(daemon->config.core.memory_view));
        if (*daemon->no_mps)
            daemon_log("share = auto, and no job shares by MPS: %s", daemon->no_mps);
        tell_of_places(daemon);
        announcer = announce_ready(daemon);
        uv_run(&loop, UV_RUN_DEFAULT);
        announce_stopping(announcer);
        uv_close((uv_handle_t *)&stored, NULL);
        uv_close((uv_handle_t *)&heal, NULL);
        for (int i = 0; i < 3; i++)
            uv_close((uv_handle_t *)&signals[i], NULL);
    }
    daemon_stop(daemon);
    uv_run(&loop, UV_RUN_DEFAULT); /* until every module has closed its handles on the loop */
    uv_loop_close(&loop);
    return status;
}

/* The memory of a large request, a snapshot or a long list goes back as soon as it is freed. Left to itself the C
 * library raises this bound, and keeps such pieces between lasting ones. Each thread has a heap of its own, for the
 * same reason: its short-lived data would otherwise lie between the lasting data of the loop. */
static void give_memory_back(void)
{
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_ARENA_MAX, 12); /* this thread, the store's, libuv's eight, and some for the rest */
}

/* What lasts has its bound on libuv's pool, so that a thread is left for what is short: a large submission, a costly
 * estimate, two captures' answers, two questions to the history, a look at a group. */
static void make_pool_large_enough(void)
{
    setenv("UV_THREADPOOL_SIZE", "8", 1);
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct daemon daemon = {0};
    struct error err;
    int status;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, on_early_hangup);
    json_set_alloc_funcs(xmalloc, free); /* else jansson leaves out values that it has no memory for, and the rest would
                                            be stored */
    give_memory_back();
    make_pool_large_enough();
    protect_from_oom_killer();
    config_init_default(&daemon.config);
    argp_program_version = "carmad " CARMA_VERSION; /* defined here it would be hidden from the C library */
    usage_parse(&program, argc, argv, &options);
    if (options.print) {
        options.print(stdout);
        status = fflush(stdout) ? EXIT_FAILURE : 0;
    } else {
        status = service_take(&daemon.service, &err) == 0 && nodetime_init(&err) == 0
                     ? read_config(&options, &daemon.config, &err)
                     : EXIT_FAILURE;
        if (status == 0 && run(&daemon, &err) != 0)
            status = EXIT_FAILURE;
        if (status != 0)
            fprintf(stderr, "carmad: %s\n", err.text);
    }
    free(options.settings);
    service_release(&daemon.service);
    config_release(&daemon.config);
    return status;
}
