/* carma bench monitor: the cost of watching a GPU, and the metrics' readings. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/kernel.h"
#include "bench/monitor.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/programs/programs.h"
#include "cli/show/term.h"

#define STATUS_NO_GPU   69 /* EX_UNAVAILABLE of sysexits */
#define DEFAULT_REPEATS 3
#define DEFAULT_POINT_S 3
#define PERIOD_LEAST_NS (100 * NS_PER_MS) /* as often as GPM and DCGM measure at most */

struct monitor_options {
    const char *commands[BENCH_LOADS];
    const char *gpu, *library, *dcgm, *output, *load;
    int64_t repeats, period_ns, point_ns; /* 0: not said */
    bool kernel, json;
};

static error_t take_time(const struct argp_state *state, const char *name, const char *arg, int64_t *ns)
{
    struct error err;

    if (parse_duration(arg, ns, &err))
        return cli_bad_usage(state, "%s: %s", name, err.text);
    if (*ns < PERIOD_LEAST_NS || *ns > 3600 * NS_PER_SEC)
        return cli_bad_usage(state, "%s '%.40s' is out of range: from 100ms to 1h", name, arg);
    return 0;
}

static error_t check(const struct monitor_options *wanted, const struct argp_state *state)
{
    if (wanted->kernel && (wanted->commands[BENCH_LIGHT] || wanted->commands[BENCH_HEAVY] || wanted->repeats))
        return cli_bad_usage(state, "--kernel runs a kernel of its own: without --light, --heavy and --repeat");
    if (wanted->point_ns && !wanted->kernel)
        return cli_bad_usage(state, "--point goes with --kernel");
    if (wanted->load && (wanted->kernel || wanted->commands[BENCH_LIGHT] || wanted->commands[BENCH_HEAVY]))
        return cli_bad_usage(state, "--load goes alone");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct monitor_options *wanted = state->input;
    struct error err;

    switch (key) {
    case BENCH_KEY_LIGHT:
        wanted->commands[BENCH_LIGHT] = arg;
        return 0;
    case BENCH_KEY_HEAVY:
        wanted->commands[BENCH_HEAVY] = arg;
        return 0;
    case BENCH_KEY_REPEAT:
        return parse_integer(arg, 1, BENCH_REPEATS_MAX, &wanted->repeats, &err)
                   ? cli_bad_usage(state, "--repeat: %s", err.text)
                   : 0;
    case BENCH_KEY_PERIOD:
        return take_time(state, "--period", arg, &wanted->period_ns);
    case BENCH_KEY_POINT:
        return take_time(state, "--point", arg, &wanted->point_ns);
    case BENCH_KEY_KERNEL:
        wanted->kernel = true;
        return 0;
    case BENCH_KEY_LOAD:
        wanted->load = arg;
        return strcmp(arg, "light") == 0 || strcmp(arg, "heavy") == 0
                   ? 0
                   : cli_bad_usage(state, "--load '%.40s' is not light or heavy", arg);
    case BENCH_KEY_GPU:
        wanted->gpu = arg;
        return 0;
    case BENCH_KEY_NVML:
        wanted->library = arg;
        return 0;
    case BENCH_KEY_DCGM:
        wanted->dcgm = arg;
        return 0;
    case BENCH_KEY_OUTPUT:
        wanted->output = arg;
        return 0;
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case ARGP_KEY_END:
        return check(wanted, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    interrupted = number;
}

static void show_progress(enum bench_load load, enum bench_source source, size_t repeat, size_t repeats)
{
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, TERM_LINE_CLEAR "repeat %zu of %zu: %s load, %s", repeat, repeats, bench_load_name(load),
            bench_source_name(source));
    cli_progress_shown = true;
}

/* On a virtual node a program that behaves like training, else a kernel of our own; owned by the caller. */
static char *default_command(enum bench_load load)
{
    if (bench_simulated()) {
        CLEANUP(free_ptr) char *train = install_path("bin/carma-train");
        return load == BENCH_LIGHT ? xasprintf("'%s' --memory 1G --sm-activity 0.1 --seconds 10", train)
                                   : xasprintf("'%s' --memory 16G --sm-activity 0.9 --seconds 30", train);
    }
    CLEANUP(free_ptr) char *carma = install_path("bin/carma");
    return xasprintf("'%s' bench monitor --load %s", carma, bench_load_name(load));
}

/* Writes the results where they were asked for; takes the reference of `json`. */
static int deliver(const struct monitor_options *wanted, json_t *json, const char *table)
{
    int status = CLI_OK;

    if (wanted->output) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/monitor.json", wanted->output);
        if (json_dump_file(json, path, JSON_INDENT(2)))
            status = cli_fail("cannot write %s: %s", path, strerror(errno));
    }
    if (wanted->json)
        cli_print_json(json);
    else
        fputs(table, stdout);
    json_decref(json);
    return status;
}

