/* carma monitor: logs the GPUs' readings, without a daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/trust/guarded.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/gpus/monitor_csv.h"
#include "gpu/monitor/monitor.h"

struct monitor_options {
    const char *file; /* NULL: stdout */
    int64_t period_ns;
    int64_t for_ns; /* 0: until it is interrupted */
};

static const struct argp_option options[] = {
    {"csv", 'c', "FILE", OPTION_ARG_OPTIONAL, "write CSV (there is no other form), to FILE where it is named", 0},
    {"period", 'p', "SECONDS", 0, "time from one look to the next (default: 1)", 0},
    {"for", 'f', "SECONDS", 0, "end after so long (default: go on until interrupted)", 0},
    {0},
};

static error_t parse_seconds(const struct argp_state *state, const char *option, const char *arg, int64_t *ns)
{
    CLEANUP(free_ptr) char *text = xasprintf("%ss", arg);

    if (parse_duration(text, ns, NULL) || *ns < 10 * NS_PER_MS || *ns > INT64_C(31536000) * NS_PER_SEC)
        return cli_bad_usage(state, "%s: '%.40s' is not a number of seconds from 0.01 to 31536000", option, arg);
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct monitor_options *monitor = state->input;

    switch (key) {
    case 'c':
        monitor->file = arg ? arg : monitor->file;
        return 0;
    case 'p':
        return parse_seconds(state, "--period", arg, &monitor->period_ns);
    case 'f':
        return parse_seconds(state, "--for", arg, &monitor->for_ns);
    case ARGP_KEY_ARG:
        if (monitor->file)
            return cli_bad_usage(state, "'%.40s' is too much: it writes one file", arg);
        monitor->file = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp monitor_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[FILE]",
    .doc =
        "Log each GPU's metrics as CSV: SM activity, occupancy, DRAM and tensor activity, PCIe traffic, memory, power, "
        "energy. It reads the GPUs itself, as carmad does, and needs no daemon.\vThe columns are described in "
        "docs/formats/monitor-csv.md. Times are seconds of node time.",
};

struct logging {
    const char *file; /* NULL: stdout */
    FILE *out;
    uv_loop_t loop;
    uv_timer_t over;
    struct gpu_monitor *monitor;
    bool began;
    bool failed;
};

static void finish(struct logging *logging)
{
    gpu_monitor_free(logging->monitor);
    logging->monitor = NULL;
    if (!uv_is_closing((uv_handle_t *)&logging->over))
        uv_close((uv_handle_t *)&logging->over, NULL);
}

static void cannot_write(struct logging *logging, const char *why)
{
    logging->failed = true;
    if (logging->file)
        cli_fail("cannot write '%s': %s", logging->file, why);
    else
        cli_fail("cannot write: %s", why);
}

/* A file is emptied once there is something to write. */
static void on_reading(void *user, const struct gpu_node_reading *reading)
{
    struct logging *logging = user;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    int rc = 0;

    if (!logging->began) {
        rc = logging->file ? ftruncate(fileno(logging->out), 0) : 0;
        rc = rc < 0 && errno == EINVAL ? 0 : rc; /* a pipe, a terminal */
        monitor_csv_header(&text);
    }
    logging->began = true;
    monitor_csv_rows(reading, &text);
    if (rc < 0 || fputs(text.text, logging->out) < 0 || fflush(logging->out) != 0) {
        if (errno != EPIPE) /* its reader may stop reading */
            cannot_write(logging, strerror(errno));
        finish(logging);
    }
}

/* Once readings have come, they may come again. */
static void on_problem(void *user, const char *text)
{
    struct logging *logging = user;

    cli_fail("GPUs cannot be read: %s", text);
    if (!logging->began) {
        logging->failed = true;
        if (logging->monitor)
            finish(logging);
    }
}

static void on_over(uv_timer_t *timer)
{
    finish(timer->data);
}

static int run(const struct monitor_options *options_given)
{
    struct logging logging = {.file = options_given->file, .out = stdout};
    struct gpu_monitor_options monitor = {
        .period_ns = options_given->period_ns, .on_reading = on_reading, .on_problem = on_problem, .user = &logging};
    struct error err;
    int fd;

    if (logging.file) {
        fd = guarded_open(logging.file, O_WRONLY | O_CREAT, 0666, &err);
        if (fd < 0)
            return cli_fail("cannot write '%s': %s", logging.file, err.text);
        logging.out = fdopen(fd, "w");
    }
    uv_loop_init(&logging.loop);
    uv_timer_init(&logging.loop, &logging.over);
    logging.over.data = &logging;
    if (options_given->for_ns)
        uv_timer_start(&logging.over, on_over, (uint64_t)(nodetime_to_wall_ns(options_given->for_ns) / NS_PER_MS) + 1,
                       0);
    logging.monitor = gpu_monitor_new(&logging.loop, &monitor);
    if (logging.failed) /* it could not be started at all */
        finish(&logging);
    uv_run(&logging.loop, UV_RUN_DEFAULT);
    uv_loop_close(&logging.loop);
    if (logging.file && fclose(logging.out) != 0 && !logging.failed)
        cannot_write(&logging, strerror(errno));
    return logging.failed ? CLI_FAILURE : CLI_OK;
}

int cmd_monitor(struct cli *cli, int argc, char **argv)
{
    struct monitor_options monitor = {.period_ns = NS_PER_SEC};
    int status;

    return cli_parse(cli, argc, argv, &monitor, &status) ? run(&monitor) : status;
}