static int measure_costs(const struct monitor_options *wanted, const struct bench_setup *setup, struct error *err)
{
    CLEANUP(bench_monitor_release)
    struct bench_monitor bench = {.setup = *setup,
                                  .repeats = wanted->repeats ? (size_t)wanted->repeats : DEFAULT_REPEATS};
    CLEANUP(strbuf_release) struct strbuf table = {0};
    int rc;

    for (int load = 0; load < BENCH_LOADS; load++)
        bench.commands[load] = wanted->commands[load] ? xstrdup(wanted->commands[load]) : default_command(load);
    rc = bench_monitor_measure(&bench, show_progress, err);
    cli_end_progress();
    if (rc < 0)
        return rc;
    bench_monitor_table(&bench, term_width(stdout), term_colour(stdout), &table);
    return deliver(wanted, bench_monitor_json(&bench), table.text);
}

static int measure_kernel(const struct monitor_options *wanted, const struct bench_setup *setup, struct error *err)
{
    CLEANUP(bench_kernel_release)
    struct bench_kernel bench = {.setup = *setup,
                                 .point_ns = wanted->point_ns ? wanted->point_ns : DEFAULT_POINT_S * NS_PER_SEC};
    CLEANUP(strbuf_release) struct strbuf table = {0};
    int rc = bench_kernel_measure(&bench, err);

    if (rc < 0)
        return rc;
    bench_kernel_table(&bench, term_width(stdout), term_colour(stdout), &table);
    return deliver(wanted, bench_kernel_json(&bench), table.text);
}

static int explain_failure(int rc, const struct error *err)
{
    cli_fail("%s", err->text);
    if (rc == -EINTR)
        return 128 + interrupted;
    return rc == -ENODEV || rc == -ENOENT ? STATUS_NO_GPU : CLI_FAILURE;
}

int cmd_bench_monitor(struct cli *cli, int argc, char **argv)
{
    struct argp argp = bench_monitor_argp;
    struct monitor_options wanted = {0};
    const char *base = getenv("TMPDIR");
    CLEANUP(free_ptr) char *temporary = xasprintf("%s/carma-bench-XXXXXX", base && *base ? base : "/tmp");
    struct bench_setup setup = {0};
    struct sigaction on_signal = {.sa_handler = interrupt};
    struct error err = {""};
    int status, rc;

    argp.parser = parse;
    cli->argp = &argp;
    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    if (wanted.load) {
        rc = bench_kernel_load(strcmp(wanted.load, "heavy") == 0, &err);
        return rc < 0 ? explain_failure(rc, &err) : CLI_OK;
    }
    setup = (struct bench_setup){.library = wanted.library,
                                 .dcgm = wanted.dcgm,
                                 .wanted = wanted.gpu,
                                 .interrupted = &interrupted,
                                 .directory = wanted.output,
                                 .period_ns = wanted.period_ns ? wanted.period_ns : NS_PER_SEC};
    if (wanted.output ? file_make_dirs(wanted.output, 0755, &err) < 0 : !(setup.directory = mkdtemp(temporary)))
        return wanted.output ? cli_fail("%s", err.text) : cli_fail("cannot make %s: %s", temporary, strerror(errno));
    sigaction(SIGINT, &on_signal, NULL);
    sigaction(SIGTERM, &on_signal, NULL);
    rc = wanted.kernel ? measure_kernel(&wanted, &setup, &err) : measure_costs(&wanted, &setup, &err);
    status = rc < 0 ? explain_failure(rc, &err) : rc;
    if (!wanted.output && rc != -ECHILD) /* its error has the reason */
        file_remove_tree(temporary);
    return status;
}
